package rendezvous

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// A sharer is the common interface of this package's types.
type sharer interface {
	Place() (rank, count int, err error)
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// limit is the longest time that a test gives an exchange to succeed.
const limit = 20 * time.Second

// ways are the ways to exchange ids. A way's function prepares a new folder or address, and returns
// a function that makes the sharer of each rank.
var ways = map[string]func(t *testing.T) (at func(Place) sharer){
	"files": func(t *testing.T) func(Place) sharer {
		dir := t.TempDir() + "/sub/folder"
		return func(p Place) sharer { return File{Path: dir, At: p} }
	},
	"tcp": func(t *testing.T) func(Place) sharer {
		address := freeAddress(t)
		return func(p Place) sharer { return TCP{Address: address, At: p} }
	},
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newID() []byte {
	id := make([]byte, 128)
	rand.Read(id)
	return id
}

func withLimit(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// each calls a function for all ranks concurrently, and reports errors.
func each(t *testing.T, count int, fn func(rank int) error) {
	t.Helper()
	if err := all(count, fn); err != nil {
		t.Error(err)
	}
}

// eachInTime calls a function for all ranks concurrently, with a context that ends after a short
// time. While there are errors, eachInTime tries again with a longer time: on a busy machine a rank
// may need more time.
func eachInTime(t *testing.T, count int, fn func(ctx context.Context, rank int) error) {
	t.Helper()
	inTime(t, 100*time.Millisecond, func(short time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), short)
		defer cancel()
		return all(count, func(rank int) error { return fn(ctx, rank) })
	})
}

// inTime calls a function with a time that is usually long enough, and retries with a longer time
// while the function returns an error.
func inTime(t *testing.T, short time.Duration, fn func(short time.Duration) error) {
	t.Helper()
	for ; ; short *= 4 {
		err := fn(short)
		if err == nil {
			return
		}
		if short > limit/8 {
			t.Error(err)
			return
		}
	}
}

// all calls a function for all ranks concurrently.
func all(count int, fn func(rank int) error) error {
	errs := make([]error, count)
	var wg sync.WaitGroup
	for r := range count {
		wg.Go(func() {
			if err := fn(r); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// share calls Share of a rank, with id on rank 0 and nil on other ranks. It checks that the rank
// gets id.
func share(ctx context.Context, s sharer, rank int, name string, id []byte) error {
	mine := id
	if rank > 0 {
		mine = nil
	}
	got, err := s.Share(ctx, name, mine)
	if err == nil && !bytes.Equal(got, id) {
		err = fmt.Errorf("%q: got another id", name)
	}
	return err
}

func TestShare(t *testing.T) {
	for way, begin := range ways {
		for _, count := range []int{1, 2, 7} {
			t.Run(fmt.Sprintf("%s, %d ranks", way, count), func(t *testing.T) {
				checkLeaks(t)
				ctx, at, id := withLimit(t, limit), begin(t), newID()
				each(t, count, func(rank int) error {
					time.Sleep(time.Duration(rank*7%5) * 10 * time.Millisecond) // rank 0 is not always the first to come
					return share(ctx, at(Place{Rank: rank, Count: count}), rank, "communicator", id)
				})
			})
		}
	}
}

// TestAgain exchanges one id after the other under the same name. No rank may get an earlier id.
func TestAgain(t *testing.T) {
	for way, begin := range ways {
		t.Run(way, func(t *testing.T) {
			checkLeaks(t)
			const count = 3
			ctx, at := withLimit(t, limit), begin(t)
			var ids [8][]byte
			for i := range ids {
				ids[i] = newID()
			}
			each(t, count, func(rank int) error {
				s := at(Place{Rank: rank, Count: count})
				for i, id := range ids {
					if rank == i%count {
						time.Sleep(5 * time.Millisecond)
					}
					if err := share(ctx, s, rank, "", id); err != nil {
						return fmt.Errorf("exchange %d: %w", i, err)
					}
				}
				return nil
			})
		})
	}
}

// TestNames checks that concurrent exchanges with different names or runs do not mix.
func TestNames(t *testing.T) {
	for way, begin := range ways {
		t.Run(way, func(t *testing.T) {
			checkLeaks(t)
			const count, names = 2, 3
			ctx, at := withLimit(t, limit), begin(t)
			var ids [2 * names][]byte
			for i := range ids {
				ids[i] = newID()
			}
			each(t, count*len(ids), func(i int) error {
				rank, n := i%count, i/count
				return share(ctx, at(Place{Rank: rank, Count: count, Run: fmt.Sprint("run", n/names)}), rank, fmt.Sprint("name", n%names), ids[n])
			})
		})
	}
}

// TestUnknownRanks checks that ranks meet if all of them use the same File or TCP, whose Place says
// rank 0.
func TestUnknownRanks(t *testing.T) {
	for way, begin := range ways {
		t.Run(way, func(t *testing.T) {
			ctx, id := withLimit(t, limit), newID()
			s := begin(t)(Place{Count: 4})
			each(t, 4, func(rank int) error { return share(ctx, s, rank, "", id) })
		})
	}
}

// TestMissing checks that ranks that wait for a missing rank end with their contexts. The error of
// rank 0 must list the ranks that have come. If rank 0 is missing, the errors must name rank 0.
func TestMissing(t *testing.T) {
	for way, begin := range ways {
		for _, test := range []struct {
			missing int
			want    map[int]string
		}{
			{2, map[int]string{0: "2 of 3 other ranks have come (1, 3): ", 1: ": ", 3: ": "}},
			{0, map[int]string{1: "rank 0", 2: "rank 0", 3: "rank 0"}},
		} {
			t.Run(fmt.Sprintf("%s, rank %d", way, test.missing), func(t *testing.T) {
				checkLeaks(t)
				at, id := begin(t), newID()
				end := errors.New("out of patience")
				inTime(t, 400*time.Millisecond, func(short time.Duration) error {
					return all(4, func(rank int) error {
						if rank == test.missing {
							return nil
						}
						ctx, cancel := context.WithTimeoutCause(t.Context(), short+time.Duration(min(rank, 1))*short/2, end)
						defer cancel()
						err := share(ctx, at(Place{Rank: rank, Count: 4, Run: "r1"}), rank, "x", id)
						if want := test.want[rank]; !errors.Is(err, end) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `rendezvous: exchange "x" of run "r1" `) {
							return fmt.Errorf("got %v, want %q", err, want)
						}
						return nil
					})
				})
			})
		}
	}
}

// TestLate checks that two ranks meet if one of them gave up before the other came, and tries
// again.
func TestLate(t *testing.T) {
	for way, begin := range ways {
		for _, late := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, rank %d", way, late), func(t *testing.T) {
				checkLeaks(t)
				at, id := begin(t), newID()
				ctx, early := withLimit(t, limit), 1-late
				short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				if err := share(short, at(Place{Rank: early, Count: 2}), early, "", newID()); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("alone: %v", err)
				}
				each(t, 2, func(rank int) error { return share(ctx, at(Place{Rank: rank, Count: 2}), rank, "", id) })
			})
		}
	}
}

