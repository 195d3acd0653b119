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

// A tcpExchange is one exchange. A rank connects and says hello; rank 0 answers at once whether it is the right one, and when it
// has all the ranks connected sends them the id. That they wait for it on open connections is how rank 0 knows that they are
// there, and when all are.
type tcpExchange struct {
	address     string
	token       [sha256.Size]byte
	rank, count int
}

// Times for what cannot take long. Waiting for ranks has the context's end alone.
const (
	dialTime  = 5 * time.Second
	helloTime = 10 * time.Second
)

// tcpPace is how often a rank tries to connect, and rank 0 to listen.
func tcpPace() backoff { return backoff{5 * time.Millisecond, 500 * time.Millisecond} }

// A hello is what a rank sends.
type hello struct {
	Magic [8]byte
	Token [sha256.Size]byte
	Rank  int32 // -1 if it does not know
	Count int32
}

var magic = [8]byte{'p', 'u', 'r', 'e', 'g', 'p', 'u', 1}

// An answer is what rank 0 sends at once, behind the magic.
type answer uint8

const (
	wait       answer = iota + 1 // for the id
	otherToken                   // come again, when this exchange is over
	otherCount
)

// A reply is what rank 0 sends at once.
type reply struct {
	Magic  [8]byte
	Answer answer
	Count  int32 // rank 0's
}

// send and receive move one of these, or an id, before a deadline.
func send(c net.Conn, deadline time.Time, v any) error {
	if err := c.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if id, ok := v.([]byte); ok {
		_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(id))), id...))
		return err
	}
	return binary.Write(c, binary.BigEndian, v)
}

func receive(c net.Conn, deadline time.Time, v any) error {
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	return binary.Read(c, binary.BigEndian, v)
}

func receiveID(c net.Conn) ([]byte, error) {
	var n uint32
	if err := receive(c, time.Time{}, &n); err != nil {
		return nil, err
	}
	if n == 0 || n > maxID {
		return nil, fmt.Errorf("rank 0 announces %d bytes", n)
	}
	id := make([]byte, n)
	if err := c.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	_, err := io.ReadFull(c, id)
	return id, err
}

// closeWith closes a connection or listener when the context ends, which makes everything return that waits for it. The function
// returned must be called; it closes too, and afterwards nothing runs any more.
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

// take connects to rank 0 until it has the id.
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
		if ctx.Err() == nil { // else it is but what the end looks like
			last = err
		}
		if err := pace.wait(ctx); err != nil {
			return nil, fmt.Errorf("no id from rank 0: %w", errOf(err, last))
		}
	}
}

// errCount is the error for ranks that do not agree how many they are.
var errCount = errors.New("the ranks do not agree how many they are")

func (x *tcpExchange) takeFrom(c net.Conn) ([]byte, error) {
	deadline := time.Now().Add(helloTime)
	if err := send(c, deadline, hello{magic, x.token, int32(x.rank), int32(x.count)}); err != nil {
		return nil, err
	}
	var r reply
	err := receive(c, deadline, &r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("whoever listens there has not answered: %w", err)
	case r.Magic != magic || r.Answer < wait || r.Answer > otherCount:
		return nil, errors.New("whoever listens there is no rank 0: does another program use the port?")
	case r.Answer == otherToken:
		return nil, errors.New("whoever listens there is a rank 0 of another run, or at an exchange with another name")
	case r.Answer == otherCount:
		return nil, fmt.Errorf("%w: rank 0 has been told %d, and this one %d", errCount, r.Count, x.count)
	}
	id, err := receiveID(c)
	if err != nil {
		return nil, fmt.Errorf("rank 0 had come and is gone: %w", err)
	}
	return id, nil
}
