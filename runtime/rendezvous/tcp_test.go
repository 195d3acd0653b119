package rendezvous

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMasterAddress(t *testing.T) {
	for _, test := range []struct{ env, want, err string }{
		{"MASTER_ADDR=node1 MASTER_PORT=29500", "node1:30500", ""},
		{"MASTER_ADDR=fd00::1 MASTER_PORT=1", "[fd00::1]:1001", ""},
		{"MASTER_ADDR=node1 MASTER_PORT=64535", "node1:65535", ""},
		{"MASTER_ADDR=node1 MASTER_PORT=64536", "node1:63536", ""},
		{"MASTER_ADDR=node1 MASTER_PORT=65535", "node1:64535", ""},
		{"MASTER_ADDR=node1 MASTER_PORT=65536", "", `MASTER_PORT="65536" is not a port`},
		{"MASTER_ADDR=node1 MASTER_PORT=0", "", `MASTER_PORT="0" is not a port`},
		{"MASTER_ADDR=node1 MASTER_PORT=tcp://10.0.0.1:29500", "", "is not a port"},
		{"MASTER_ADDR=node1", "", "MASTER_ADDR and MASTER_PORT are not both set"},
		{"MASTER_PORT=29500", "", "MASTER_ADDR and MASTER_PORT are not both set"},
	} {
		if got, err := masterAddress(environment(test.env)); got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %s, %v; want %s%s", test.env, got, err, test.want, test.err)
		}
	}
}

func TestMasterAddressUnset(t *testing.T) {
	t.Setenv("MASTER_ADDR", "")
	if _, err := (TCP{At: Place{Count: 2}}).Share(t.Context(), "x", newID()); err == nil || !strings.Contains(err.Error(), `rendezvous: exchange "x": Address is empty`) {
		t.Errorf("%v", err)
	}
}

// TestDefaultAddress meets at the address derived from the environment.
func TestDefaultAddress(t *testing.T) {
	host, port, _ := net.SplitHostPort(freeAddress(t))
	n, _ := net.LookupPort("tcp", port)
	if n <= PortOffset {
		t.Skip("no port for the store")
	}
	t.Setenv("MASTER_ADDR", host)
	t.Setenv("MASTER_PORT", strconv.Itoa(n-PortOffset))
	ctx, id := withLimit(t, limit), newID()
	each(t, 2, func(rank int) error { return share(ctx, TCP{At: Place{Rank: rank, Count: 2}}, rank, "", id) })
}

// occupy listens at an address, until the returned function is called, and calls fn for each
// connection.
func occupy(t *testing.T, address string, fn func(net.Conn)) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fn(c)
			c.Close()
		}
	}()
	return func() { l.Close(); <-done }
}

// TestForeign checks that ranks get errors while another program uses the port, and that they meet
// when the program has ended.
func TestForeign(t *testing.T) {
	for name, speak := range map[string]func(net.Conn){
		"closes":  func(net.Conn) {},
		"garbage": func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"echoes": func(c net.Conn) {
			var h hello
			if binary.Read(c, binary.BigEndian, &h) == nil {
				binary.Write(c, binary.BigEndian, h)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkLeaks(t)
			address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
			stop := occupy(t, address, speak)
			eachInTime(t, 2, func(short context.Context, rank int) error {
				err := share(short, TCP{Address: address, At: Place{Rank: rank, Count: 2}}, rank, "", id)
				if want := []string{"another program", "the listener"}[rank]; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
					return errors.Join(errors.New("want "+want), err)
				}
				return nil
			})
			time.AfterFunc(50*time.Millisecond, stop)
			each(t, 2, func(rank int) error {
				return share(ctx, TCP{Address: address, At: Place{Rank: rank, Count: 2}}, rank, "", id)
			})
		})
	}
}

// TestStrangers checks that ranks meet although strangers connect to rank 0, and a rank connects
// and leaves again.
func TestStrangers(t *testing.T) {
	checkLeaks(t)
	address, ctx, id := freeAddress(t), withLimit(t, limit), newID()
	at := func(rank int) TCP { return TCP{Address: address, At: Place{Rank: rank, Count: 3}} }
	left := make(chan struct{})
	each(t, 3, func(rank int) error {
		if rank != 1 {
			if rank == 2 {
				select {
				case <-left:
				case <-ctx.Done():
				}
			}
			return share(ctx, at(rank), rank, "", id)
		}
		for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 100), string(magic[:]) + strings.Repeat("\x00", 40)} {
			c, err := net.Dial("tcp", address)
			for ; err != nil; c, err = net.Dial("tcp", address) { // rank 0 does not listen yet
				if ctx.Err() != nil {
					return err
				}
				time.Sleep(5 * time.Millisecond)
			}
			c.Write([]byte(text))
			defer c.Close()
		}
		for range 3 { // this rank itself also leaves, as if it was killed
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			share(short, at(1), 1, "", id)
			cancel()
		}
		time.Sleep(100 * time.Millisecond) // gives rank 0 time to see the connections
		close(left)
		return share(ctx, at(1), 1, "", id)
	})
}

// TestDisagree checks the errors of ranks that disagree about their count or their run.
func TestDisagree(t *testing.T) {
	checkLeaks(t)
	for _, test := range []struct {
		other Place
		want  [2]string
		soon  bool
	}{
		{Place{Rank: 1, Count: 3}, [2]string{"rank 1 expects 3, and rank 0 2", "rank 0 expects 2, and this rank 3"}, true},
		{Place{Rank: 1, Count: 2, Run: "other"}, [2]string{"a rank of another run, or at an exchange with another name, has connected", "rank 0 of another run, or of an exchange with another name"}, false},
	} {
		address := freeAddress(t)
		places := [2]Place{{Count: 2, Run: "one"}, test.other}
		if test.soon {
			places[1].Run = "one"
		}
		eachInTime(t, 2, func(ctx context.Context, rank int) error {
			err := share(ctx, TCP{Address: address, At: places[rank]}, rank, "x", newID())
			if err == nil || !strings.Contains(err.Error(), test.want[rank]) || (rank == 1 && test.soon) == errors.Is(err, context.DeadlineExceeded) {
				return errors.Join(errors.New("want "+test.want[rank]), err)
			}
			return nil
		})
	}
}