// TestRank0Again makes rank 0 give up and send another id. All ranks must end with the new id.
func TestRank0Again(t *testing.T) {
	for way, begin := range ways {
		t.Run(way, func(t *testing.T) {
			checkLeaks(t)
			ctx, at, id := withLimit(t, limit), begin(t), newID()
			gaveUp := make(chan struct{})
			each(t, 3, func(rank int) error {
				s := at(Place{Rank: rank, Count: 3})
				switch rank {
				case 0:
					short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
					err := share(short, s, 0, "", newID())
					cancel()
					close(gaveUp)
					if err == nil {
						return errors.New("it did not wait for rank 2")
					}
				case 2:
					<-gaveUp
				}
				return share(ctx, s, rank, "", id)
			})
		})
	}
}

func TestArguments(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	here := Place{Count: 2}
	other := Place{Rank: 1, Count: 2}
	for name, test := range map[string]struct {
		s    sharer
		ctx  context.Context
		id   []byte
		want string
	}{
		"no path":               {File{At: here}, nil, newID(), "rendezvous: exchange through files in : Path is empty"},
		"a path that is a file": {File{Path: file(t), At: other}, nil, nil, "not a directory"},
		"same on rank 0":        {File{Path: file(t), At: here}, nil, newID(), "not a directory"},
		"no id":                 {File{Path: t.TempDir(), At: here}, nil, []byte{}, "rank 0 passes 0 bytes"},
		"large id":              {File{Path: t.TempDir(), At: here}, nil, make([]byte, maxID+1), "rank 0 passes 65537 bytes"},
		"canceled":              {File{Path: t.TempDir(), At: here}, canceled, newID(), context.Canceled.Error()},
		"no port":               {TCP{Address: "host", At: other}, nil, nil, "not a host:port that all ranks can connect to"},
		"no host":               {TCP{Address: ":29", At: here}, nil, newID(), "not a host:port that all ranks can connect to"},
		"port 0":                {TCP{Address: "host:0", At: here}, nil, newID(), "not a host:port that all ranks can connect to"},
		"no id by TCP":          {TCP{Address: "localhost:29", At: here}, nil, []byte{}, "rank 0 passes 0 bytes"},
		"canceled TCP":          {TCP{Address: "localhost:29", At: other}, canceled, nil, context.Canceled.Error()},
		"listens elsewhere":     {TCP{Address: "localhost:29", Listen: "192.0.2.1:29", At: here}, nil, newID(), "192.0.2.1:29"},
		"bad place":             {TCP{Address: "localhost:29", At: Place{Rank: 2, Count: 2}}, nil, newID(), "there is no rank 2 of 2"},
		"bad place, files":      {File{Path: "x", At: Place{Rank: 2, Count: 2}}, nil, newID(), "there is no rank 2 of 2"},
		"no function":           {Func{At: here}, nil, newID(), "Func has no Exchange"},
	} {
		t.Run(name, func(t *testing.T) {
			checkLeaks(t)
			ctx := test.ctx
			if ctx == nil {
				ctx = withLimit(t, limit)
			}
			if id, err := test.s.Share(ctx, "", test.id); err == nil || id != nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "rendezvous: ") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func file(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return f.Name()
}

func TestFunc(t *testing.T) {
	ctx, id := t.Context(), newID()
	f := Func{At: Place{Rank: 1, Count: 2}, Exchange: func(_ context.Context, name string, mine []byte) ([]byte, error) {
		switch {
		case name == "error":
			return nil, errors.New("no store")
		case name == "nothing" || mine != nil:
			return nil, nil
		}
		return id, nil
	}}
	if got, err := f.Share(ctx, "x", nil); err != nil || !bytes.Equal(got, id) {
		t.Errorf("%x, %v", got, err)
	}
	for name, want := range map[string]string{
		"error":   `rendezvous: exchange "error" by a function: no store`,
		"nothing": `rendezvous: exchange "nothing" by a function: the function has returned no id`,
	} {
		if _, err := f.Share(ctx, name, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestNCCLCommID(t *testing.T) {
	ctx, id := t.Context(), newID()
	n := NCCLCommID{Place{Rank: 1, Count: 2}}
	if !n.EachRankMakesID() {
		t.Error("only rank 0 makes the id")
	}
	t.Setenv(commID, "")
	if _, err := n.Share(ctx, "x", id); err == nil || !strings.Contains(err.Error(), "NCCL_COMM_ID is not set") {
		t.Errorf("without the variable: %v", err)
	}
	t.Setenv(commID, "host:1234")
	if got, err := n.Share(ctx, "x", id); err != nil || !bytes.Equal(got, id) {
		t.Errorf("%x, %v", got, err)
	}
	if _, err := n.Share(ctx, "x", nil); err == nil || !strings.Contains(err.Error(), "this rank has made no id") {
		t.Errorf("without an id: %v", err)
	}
}
