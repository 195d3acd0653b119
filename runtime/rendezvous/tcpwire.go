package rendezvous

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A tcpExchange is one exchange. Each connection carries, in big-endian order:
//
//	rank    hello   magic, token of the exchange, rank, count, nonce
//	rank 0  reply   magic, answer, count, nonce; mac of hello and reply
//	rank    proof   mac of hello and reply
//	rank 0  id      length, id; mac of hello, reply, length and id
//
// Rank 0 sends the reply at once. The reply proves that rank 0 knows the secret. The proof proves
// that the rank knows the secret. Then rank 0 counts the rank, and sends the id when all ranks are
// connected. A rank counts as present while its connection is open.
//
// Without a secret every process knows the key of the macs.
type tcpExchange struct {
	address     string
	listen      string // where rank 0 listens, if that differs from the field address
	key         [sha256.Size]byte
	token       [sha256.Size]byte
	rank, count int
}

// Time limits for quick steps. Waiting for ranks ends only with the context.
const (
	dialTime  = 5 * time.Second
	helloTime = 10 * time.Second
)

// tcpPace returns the intervals at which a rank tries to connect, and rank 0 to listen.
func tcpPace() backoff { return backoff{5 * time.Millisecond, 500 * time.Millisecond} }

// A hello is the first message of a rank other than 0.
type hello struct {
	Magic [8]byte
	Token [sha256.Size]byte
	Rank  int32 // -1 if the sender does not know its rank
	Count int32
	Nonce nonce
}

// magic ends with the version of the protocol.
var magic = [8]byte{'p', 'u', 'r', 'e', 'g', 'p', 'u', 2}

// An answer is rank 0's answer to a hello.
type answer uint8

const (
	wait       answer = iota + 1 // wait for the id
	otherToken                   // connect again when this exchange is over
	otherCount
	rankTaken // rank taken by another connection
)

// A reply is rank 0's first message. Its mac follows.
type reply struct {
	Magic  [8]byte
	Answer answer
	Count  int32 // the count of rank 0
	Nonce  nonce
}

// encode returns the bytes of a message.
func encode(v any) []byte {
	b, err := binary.Append(nil, binary.BigEndian, v)
	if err != nil {
		panic(err) // impossible: all messages have a fixed size
	}
	return b
}

// receive reads one message, and no more.
func receive(c net.Conn, v any) ([]byte, error) {
	b := make([]byte, binary.Size(v))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	_, err := binary.Decode(b, binary.BigEndian, v)
	return b, err
}

// encodeID returns rank 0's last message.
func (t *transcript) encodeID(id []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(id))), id...)
	t.add(b)
	m := t.mac(ofID)
	return append(b, m[:]...)
}

// receiveID waits without a deadline until rank 0's last message begins, and then reads it.
func (t *transcript) receiveID(c net.Conn) ([]byte, error) {
	var n uint32
	size, err := receive(c, &n)
	if err != nil {
		return nil, err
	}
	if n == 0 || n > maxID {
		return nil, fmt.Errorf("rank 0 announces %d bytes", n)
	}
	if err := c.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	id := make([]byte, n)
	if _, err := io.ReadFull(c, id); err != nil {
		return nil, err
	}
	var m mac
	if _, err := receive(c, &m); err != nil {
		return nil, err
	}
	t.add(size)
	t.add(id)
	if err := t.check(ofID, m); err != nil {
		return nil, errors.New("the id was changed in transit")
	}
	return id, nil
}

// closeWith closes c, a connection or listener, when the context ends, so that all blocked calls on
// c return. The returned function must be called: it also closes c, and waits until the goroutine
// of closeWith has ended.
func closeWith(ctx context.Context, c io.Closer) (closed func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
		}
		c.Close()
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}

// take connects to rank 0 again and again until it has the id. It gives up if the context ends or
// the ranks have different counts.
func (x *tcpExchange) take(ctx context.Context) ([]byte, error) {
	dialer := net.Dialer{Timeout: dialTime}
	var last error
	for pace := tcpPace(); ; {
		c, err := dialer.DialContext(ctx, "tcp", x.address)
		if err == nil {
			closed := closeWith(ctx, c)
			var id []byte
			id, err = x.takeFrom(c)
			closed()
			if err == nil {
				return id, nil
			}
		}
		if errors.Is(err, errCount) {
			return nil, err
		}
		if ctx.Err() == nil { // if the context has ended, err only follows from that
			last = err
		}
		if err := pace.wait(ctx); err != nil {
			return nil, fmt.Errorf("no id from rank 0: %w", errOf(err, last))
		}
	}
}

var errCount = errors.New("the ranks have different counts")

func (x *tcpExchange) takeFrom(c net.Conn) ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	t := transcript{key: x.key}
	t.add(encode(hello{magic, x.token, int32(x.rank), int32(x.count), newNonce()}))
	if _, err := c.Write(t.said); err != nil {
		return nil, err
	}
	var r reply
	var m mac
	b, err := receive(c, &r)
	if err == nil && r.Magic == magic {
		t.add(b)
		_, err = receive(c, &m)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the listener has not answered: %w", err)
	case r.Magic != magic:
		return nil, errors.New("the listener is not rank 0: does another program use the port?")
	}
	if err := t.check(ofReply, m); err != nil {
		return nil, fmt.Errorf("the listener has %w", err)
	}
	switch r.Answer {
	case wait:
	case otherToken:
		return nil, errors.New("the listener is rank 0 of another run, or of an exchange with another name")
	case otherCount:
		return nil, fmt.Errorf("%w: rank 0 expects %d, and this rank %d", errCount, r.Count, x.count)
	case rankTaken:
		return nil, fmt.Errorf("rank 0 has another rank %d: do two processes have the same rank?", x.rank)
	default:
		return nil, fmt.Errorf("rank 0 has answered %d, which is unknown here: do all ranks use the same release?", r.Answer)
	}
	proof := t.mac(ofProof)
	if _, err := c.Write(proof[:]); err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	id, err := t.receiveID(c)
	if err != nil {
		return nil, fmt.Errorf("rank 0 came and left: %w", err)
	}
	return id, nil
}
