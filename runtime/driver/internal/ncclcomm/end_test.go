//go:build linux && (amd64 || arm64) && !nogpu

package ncclcomm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

var reduce = []driver.CommOp{{Type: driver.Float32, Count: 1}}

// within runs a function, and fails the test if the function takes longer than limit.
func within(t *testing.T, what string, limit time.Duration, fn func() error) error {
	t.Helper()
	start := time.Now()
	err := fn()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v", what, took)
	}
	return err
}

// later runs a function after a short time, on another thread with the device current. The test
// fails if the function returns an error.
func (f *fake) later(fn func() error) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f.number(6, 1)
		time.Sleep(5 * time.Millisecond)
		if err := fn(); err != nil {
			f.t.Error(err)
		}
	})
	return &wg
}

// TestAbortCollect checks that AbortComm on another thread ends a hanging Collect.
func TestAbortCollect(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	_, err := f.RegisterComm(h, 0x1000, 64)
	ok(t, err)
	f.set("stuck group", 1)
	aborts := f.later(func() error { return f.AbortComm(h) })
	err = within(t, "Collect", 5*time.Second, func() error { return f.Collect(stream, h, reduce) })
	if !errors.Is(err, errAborted) {
		t.Errorf("%v", err)
	}
	aborts.Wait()
	f.sound()
	f.calls()
	ok(t, f.AbortComm(h))
	f.want()
	for what, err := range map[string]error{"collect": f.Collect(stream, h, reduce), "error": f.CommError(h)} {
		if !errors.Is(err, errAborted) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.CommReady(h); !errors.Is(err, errAborted) {
		t.Errorf("ready: %v", err)
	}
	f.destroy(h)
	f.want("ncclCommAbort(c2)") // the abort also releases the registration
}

// TestAbortMaking checks that AbortComm and DestroyComm end the making of a rank, while it joins
// and while its communicators are split.
func TestAbortMaking(t *testing.T) {
	for _, stuck := range []string{"init", "split"} {
		for _, destroy := range []bool{false, true} {
			t.Run(fmt.Sprint(stuck, destroy), func(t *testing.T) {
				f := newFake(t, 22803)
				f.set("stuck "+stuck, 1)
				h := f.begin(0, 2)
				for range 20 {
					if done, err := f.CommReady(h); done || err != nil {
						t.Fatalf("%t, %v", done, err)
					}
					time.Sleep(20 * time.Microsecond)
				}
				if !destroy {
					ok(t, within(t, "AbortComm", time.Second, func() error { return f.AbortComm(h) }))
					if _, err := f.CommReady(h); !errors.Is(err, errAborted) {
						t.Errorf("ready: %v", err)
					}
				}
				ok(t, within(t, "DestroyComm", time.Second, func() error { return f.DestroyComm(h) }))
			})
		}
	}
}

// TestAbortSplit checks that, while SplitComm or ShrinkComm waits for another rank, aborting the
// old or the new rank aborts both.
func TestAbortSplit(t *testing.T) {
	for _, shrink := range []bool{false, true} {
		for _, child := range []bool{false, true} {
			t.Run(fmt.Sprintf("shrink=%t,child=%t", shrink, child), func(t *testing.T) {
				f := newFake(t, 22803)
				h := f.comm(0, 3)
				f.set("stuck split", 1)
				var n driver.Comm
				var err error
				if shrink {
					n, err = f.ShrinkComm(h, []int{1}, false)
				} else {
					n, err = f.SplitComm(h, 1, 2)
				}
				ok(t, err)
				if done, err := f.CommReady(n); done || err != nil {
					t.Fatalf("%t, %v", done, err)
				}
				which := h
				if child {
					which = n
				}
				// The second SplitComm waits for the first split, and uses h meanwhile.
				aborts := f.later(func() error { return f.AbortComm(which) })
				_, err = f.SplitComm(h, driver.NoColor, 0)
				if !errors.Is(err, errAborted) {
					t.Errorf("a second split: %v", err)
				}
				aborts.Wait()
				if _, err := f.CommReady(n); !errors.Is(err, errAborted) {
					t.Errorf("ready: %v", err)
				}
				if err := f.Collect(stream, h, reduce); !errors.Is(err, errAborted) {
					t.Errorf("operations: %v", err)
				}
				if child {
					f.destroy(h)
					f.destroy(n)
				} else {
					f.destroy(n)
					f.destroy(h)
				}
			})
		}
	}
}

// TestAbortNobodyLooked checks that, after a split has completed, aborting the old or the new rank
// does not affect the other one, even if CommReady was not called in between.
func TestAbortNobodyLooked(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 3)
	complete := func() { // waits for the split, but asks only the library, so that the rank does not notice the end of the split
		for r := f.ranks[h]; ; time.Sleep(50 * time.Microsecond) {
			if done, err := poll(r.lib, r.source); done || err != nil {
				ok(t, err)
				return
			}
		}
	}
	n, err := f.SplitComm(h, 1, 2)
	ok(t, err)
	complete()
	ok(t, f.AbortComm(n))
	ok(t, f.Collect(stream, h, reduce))
	f.destroy(n)

	n, err = f.SplitComm(h, 1, 2)
	ok(t, err)
	complete()
	ok(t, f.AbortComm(h))
	ok(t, f.ready(n))
	f.destroy(n)
	f.destroy(h)
}

