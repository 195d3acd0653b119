package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

const (
	secret  = "Xq7 open sesame, 1234"
	another = "Zk4 speak friend and enter"
)

// TestSecret checks that ranks meet with equal secrets, and do not meet with different ones or with
// a secret on only one side.
func TestSecret(t *testing.T) {
	for _, test := range []struct {
		name    string
		secrets [2]string
		env     string
		meet    bool
	}{
		{"same", [2]string{secret, secret}, "", true},
		{"from the environment", [2]string{"", ""}, secret, true},
		{"one from the environment", [2]string{secret, ""}, secret, true},
		{"in place of the environment's", [2]string{secret, secret}, another, true},
		{"others", [2]string{secret, another}, "", false},
		{"other in the environment", [2]string{secret, ""}, another, false},
		{"rank 0 alone", [2]string{secret, ""}, "", false},
		{"rank 1 alone", [2]string{"", secret}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkLeaks(t)
			t.Setenv(secretVariable, test.env)
			address, id := freeAddress(t), newID()
			at := func(rank int) TCP {
				return TCP{Address: address, Secret: test.secrets[rank], At: Place{Rank: rank, Count: 2}}
			}
			if test.meet {
				ctx := withLimit(t, limit)
				each(t, 2, func(rank int) error { return share(ctx, at(rank), rank, "", id) })
				return
			}
			eachInTime(t, 2, func(ctx context.Context, rank int) error {
				err := share(ctx, at(rank), rank, "", id)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), []string{"is it the same on all ranks?", "set the same PUREGPU_RENDEZVOUS_SECRET"}[rank]) {
					return fmt.Errorf("no word of the secrets: %w", err)
				}
				return tells(err)
			})
		})
	}
}

// tells returns an error if the text of err contains part of a secret.
func tells(err error) error {
	for _, s := range []string{secret, another} {
		for _, as := range []string{"%s", "%x", "%X", "%v"} {
			if text := fmt.Sprintf(as, []byte(s)[:8]); strings.Contains(err.Error(), strings.Trim(text, "[]")) {
				return fmt.Errorf("tells the secret: %w", err)
			}
		}
	}
	return nil
}

