package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dial connects to a rank 0 that may not listen yet.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	for pace := tcpPace(); ; {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c, nil
		}
		if end := pace.wait(ctx); end != nil {
			return nil, errors.Join(end, err)
		}
	}
}

// noSecret returns the key of ranks without a secret.
func noSecret(t *testing.T) [32]byte {
	t.Helper()
	key, err := TCP{}.key(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestNoSuchRankByTCP makes peers greet rank 0 as impossible ranks. No peer may get the id, and
// rank 0 must not count the peers: it must still wait for rank 1.
func TestNoSuchRankByTCP(t *testing.T) {
	checkLeaks(t)
	const count = 2
	address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
	ended := make(chan error, 1)
	go func() { ended <- share(ctx, TCP{Address: address, At: Place{Count: count}}, 0, "", id) }()
	for _, rank := range []int{0, count, count + 1, math.MaxInt32, -2, math.MinInt32} {
		x := tcpExchange{address: address, token: token("", ""), rank: rank, count: count}
		x.key = noSecret(t)
		c, err := dial(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.takeFrom(c); err == nil {
			t.Errorf("rank %d of %d got the id", rank, count)
		}
		c.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("rank 0 did not wait for rank 1: %v", err)
	default:
	}
	if err := share(ctx, TCP{Address: address, At: Place{Rank: 1, Count: count}}, 1, "", id); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSameRankTwice makes two peers take part with the same rank. Rank 0 and one of the two must
// get an error that says so.
func TestSameRankTwice(t *testing.T) {
	checkLeaks(t)
	eachInTime(t, 1, func(short context.Context, _ int) error {
		address := freeAddress(t)
		errs := make([]error, 3)
		all(3, func(i int) error {
			rank := min(i, 1)
			errs[i] = share(short, TCP{Address: address, At: Place{Rank: rank, Count: 3}}, rank, "", newID())
			return nil
		})
		const want = "two processes have the same rank"
		if !strings.Contains(fmt.Sprint(errs[0]), "1 of 2 other ranks have come (1)") || !strings.Contains(fmt.Sprint(errs[0]), want) {
			return fmt.Errorf("rank 0: %w", errs[0])
		}
		if strings.Contains(fmt.Sprint(errs[1]), want) == strings.Contains(fmt.Sprint(errs[2]), want) {
			return fmt.Errorf("want one to say %q: %w, %w", want, errs[1], errs[2])
		}
		return nil
	})
}

// otherAddress returns an address of this machine that is not a loopback address.
func otherAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("needs an interface that is not the loopback one")
	return ""
}

// TestListensAtAddress checks that rank 0 listens at its address, and nowhere else unless Listen is
// set.
func TestListensAtAddress(t *testing.T) {
	checkLeaks(t)
	_, port, _ := net.SplitHostPort(freeAddress(t))
	address, ctx, id := net.JoinHostPort(otherAddress(t), port), withLimit(t, limit), newID()
	for listen, reached := range map[string]bool{"": false, ":" + port: true} {
		ended := make(chan error, 1)
		go func() {
			ended <- share(ctx, TCP{Address: address, Listen: listen, At: Place{Count: 2}}, 0, "", id)
		}()
		c, err := dial(ctx, address) // returns when rank 0 listens
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		c, err = net.Dial("tcp", "127.0.0.1:"+port)
		if (err == nil) != reached {
			t.Errorf("with Listen %q, at the loopback interface: %v", listen, err)
		}
		if err == nil {
			c.Close()
		}
		if err := share(ctx, TCP{Address: address, At: Place{Rank: 1, Count: 2}}, 1, "", id); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestFlood connects many silent peers. Rank 0 must drop the oldest and hold a bounded number, and
// the ranks must meet.
func TestFlood(t *testing.T) {
	checkLeaks(t)
	const count, more = 3, 40
	address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
	at := func(rank int) TCP { return TCP{Address: address, At: Place{Rank: rank, Count: count}} }
	ended := make(chan error, 1)
	go func() { ended <- share(ctx, at(0), 0, "", id) }()
	var flood []net.Conn
	for i := range count + strangers + more {
		c, err := dial(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(magic[:i%len(magic)])
		flood = append(flood, c)
	}
	for i, c := range flood[:more] {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d: %d bytes", i, n)
		}
	}
	if err := all(count-1, func(i int) error { return share(ctx, at(i+1), i+1, "", id) }); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOldestDropped checks that, of too many connections in their greeting, the oldest is closed. A
// connection that has finished its greeting stays open.
func TestOldestDropped(t *testing.T) {
	const count = 3
	s := &tcpServer{x: &tcpExchange{count: count}}
	var peers []net.Conn
	for i := range count + strangers + 11 {
		c, peer := net.Pipe()
		defer c.Close()
		peers = append(peers, peer)
		s.begin(c)
		if i == 0 {
			s.end(c) // this peer has finished its greeting
		}
	}
	if len(s.greeting) != count+strangers {
		t.Fatalf("%d are greeted, want %d", len(s.greeting), count+strangers)
	}
	for i, p := range peers {
		p.SetReadDeadline(time.Now())
		_, err := p.Read(make([]byte, 1))
		if closed := errors.Is(err, io.EOF); closed != (i > 0 && i <= 10) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// TestSlowPeer checks that rank 0 drops a peer after helloTime, although each second the peer sends
// one byte of its hello or of its proof.
func TestSlowPeer(t *testing.T) {
	for step, quick := range map[string]int{"nothing": 0, "hello": len(encode(hello{}))} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &tcpExchange{token: token("", ""), count: 2}
				s := &tcpServer{x: x, all: make(chan struct{}), ctx: t.Context(), waiting: map[net.Conn]waiter{}}
				c, rank0 := net.Pipe()
				go io.Copy(io.Discard, c)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					b := append(encode(hello{magic, x.token, 1, 2, newNonce()}), make([]byte, 100)...)
					_, err := c.Write(b[:quick])
					for err == nil {
						time.Sleep(time.Second)
						_, err = c.Write(b[quick : quick+1])
						quick++
					}
				}()
				began := time.Now()
				err := s.serve(rank0)
				took := time.Since(began)
				rank0.Close()
				<-ended
				if !errors.Is(err, os.ErrDeadlineExceeded) || took != helloTime {
					t.Errorf("%v after %v, want the end of %v", err, took, helloTime)
				}
			})
		})
	}
}

// TestMoreThanProof makes a rank send another byte after its proof. Rank 0 must no longer count the
// rank.
func TestMoreThanProof(t *testing.T) {
	checkLeaks(t)
	address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
	x := tcpExchange{address: address, token: token("", ""), rank: 1, count: 3}
	at := func(rank int) TCP { return TCP{Address: address, At: Place{Rank: rank, Count: 3}} }
	x.key = noSecret(t)
	ended := make(chan error, 1)
	go func() { ended <- share(ctx, at(0), 0, "", id) }()
	c, err := dial(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := x.takeFrom(talker{c}); err == nil {
		t.Error("it got the id")
	}
	if err := all(2, func(i int) error { return share(ctx, at(i+1), i+1, "", id) }); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A talker is a connection that sends one extra byte after a proof.
type talker struct{ net.Conn }

func (c talker) Write(b []byte) (int, error) {
	if len(b) == len(mac{}) {
		return c.Conn.Write(append(bytes.Clone(b), 0))
	}
	return c.Conn.Write(b)
}

// TestTooLargeID makes rank 0 announce an id of no bytes or above the size limit. The rank must
// return an error without waiting for the id.
func TestTooLargeID(t *testing.T) {
	for _, size := range []uint32{0, maxID + 1, math.MaxUint32} {
		c, rank0 := net.Pipe()
		go rank0.Write(encode(size))
		var tr transcript
		if id, err := tr.receiveID(c); err == nil || id != nil || !strings.Contains(err.Error(), fmt.Sprintf("announces %d bytes", size)) {
			t.Errorf("%d bytes: %v", size, err)
		}
		c.Close()
		rank0.Close()
	}
}

// TestListenElsewhere uses an address of another machine, as with a proxy. The error must say what
// to set.
func TestListenElsewhere(t *testing.T) {
	err := share(withLimit(t, limit), TCP{Address: "203.0.113.1:4000", At: Place{Count: 2}}, 0, "", newID())
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `set Listen to one of this machine that they reach, or to ":4000" for all interfaces`) {
		t.Error(err)
	}
}

// TestUnreachable checks that listening only at a loopback address is an error, unless the
// exchange's address is itself a loopback address.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, want := range map[string]bool{"node1:4000": true, "10.0.0.1:4000": true, "localhost:4000": false, "127.0.1.1:4000": false, "[::1]:4000": false} {
		err := (&tcpExchange{address: address}).unreachable([]net.Listener{l})
		if (err != nil) != want || want && !strings.Contains(err.Error(), `or to ":4000" for all interfaces`) {
			t.Errorf("%s: %v, want an error: %v", address, err, want)
		}
	}
	other, err := net.Listen("tcp", net.JoinHostPort(otherAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := (&tcpExchange{address: "node1:4000"}).unreachable([]net.Listener{l, other}); err != nil {
		t.Error(err)
	}
}