// TestStuckFinalize checks that AbortComm ends a DestroyComm whose ncclCommFinalize hangs.
func TestStuckFinalize(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.set("stuck finalize", 1)
	aborts := f.later(func() error { return f.AbortComm(h) })
	ok(t, within(t, "DestroyComm", 2*time.Second, func() error { return f.DestroyComm(h) }))
	aborts.Wait()
}

// TestStuckSource checks that AbortComm ends a DestroyComm that waits for a split of the rank.
func TestStuckSource(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.set("stuck split", 1)
	n, err := f.SplitComm(h, 0, 0)
	ok(t, err)
	aborts := f.later(func() error { return f.AbortComm(h) })
	ok(t, within(t, "DestroyComm", 2*time.Second, func() error { return f.DestroyComm(h) }))
	aborts.Wait()
	f.destroy(n)
}

// TestLeftBehind checks that AbortComm and DestroyComm return an error if the library does not
// return from destroying a communicator.
func TestLeftBehind(t *testing.T) {
	f := newFake(t, 22803)
	f.patience = 20 * time.Millisecond
	h := f.comm(0, 2)
	f.set("stuck destroy", 1)
	aborts := f.later(func() error {
		if err := f.AbortComm(h); !errors.Is(err, errLeft) {
			return fmt.Errorf("abort: %w", err)
		}
		return nil
	})
	if err := within(t, "DestroyComm", 2*time.Second, func() error { return f.DestroyComm(h) }); !errors.Is(err, errLeft) {
		t.Errorf("%v", err)
	}
	aborts.Wait()
	f.set("stuck destroy", 0)
	for end := time.Now().Add(5 * time.Second); f.live() != 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// TestOccupied checks that calls return ErrBusy while another call uses the communicator, but
// CommError does not.
func TestOccupied(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.set("stuck group", 1)
	others := f.later(func() error {
		_, split := f.SplitComm(h, 0, 0)
		_, register := f.RegisterComm(h, 1, 1)
		for what, err := range map[string]error{"collect": f.Collect(stream, h, reduce), "split": split, "register": register, "destroy": f.DestroyComm(h)} {
			if !errors.Is(err, driver.ErrBusy) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := f.CommError(h); err != nil {
			t.Errorf("error: %v", err)
		}
		f.set("stuck group", 0)
		return nil
	})
	ok(t, f.Collect(stream, h, reduce))
	others.Wait()
	f.destroy(h)
}

func TestCommError(t *testing.T) {
	f := newFake(t, 22803)
	h := f.comm(0, 2)
	f.set("state", int(nccl.ErrorRemote))
	err := f.CommError(h)
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Op != "comm error" || !errors.Is(err, nccl.ErrorRemote) || !strings.Contains(err.Error(), "as the fake was told") {
		t.Errorf("%v", err)
	}
	f.set("state", 0)
	ok(t, f.CommError(h))
	f.destroy(h)
}

// TestOldAbort checks that, with a release without ncclCommSplit, AbortComm aborts the only
// communicator, even during another call.
func TestOldAbort(t *testing.T) {
	f := newFake(t, 21602)
	h := f.comm(0, 2)
	ok(t, f.AbortComm(h))
	f.want("ncclCommAbort(c1)")
	f.destroy(h)
	f.want()

	h = f.comm(0, 2)
	f.set("stuck group", 1)
	aborts := f.later(func() error { return f.AbortComm(h) })
	if err := f.Collect(stream, h, reduce); !errors.Is(err, errAborted) {
		t.Errorf("%v", err)
	}
	aborts.Wait()
	if faults := f.text(2); len(faults) != 1 || !strings.Contains(faults[0], "ncclCommAbort takes c2, and another call is in it") {
		t.Errorf("faults: %v", faults)
	}
	f.destroy(h)
}

// TestEveryCallFails checks that nothing leaks and nothing hangs, whichever one of the listed calls
// fails.
func TestEveryCallFails(t *testing.T) {
	for fn, times := range map[string]int{
		"ncclGetUniqueId": 1, "ncclCommInitRankConfig": 1, "ncclCommGetAsyncError": 6, "ncclCommUserRank": 3, "ncclCommCount": 3, "ncclCommSplit": 7,
		"ncclCommShrink": 1, "ncclGroupStart": 2, "ncclAllReduce": 2, "ncclGroupEnd": 2, "ncclRedOpCreatePreMulSum": 1, "ncclCommFinalize": 7,
	} {
		for n := 1; n <= times; n++ {
			t.Run(fmt.Sprint(fn, n), func(t *testing.T) {
				f := newFake(t, 22803)
				f.set(fmt.Sprint(fn, "-", n), int(nccl.ErrorSystem))
				var live []driver.Comm
				keep := func(h driver.Comm, err error) driver.Comm {
					if err != nil {
						return 0
					}
					live = append(live, h)
					for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
						if done, err := f.CommReady(h); done || err != nil {
							return h
						}
					}
					t.Error("the rank does not become ready")
					return h
				}
				id, _ := f.NewUniqueID()
				h := keep(f.NewComm(driver.CommDesc{ID: id, Count: 4}))
				for _, r := range []driver.Reduction{driver.Sum, driver.PreMulSum} {
					f.Collect(stream, h, []driver.CommOp{{Type: driver.Float32, Count: 1, Reduction: r}})
				}
				keep(f.SplitComm(h, 0, 0))
				keep(f.ShrinkComm(h, []int{1}, true))
				for _, h := range live {
					f.DestroyComm(h)
				}
				f.set(fn, 0)
				if len(f.ranks) != 0 {
					t.Errorf("%d ranks are left", len(f.ranks))
				}
			})
		}
	}
}

// TestAbortAnywhere checks that AbortComm can be called on another thread at any time.
func TestAbortAnywhere(t *testing.T) {
	f := newFake(t, 22803)
	for i := range 100 {
		h := f.begin(0, 2)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Duration(i*37%100) * 40 * time.Microsecond)
			f.AbortComm(h + driver.Comm(i%2)) // aborts the rank, or the rank that SplitComm makes from it
		})
		if f.ready(h) == nil {
			n, err := f.SplitComm(h, 0, 0)
			f.Collect(stream, h, reduce)
			f.CommError(h)
			if err == nil {
				if i%3 == 0 {
					f.ready(n)
				}
				f.Collect(stream, n, reduce)
			}
		}
		for _, h := range []driver.Comm{h + driver.Comm(i%2), h + 1 - driver.Comm(i%2)} {
			f.DestroyComm(h)
		}
		wg.Wait()
		f.last = h + 1 // skip the handle of the split rank, even if SplitComm failed
		f.sound()
	}
}