// TestShortSecret checks that a secret that could be guessed is refused, and not repeated in the
// error.
func TestShortSecret(t *testing.T) {
	const short = "15 bytes, no 16"
	if len(short) != minSecret-1 {
		t.Fatal(len(short))
	}
	for rank := range 2 {
		for _, env := range []bool{false, true} {
			x, from := TCP{Address: freeAddress(t), Secret: short, At: Place{Rank: rank, Count: 2}}, "Secret"
			t.Setenv(secretVariable, "")
			if env {
				x.Secret, from = "", secretVariable
				t.Setenv(secretVariable, short)
			}
			err := share(withLimit(t, limit), x, rank, "", newID())
			if err == nil || !strings.Contains(err.Error(), from+" has less than 16 bytes: make a longer one") || strings.Contains(err.Error(), short) {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
	}
}

// TestWithoutTheSecret connects peers without the secret before the ranks that have it. The peers
// must get nothing, and the ranks must meet.
func TestWithoutTheSecret(t *testing.T) {
	checkLeaks(t)
	address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
	at := func(rank int) TCP { return TCP{Address: address, Secret: secret, At: Place{Rank: rank, Count: 3}} }
	ended := make(chan error, 1)
	go func() { ended <- share(ctx, at(0), 0, "", id) }()
	for _, rank := range []int{1, 2, -1} {
		c, err := dial(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		x := tcpExchange{address: address, token: token("", ""), rank: rank, count: 3, key: noSecret(t)}
		if got, err := x.takeFrom(c); err == nil || got != nil || tells(err) != nil {
			t.Errorf("rank %d without the secret: %x, %v", rank, got, err)
		}
		c.Close()
	}
	for _, rank := range []int{1, 2} { // peers that send a wrong proof and keep the connection
		c, err := dial(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(encode(hello{magic, token("", ""), int32(rank), 3, newNonce()}))
		var r reply
		var m mac
		if _, err := receive(c, &r); err != nil {
			t.Fatal(err)
		}
		if _, err := receive(c, &m); err != nil {
			t.Fatal(err)
		}
		c.Write(m[:]) // rank 0's own mac, which must not count as the rank's
		if b, err := io.ReadAll(c); len(b) > 0 {
			t.Errorf("who reflects rank 0's proof gets %d bytes, %v", len(b), err)
		}
		c.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("rank 0 did not wait for the ranks: %v", err)
	default:
	}
	if err := all(2, func(i int) error { return share(ctx, at(i+1), i+1, "", id) }); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestFalseRank0 makes a process without the secret listen in place of rank 0. No rank may take an
// id from that process, or give up because of its messages.
func TestFalseRank0(t *testing.T) {
	for _, answer := range []answer{wait, otherToken, otherCount, rankTaken, 0, 200} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			checkLeaks(t)
			address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
			asked := make(chan struct{}, 1000)
			stop := occupy(t, address, func(c net.Conn) {
				var h hello
				b, err := receive(c, &h)
				if err != nil {
					return
				}
				f := transcript{key: noSecret(t), said: b}
				r := encode(reply{magic, answer, 99, newNonce()})
				f.add(r)
				m := f.mac(ofReply)
				c.Write(append(append(r, m[:]...), f.encodeID(newID())...))
				asked <- struct{}{}
			})
			ended := make(chan error, 1)
			go func() {
				ended <- share(ctx, TCP{Address: address, Secret: secret, At: Place{Rank: 1, Count: 2}}, 1, "", id)
			}()
			<-asked
			<-asked // the rank has connected again
			stop()
			if err := share(ctx, TCP{Address: address, Secret: secret, At: Place{Count: 2}}, 0, "", id); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestChangedOnItsWay changes each byte of the traffic in turn. If the rank sent the byte, rank 0
// must not count the rank. If rank 0 sent the byte, the rank must not get an id.
func TestChangedOnItsWay(t *testing.T) {
	checkLeaks(t)
	x := tcpExchange{token: token("", ""), rank: 1, count: 2, key: [32]byte{1}}
	id := []byte("the id")
	size := [2]int{len(encode(hello{})) + len(mac{}), len(encode(reply{})) + len(mac{}) + 4 + len(id) + len(mac{})}
	for from, n := range size { // 0: from the rank, 1: from rank 0
		for at := range n {
			got, served := overPipe(&x, id, func(from1, offset int, b []byte) {
				if from1 == from && at >= offset && at < offset+len(b) {
					b[at-offset] ^= 1
				}
			})
			if from == 1 && got != nil || from == 0 && served {
				t.Errorf("byte %d from rank %d is changed: the rank got %q, and counts: %v", at, 1-from, got, served)
			}
		}
	}
	if got, served := overPipe(&x, id, func(int, int, []byte) {}); !bytes.Equal(got, id) || !served {
		t.Errorf("nothing is changed: %q, %v", got, served)
	}
}

// overPipe sends an id through a man in the middle, who can see and change all bytes. It returns
// the id that the rank got, and whether rank 0 has counted the rank.
func overPipe(x *tcpExchange, id []byte, change func(from, offset int, b []byte)) (got []byte, counted bool) {
	rank, left := net.Pipe()
	right, rank0 := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &tcpServer{x: x, all: make(chan struct{}), ctx: ctx, waiting: map[net.Conn]waiter{}}
	done := make(chan struct{}, 4)
	go func() {
		got, _ = x.takeFrom(rank)
		rank.Close()
		done <- struct{}{}
	}()
	go func() {
		s.serve(rank0)
		rank0.Close()
		done <- struct{}{}
	}()
	forward := func(from int, to, of net.Conn) {
		b := make([]byte, 1<<10)
		for offset := 0; ; {
			n, err := of.Read(b)
			if err != nil {
				break
			}
			change(from, offset, b[:n])
			offset += n
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
		}
		to.Close()
		of.Close()
		done <- struct{}{}
	}
	go forward(0, right, left)
	go forward(1, left, right)
	ends := 0
	for ends < 4 {
		select {
		case <-s.all:
			counted = true
			s.all = nil
			s.sendAll(id)
			rank0.Close() // so that a rank that waits for more bytes ends
		case <-done:
			ends++ // a goroutine has ended and closed its pipes, which ends the other three
		}
	}
	return got, counted
}

// TestReplay checks that rank 0 and the other ranks refuse messages that were sent on another
// connection.
func TestReplay(t *testing.T) {
	x := tcpExchange{token: token("", ""), rank: 1, count: 2, key: [32]byte{1}}
	var said [2][]byte // bytes sent by the rank, and by rank 0
	if got, counted := overPipe(&x, []byte("the id"), func(from, _ int, b []byte) { said[from] = append(said[from], b...) }); got == nil || !counted {
		t.Fatal("the rank has not come")
	}
	for from, end := range map[int]func(c net.Conn) error{
		0: func(c net.Conn) error {
			s := &tcpServer{x: &x, all: make(chan struct{}), ctx: t.Context(), waiting: map[net.Conn]waiter{}}
			go func() {
				select {
				case <-s.all: // rank 0 has counted the replayed rank: stop waiting for more
					c.Close()
				case <-t.Context().Done():
				}
			}()
			return s.serve(c)
		},
		1: func(c net.Conn) error { _, err := x.takeFrom(c); return err },
	} {
		c, other := net.Pipe()
		go io.Copy(io.Discard, c)
		go c.Write(said[from])
		if err := end(other); !errors.Is(err, errSecret) {
			t.Errorf("what was sent from rank %d is sent again: %v, want %v", 1-from, err, errSecret)
		}
		c.Close()
		other.Close()
	}
}
