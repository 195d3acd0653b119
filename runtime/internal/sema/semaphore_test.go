package sema_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// wantValue checks that a semaphore is at a value and has not failed.
func wantValue(t testing.TB, s *gpu.Semaphore, value uint64) {
	t.Helper()
	if v, err := s.Query(); v != value || err != nil {
		t.Errorf("the semaphore is at %d, %v; want %d", v, err, value)
	}
}

// timepoints returns the number of timepoints that are registered with a semaphore.
func timepoints(s *gpu.Semaphore) int { return testkit.Semaphore(s).Waiting() }

// wantNoTimepoints checks that no timepoints are registered with the semaphores.
func wantNoTimepoints(t testing.TB, all ...*gpu.Semaphore) {
	t.Helper()
	for i, s := range all {
		if n := timepoints(s); n > 0 {
			t.Errorf("semaphore %d has %d timepoints left", i, n)
		}
	}
}

// ended is a context that has ended. A wait with this context polls and does not block.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// fired returns a function for OnReached, and a channel that receives the argument of each call.
func fired() (func(error), chan error) {
	c := make(chan error, 16)
	return func(err error) { c <- err }, c
}

// once checks that a channel has exactly one result, and returns that result.
func once(t testing.TB, c chan error) error {
	t.Helper()
	select {
	case err := <-c:
		if len(c) > 0 {
			t.Errorf("called %d times more", len(c))
		}
		return err
	default:
		t.Error("not called")
		return nil
	}
}

// never is the check that a channel has no result.
func never(t testing.TB, c chan error) {
	t.Helper()
	if n := len(c); n > 0 {
		t.Errorf("called %d times, first with %v", n, <-c)
	}
}

func TestSemaphoreValue(t *testing.T) {
	checkLeaks(t)
	t.Run("B1 a new semaphore reports its initial value", func(t *testing.T) {
		for _, v := range []uint64{0, 1, 123, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1 << 63, gpu.MaxValue} {
			wantValue(t, newSemaphore(t, v), v)
		}
	})
	t.Run("B2 a signal sets the value, which may jump", func(t *testing.T) {
		s := newSemaphore(t, 0)
		for _, v := range []uint64{2, 3, 40, 1_000_000, 1<<31 - 1, 1 << 40, gpu.MaxValue} {
			signal(t, s, v)
			wantValue(t, s, v)
		}
	})
	t.Run("B3 a lower value is refused and changes nothing", func(t *testing.T) {
		s := newSemaphore(t, 5)
		for v := range uint64(5) {
			if err := s.Signal(v); !errors.Is(err, gpu.ErrValue) {
				t.Errorf("Signal(%d) = %v", v, err)
			}
		}
		wantValue(t, s, 5)
		signal(t, s, 6)
	})
	t.Run("B4 the equal value is refused", func(t *testing.T) {
		s := newSemaphore(t, 0)
		for range 2 {
			if err := s.Signal(0); !errors.Is(err, gpu.ErrValue) {
				t.Errorf("Signal(0) at 0 = %v", err)
			}
		}
		signal(t, s, gpu.MaxValue)
		if err := s.Signal(gpu.MaxValue); !errors.Is(err, gpu.ErrValue) {
			t.Errorf("Signal at the end = %v", err)
		}
		wantValue(t, s, gpu.MaxValue)
	})
	t.Run("B5 concurrent signals never lose the maximum", func(t *testing.T) {
		const goroutines, each = 8, 1000
		s := newSemaphore(t, 0)
		var accepted atomic.Int64
		var wg sync.WaitGroup
		stop := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for last := uint64(0); ; {
				v, err := s.Query()
				if v < last || err != nil {
					t.Errorf("the value went from %d to %d, %v", last, v, err)
				}
				last = v
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		for g := range uint64(goroutines) {
			wg.Go(func() {
				for i := range uint64(each) {
					switch err := s.Signal(i*goroutines + g + 1); {
					case err == nil:
						accepted.Add(1)
					case !errors.Is(err, gpu.ErrValue):
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		<-watched
		wantValue(t, s, goroutines*each)
		if n := accepted.Load(); n < each || n > goroutines*each {
			t.Errorf("%d signals were accepted", n)
		}
	})
	t.Run("B6 a value above the highest is refused", func(t *testing.T) {
		if s, err := gpu.NewSemaphore(math.MaxUint64); s != nil || !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("NewSemaphore = %v, %v", s, err)
		}
		s := newSemaphore(t, 7)
		if err := s.Signal(math.MaxUint64); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("Signal = %v", err)
		}
		wantValue(t, s, 7)
	})
	t.Run("B7 a failed semaphore refuses a signal with its failure", func(t *testing.T) {
		s := newSemaphore(t, 7)
		s.Fail(io.ErrUnexpectedEOF)
		if err := s.Signal(8); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Signal = %v", err)
		}
		if v, err := s.Query(); v != 7 || err == nil {
			t.Errorf("Query = %d, %v", v, err)
		}
	})
	t.Run("B8 callbacks hold no lock and may signal", func(t *testing.T) {
		s, other := newSemaphore(t, 0), newSemaphore(t, 0)
		var order []string
		s.OnReached(1, func(error) {
			order = append(order, "one")
			signal(t, s, 2) // raises the semaphore whose function is running
			signal(t, other, 1)
			if v, err := s.Query(); v != 2 || err != nil {
				t.Errorf("in the callback: %d, %v", v, err)
			}
		})
		s.OnReached(2, func(error) { order = append(order, "two") })
		other.OnReached(1, func(error) { order = append(order, "other") })
		signal(t, s, 1)
		if want := []string{"one", "two", "other"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
	t.Run("B10 a query returns while others wait and signal", func(t *testing.T) {
		s := newSemaphore(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { s.Wait(ctx, 10) })
		}
		for v := range uint64(9) {
			signal(t, s, v+1)
			wantValue(t, s, v+1)
		}
		cancel()
		wg.Wait()
		wantNoTimepoints(t, s)
	})
}

func TestSemaphoreFailure(t *testing.T) {
	checkLeaks(t)
	cause := fmt.Errorf("a page of memory went bad: %w", io.ErrUnexpectedEOF)
	t.Run("B11 B12 a query returns the failure itself, separate from the value", func(t *testing.T) {
		s := newSemaphore(t, 9)
		s.Fail(cause)
		if v, err := s.Query(); v != 9 || err != cause {
			t.Errorf("Query = %d, %v", v, err)
		}
	})
	t.Run("B13 B25 the first failure wins and stays", func(t *testing.T) {
		s := newSemaphore(t, 0)
		s.Fail(cause)
		s.Fail(io.ErrClosedPipe)
		s.Close()
		for range 3 {
			if _, err := s.Query(); err != cause {
				t.Errorf("Query = %v", err)
			}
			s.Signal(5)
		}
	})
	t.Run("B13 one of several concurrent failures wins", func(t *testing.T) {
		for range 200 {
			s := newSemaphore(t, 0)
			fn, got := fired()
			s.OnReached(1, fn)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() { s.Fail(fmt.Errorf("failure %d", i)) })
			}
			wg.Wait()
			_, err := s.Query()
			if told := once(t, got); told == nil || told != err {
				t.Errorf("the function got %v, and the failure is %v", told, err)
			}
		}
	})
	t.Run("B13 a failure without a reason has one", func(t *testing.T) {
		s := newSemaphore(t, 0)
		s.Fail(nil)
		if _, err := s.Query(); err == nil {
			t.Error("the semaphore has not failed")
		}
	})
	t.Run("B14 a failure releases all timepoints", func(t *testing.T) {
		s := newSemaphore(t, 0)
		fn, got := fired()
		for v := range uint64(5) {
			s.OnReached(v+1, fn)
		}
		s.Fail(cause)
		for range 5 {
			if err := <-got; err != cause {
				t.Errorf("the function got %v", err)
			}
		}
		wantNoTimepoints(t, s)
	})
	t.Run("B15 on failure a callback may register again", func(t *testing.T) {
		s := newSemaphore(t, 0)
		var cancel func() bool
		fn, got := fired()
		cancel = s.OnReached(1, func(err error) {
			if cancel() {
				t.Error("a function that runs was canceled")
			}
			s.OnReached(1, fn) // called at once
			s.OnReached(2, fn)
		})
		s.Fail(cause)
		for range 2 {
			if err := <-got; err != cause {
				t.Errorf("the function got %v", err)
			}
		}
		wantNoTimepoints(t, s)
	})
	t.Run("B16 a timepoint registered after the failure fires at once", func(t *testing.T) {
		s := newSemaphore(t, 3)
		s.Fail(cause)
		for _, v := range []uint64{0, 3, 4} {
			fn, got := fired()
			cancel := s.OnReached(v, fn)
			if err := once(t, got); err != cause {
				t.Errorf("at %d: the function got %v", v, err)
			}
			if cancel() {
				t.Error("cancel succeeded after the call")
			}
		}
	})
	t.Run("B17 a failure takes precedence over the value", func(t *testing.T) {
		s := newSemaphore(t, 5)
		s.Fail(cause)
		if err := s.Wait(t.Context(), 3); err != cause {
			t.Errorf("Wait = %v", err)
		}
		if err := gpu.WaitAll(ended, s.At(3)); err != cause {
			t.Errorf("WaitAll = %v", err)
		}
	})
	t.Run("B18 B19 a blocked waiter gets the failure itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(t, 0)
			got := make(chan error)
			go func() { got <- s.Wait(t.Context(), 1) }()
			synctest.Wait()
			s.Fail(cause)
			if err := <-got; err != cause {
				t.Errorf("Wait = %v", err)
			}
		})
	})
	t.Run("B20 a failed member does not change the others", func(t *testing.T) {
		a, b, c := newSemaphore(t, 1), newSemaphore(t, 2), newSemaphore(t, 0)
		b.Fail(cause)
		if err := gpu.WaitAll(t.Context(), a.At(1), b.At(3), c.At(1)); err != cause {
			t.Errorf("WaitAll = %v", err)
		}
		wantValue(t, a, 1)
		wantValue(t, c, 0)
		signal(t, a, 2)
		signal(t, c, 1)
		wantNoTimepoints(t, a, b, c)
	})
	for _, all := range []bool{true, false} {
		name := map[bool]string{true: "B21 a failure ends a wait for all", false: "B22 a failure ends a wait for any"}[all]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for failing := range 3 {
					var ps []gpu.Point
					for range 3 {
						ps = append(ps, gpu.Point{Semaphore: newSemaphore(t, 0), Value: 1})
					}
					got := make(chan error)
					go func() {
						if all {
							got <- gpu.WaitAll(t.Context(), ps...)
							return
						}
						_, err := gpu.WaitAny(t.Context(), ps...)
						got <- err
					}()
					synctest.Wait()
					ps[failing].Semaphore.Fail(cause)
					if err := <-got; err != cause {
						t.Errorf("%d failed: %v", failing, err)
					}
					wantNoTimepoints(t, ps[0].Semaphore, ps[1].Semaphore, ps[2].Semaphore)
				}
			})
		})
	}
	t.Run("B23 a failure takes precedence over a value, in either order", func(t *testing.T) {
		good, bad := newSemaphore(t, 1), newSemaphore(t, 0)
		bad.Fail(cause)
		for _, ps := range [][]gpu.Point{{good.At(1), bad.At(1)}, {bad.At(1), good.At(1)}} {
			for _, ctx := range []context.Context{ended, t.Context()} {
				if _, err := gpu.WaitAny(ctx, ps...); err != cause {
					t.Errorf("WaitAny = %v", err)
				}
			}
		}
	})
}

func TestSemaphoreWait(t *testing.T) {
	checkLeaks(t)
	t.Run("B26 a wait for a reached value returns at once", func(t *testing.T) {
		s := newSemaphore(t, 5)
		for _, ctx := range []context.Context{t.Context(), ended} {
			for _, v := range []uint64{0, 4, 5} {
				if err := s.Wait(ctx, v); err != nil {
					t.Errorf("Wait(%d) = %v", v, err)
				}
			}
		}
	})
	t.Run("B27 B38 a poll never blocks and leaves no timepoint", func(t *testing.T) {
		s := newSemaphore(t, 5)
		if err := s.Wait(ended, 6); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v", err)
		}
		wantNoTimepoints(t, s)
	})
	t.Run("B28 B38 a wait ends at its deadline, not before, and leaves no timepoint", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(t, 0)
			for _, d := range []time.Duration{1, time.Millisecond, time.Hour} {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), d)
				if err := s.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Wait = %v", err)
				}
				cancel()
				if took := time.Since(start); took != d {
					t.Errorf("a wait of %v took %v", d, took)
				}
				wantNoTimepoints(t, s)
			}
			wantValue(t, s, 0)
			time.AfterFunc(10*time.Millisecond, func() { s.Signal(1) })
			for tries := 1; ; tries++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				err := s.Wait(ctx, 1)
				cancel()
				if err == nil {
					if tries < 10 {
						t.Errorf("after %d tries", tries)
					}
					break
				}
			}
		})
	})
	t.Run("B29 a wait returns when the value is reached or passed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, v := range []uint64{5, 6, gpu.MaxValue} {
				s := newSemaphore(t, 0)
				got := make(chan error, 1)
				go func() { got <- s.Wait(context.Background(), 5) }()
				synctest.Wait()
				signal(t, s, 4)
				synctest.Wait()
				if len(got) > 0 {
					t.Error("returned at 4")
				}
				signal(t, s, v)
				if err := <-got; err != nil {
					t.Error(err)
				}
				wantNoTimepoints(t, s)
			}
		})
	})
	t.Run("B30 an empty list is reached", func(t *testing.T) {
		for _, ctx := range []context.Context{t.Context(), ended} {
			if err := gpu.WaitAll(ctx); err != nil {
				t.Errorf("WaitAll = %v", err)
			}
			if i, err := gpu.WaitAny(ctx); i != -1 || err != nil {
				t.Errorf("WaitAny = %d, %v", i, err)
			}
		}
	})
	t.Run("B31 a list is not reached while one point is missing", func(t *testing.T) {
		for short := range 3 {
			var ps []gpu.Point
			for i := range 3 {
				ps = append(ps, gpu.Point{Semaphore: newSemaphore(t, 1), Value: 1})
				if i == short {
					ps[i].Value = 2
				}
			}
			if err := gpu.WaitAll(ended, ps...); !errors.Is(err, context.Canceled) {
				t.Errorf("%d is short: %v", short, err)
			}
		}
	})
	t.Run("B32 a list is reached in any order of signals", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}} {
				var ps []gpu.Point
				for i := range uint64(3) {
					ps = append(ps, gpu.Point{Semaphore: newSemaphore(t, 0), Value: i + 1})
				}
				got := make(chan error, 1)
				go func() { got <- gpu.WaitAll(t.Context(), ps...) }()
				for _, i := range order {
					time.Sleep(time.Second) // time of the synctest bubble
					if len(got) > 0 {
						t.Error("returned too early")
					}
					signal(t, ps[i].Semaphore, ps[i].Value)
				}
				if err := <-got; err != nil {
					t.Error(err)
				}
			}
		})
	})
	t.Run("B33 any one is enough, at any place in the list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for i := range 3 {
				for _, before := range []bool{true, false} {
					var ps []gpu.Point
					for range 3 {
						ps = append(ps, gpu.Point{Semaphore: newSemaphore(t, 0), Value: 1})
					}
					if before {
						signal(t, ps[i].Semaphore, 1)
						if got, err := gpu.WaitAny(ended, ps...); got != i || err != nil {
							t.Errorf("a poll = %d, %v; want %d", got, err, i)
						}
					} else {
						time.AfterFunc(time.Second, func() { ps[i].Semaphore.Signal(1) })
					}
					if got, err := gpu.WaitAny(t.Context(), ps...); got != i || err != nil {
						t.Errorf("WaitAny = %d, %v; want %d", got, err, i)
					}
					wantNoTimepoints(t, ps[0].Semaphore, ps[1].Semaphore, ps[2].Semaphore)
				}
			}
		})
	})
	t.Run("B34 one signal releases all waiters of a value", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(t, 0)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if err := s.Wait(t.Context(), 1); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			signal(t, s, 1)
			wg.Wait()
		})
	})
	t.Run("B35 waits over overlapping sets in different orders are all released", func(t *testing.T) {
		ctx := minute(t)
		for range 50 {
			a, b, c := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
			sets := [][]gpu.Point{{a.At(1), b.At(1)}, {b.At(1), a.At(1)}, {b.At(1), c.At(1)}, {c.At(1), a.At(1), b.At(1)}}
			var wg sync.WaitGroup
			for _, set := range sets {
				wg.Go(func() {
					if err := gpu.WaitAll(ctx, set...); err != nil {
						t.Error(err)
					}
				})
			}
			for _, s := range []*gpu.Semaphore{a, b, c} {
				wg.Go(func() { s.Signal(1) })
			}
			wg.Wait()
			wantNoTimepoints(t, a, b, c)
		}
	})
	t.Run("B36 ping-pong makes progress for every value", func(t *testing.T) {
		ctx := minute(t)
		a, b := newSemaphore(t, 0), newSemaphore(t, 0)
		done := make(chan error)
		go func() {
			for v := uint64(1); v <= 2000; v++ {
				if err := a.Wait(ctx, v); err != nil {
					done <- err
					return
				}
				b.Signal(v)
			}
			done <- nil
		}()
		for v := uint64(1); v <= 2000; v++ {
			signal(t, a, v)
			if err := b.Wait(ctx, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("B37 long lists", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ps []gpu.Point
			for range 300 {
				ps = append(ps, gpu.Point{Semaphore: newSemaphore(t, 0), Value: 1})
			}
			all, anyone := make(chan error, 1), make(chan int, 1)
			go func() { all <- gpu.WaitAll(t.Context(), ps...) }()
			go func() {
				i, _ := gpu.WaitAny(t.Context(), ps...)
				anyone <- i
			}()
			synctest.Wait()
			signal(t, ps[200].Semaphore, 1)
			if i := <-anyone; i != 200 {
				t.Errorf("WaitAny = %d", i)
			}
			for i, p := range ps {
				if i != 200 {
					signal(t, p.Semaphore, 1)
				}
			}
			if err := <-all; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("B39 a semaphore twice in a list", func(t *testing.T) {
		s := newSemaphore(t, 3)
		ps := []gpu.Point{s.At(5), s.At(2)}
		if err := gpu.WaitAll(ended, ps...); err == nil {
			t.Error("all of 5 and 2 are reached at 3")
		}
		if i, err := gpu.WaitAny(ended, ps...); i != 1 || err != nil {
			t.Errorf("WaitAny = %d, %v", i, err)
		}
		signal(t, s, 5)
		if err := gpu.WaitAll(ended, ps...); err != nil {
			t.Errorf("WaitAll = %v", err)
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(t, 0)
			got := make(chan error, 1)
			go func() {
				got <- gpu.WaitAll(t.Context(), s.At(1), s.At(2), s.At(2))
			}()
			synctest.Wait()
			signal(t, s, 1)
			synctest.Wait()
			if len(got) > 0 {
				t.Error("WaitAll returned at the lower value")
			}
			signal(t, s, 2)
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("B82 a point without a semaphore is an error", func(t *testing.T) {
		if err := gpu.WaitAll(t.Context(), gpu.Point{}); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("WaitAll = %v", err)
		}
		if i, err := gpu.WaitAny(t.Context(), gpu.Point{Semaphore: newSemaphore(t, 1), Value: 1}, gpu.Point{}); i != -1 || !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("WaitAny = %d, %v", i, err)
		}
	})
	t.Run("a cause of the context's end", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(io.ErrNoProgress)
		if err := newSemaphore(t, 0).Wait(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v", err)
		}
	})
}

func TestOnReached(t *testing.T) {
	checkLeaks(t)
	t.Run("B41 a reached value fires at once, on the caller's stack", func(t *testing.T) {
		s := newSemaphore(t, 5)
		for _, v := range []uint64{0, 5} {
			fn, got := fired()
			s.OnReached(v, fn)
			if err := once(t, got); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B42 a later value fires once, when reached or passed", func(t *testing.T) {
		for _, v := range []uint64{5, 9} {
			s := newSemaphore(t, 0)
			fn, got := fired()
			s.OnReached(5, fn)
			signal(t, s, 4)
			never(t, got)
			signal(t, s, v)
			signal(t, s, v+1)
			if err := once(t, got); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B43 B51 a jump fires all reached functions, by value and then by registration", func(t *testing.T) {
		s := newSemaphore(t, 0)
		var order []string
		for i, v := range []uint64{3, 1, 2, 1, 7, 3, 2, 1} {
			s.OnReached(v, func(error) { order = append(order, fmt.Sprintf("%d:%d", v, i)) })
		}
		signal(t, s, 1)
		if want := []string{"1:1", "1:3", "1:7"}; !slices.Equal(order, want) {
			t.Errorf("at 1: %q", order)
		}
		order = nil
		signal(t, s, 6)
		if want := []string{"2:2", "2:6", "3:0", "3:5"}; !slices.Equal(order, want) {
			t.Errorf("at 6: %q", order)
		}
		order = nil
		s.Close()
		if want := []string{"7:4"}; !slices.Equal(order, want) {
			t.Errorf("at the end: %q", order)
		}
	})
	t.Run("B51 the order holds for many", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		s := newSemaphore(t, 0)
		type key struct{ value, order uint64 }
		var got []key
		for i := range uint64(3000) {
			v := r.Uint64N(50) + 1
			cancel := s.OnReached(v, func(error) { got = append(got, key{v, i}) })
			if r.IntN(4) == 0 && !cancel() {
				t.Fatal("too late to take back")
			}
		}
		n := timepoints(s)
		s.Fail(io.EOF)
		if len(got) != n || !slices.IsSortedFunc(got, func(a, b key) int {
			if a.value != b.value {
				return int(a.value) - int(b.value)
			}
			return int(a.order) - int(b.order)
		}) {
			t.Errorf("%d of %d fired, or in the wrong order", len(got), n)
		}
	})
	t.Run("B44 cancelling", func(t *testing.T) {
		s := newSemaphore(t, 0)
		fn, got := fired()
		cancel := s.OnReached(1, fn)
		if !cancel() {
			t.Error("was too late")
		}
		if cancel() {
			t.Error("cancel succeeded twice")
		}
		signal(t, s, 1)
		never(t, got)
		cancel = s.OnReached(2, fn)
		signal(t, s, 2)
		if first, second := cancel(), cancel(); first || second {
			t.Error("cancel succeeded after the call")
		}
		once(t, got)
	})
	t.Run("B45 a registration that races with the signal fires once", func(t *testing.T) {
		for range 2000 {
			s := newSemaphore(t, 0)
			var calls atomic.Int32
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { s.OnReached(1, func(error) { calls.Add(1) }) })
			}
			wg.Go(func() { s.Signal(1) })
			wg.Wait()
			if n := calls.Load(); n != 2 {
				t.Fatalf("fired %d times, want 2", n)
			}
		}
	})
	t.Run("B44 B45 cancelling races with the signal", func(t *testing.T) {
		for range 2000 {
			s := newSemaphore(t, 0)
			var calls, cancelled atomic.Int32
			cancel := s.OnReached(1, func(error) { calls.Add(1) })
			var wg sync.WaitGroup
			wg.Go(func() { s.Signal(1) })
			wg.Go(func() {
				if cancel() {
					cancelled.Add(1)
				}
			})
			wg.Wait()
			if calls.Load()+cancelled.Load() != 1 {
				t.Fatalf("called %d times, canceled %d times", calls.Load(), cancelled.Load())
			}
		}
	})
	t.Run("B46 Close fires the remaining functions with ErrClosed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(t, 4)
			fn, got := fired()
			s.OnReached(5, fn)
			waiter := make(chan error)
			go func() { waiter <- s.Wait(context.Background(), 6) }()
			synctest.Wait()
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := once(t, got); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("the function got %v", err)
			}
			if err := <-waiter; !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("Wait = %v", err)
			}
			if err := s.Signal(9); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("Signal = %v", err)
			}
			if v, err := s.Query(); v != 4 || !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("Query = %d, %v", v, err)
			}
		})
	})
	t.Run("B47 chains of callbacks, 10,000 deep", func(t *testing.T) {
		const n = 10_000
		chain := make([]*gpu.Semaphore, n+1)
		for i := range chain {
			chain[i] = newSemaphore(t, 0)
		}
		for i := range n {
			chain[i].OnReached(1, func(err error) {
				if err != nil {
					chain[i+1].Fail(err)
				} else if err := chain[i+1].Signal(1); err != nil {
					t.Error(err)
				}
			})
		}
		signal(t, chain[0], 1)
		wantValue(t, chain[n], 1)
	})
	t.Run("B47 a callback that does not continue ends the chain", func(t *testing.T) {
		a, b, c := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
		on := false
		a.OnReached(1, func(error) {
			if on {
				b.Signal(1)
			}
		})
		a.OnReached(2, func(error) { b.Signal(2) })
		b.OnReached(1, func(error) { c.Signal(1) })
		signal(t, a, 1)
		wantValue(t, b, 0)
		wantValue(t, c, 0)
		signal(t, a, 2)
		wantValue(t, c, 1)
	})
	t.Run("B47 one semaphore that its own callbacks drive", func(t *testing.T) {
		const n = 10_000
		s := newSemaphore(t, 0)
		for v := uint64(1); v < n; v++ {
			s.OnReached(v, func(error) { s.Signal(v + 1) })
		}
		signal(t, s, 1)
		wantValue(t, s, n)
	})
}

func TestLink(t *testing.T) {
	checkLeaks(t)
	t.Run("B48 a link passes a value on, now or later", func(t *testing.T) {
		s, later, now := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
		s.Link(3, later, 10)
		signal(t, s, 2)
		wantValue(t, later, 0)
		signal(t, s, 5)
		wantValue(t, later, 10)
		s.Link(5, now, 7)
		wantValue(t, now, 7)
		signal(t, s, 6)
		wantValue(t, now, 7)
	})
	t.Run("B49 a link passes a failure on", func(t *testing.T) {
		s, a, b := newSemaphore(t, 9), newSemaphore(t, 1), newSemaphore(t, 2)
		s.Link(10, a, 10)
		s.Fail(io.ErrUnexpectedEOF)
		if v, err := a.Query(); v != 1 || err != io.ErrUnexpectedEOF {
			t.Errorf("the target is at %d, %v", v, err)
		}
		s.Link(1, b, 3) // b fails at once, although s has reached 1
		if v, err := b.Query(); v != 2 || err != io.ErrUnexpectedEOF {
			t.Errorf("the second target is at %d, %v", v, err)
		}
		closed, c := newSemaphore(t, 0), newSemaphore(t, 0)
		closed.Link(1, c, 1)
		closed.Close()
		if _, err := c.Query(); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("the target of a closed source: %v", err)
		}
	})
	t.Run("B49 a target past the value fails, and says why", func(t *testing.T) {
		s, target := newSemaphore(t, 0), newSemaphore(t, 5)
		s.Link(1, target, 5)
		signal(t, s, 1)
		if _, err := target.Query(); !errors.Is(err, gpu.ErrValue) {
			t.Errorf("the target: %v", err)
		}
	})
	t.Run("B50 unlinking, fan-out and chains", func(t *testing.T) {
		s := newSemaphore(t, 0)
		var targets []*gpu.Semaphore
		for i := range uint64(100) {
			target := newSemaphore(t, 0)
			unlink := s.Link(1, target, i+1)
			if i%10 == 9 {
				if !unlink() || unlink() {
					t.Error("unlink before the link fired, twice")
				}
			}
			targets = append(targets, target)
		}
		signal(t, s, 1)
		for i, target := range targets {
			want := uint64(i + 1)
			if i%10 == 9 {
				want = 0
			}
			wantValue(t, target, want)
		}
		const n = 10_000
		for _, fail := range []bool{false, true} {
			chain := []*gpu.Semaphore{newSemaphore(t, 0)}
			for range n {
				next := newSemaphore(t, 0)
				chain[len(chain)-1].Link(1, next, 1)
				chain = append(chain, next)
			}
			if fail {
				chain[0].Fail(io.EOF)
				if _, err := chain[n].Query(); err != io.EOF {
					t.Errorf("the end of the chain: %v", err)
				}
				continue
			}
			signal(t, chain[0], 1)
			wantValue(t, chain[n], 1)
		}
	})
	t.Run("B50 a ring of links ends", func(t *testing.T) {
		a, b := newSemaphore(t, 0), newSemaphore(t, 0)
		a.Link(1, b, 1)
		b.Link(1, a, 2)
		a.Link(3, b, 2)
		signal(t, a, 1)
		wantValue(t, a, 2)
		wantValue(t, b, 1)
		a.Fail(io.EOF)
		if _, err := b.Query(); err != io.EOF {
			t.Error(err)
		}
	})
}

// A model does what a semaphore does, but is not for concurrent use. TestSemaphoreModel compares
// the two.
type model struct {
	value uint64
	err   error
	next  int
	wait  []modelWait
}

type modelWait struct {
	value uint64
	id    int
}

// release removes the functions that must be called now, and returns their ids, ordered by value
// and then by id.
func (m *model) release() (ids []int) {
	slices.SortStableFunc(m.wait, func(a, b modelWait) int {
		if a.value < b.value {
			return -1
		}
		if a.value > b.value {
			return 1
		}
		return a.id - b.id
	})
	n := 0
	for n < len(m.wait) && (m.err != nil || m.wait[n].value <= m.value) {
		ids = append(ids, m.wait[n].id)
		n++
	}
	m.wait = slices.Delete(m.wait, 0, n)
	return ids
}

func TestSemaphoreModel(t *testing.T) {
	checkLeaks(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for round := range rounds {
		start := r.Uint64N(3) * (gpu.MaxValue / 2)
		s, m := newSemaphore(t, start), model{value: start}
		var got []int
		var errs []error
		cancels := map[int]func() bool{}
		for step := range 200 {
			got, errs = got[:0], errs[:0]
			var want []int
			var what string
			switch k := r.IntN(100); {
			case k < 35: // mostly near the current value
				v := m.value + r.Uint64N(6) - min(m.value, 2)
				if r.IntN(50) == 0 {
					v = r.Uint64()
				}
				what = fmt.Sprintf("signal %d", v)
				err := s.Signal(v)
				switch {
				case v > gpu.MaxValue:
					if !errors.Is(err, gpu.ErrArgument) {
						t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
					}
				case m.err != nil:
					if err != m.err {
						t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
					}
				case v <= m.value:
					if !errors.Is(err, gpu.ErrValue) {
						t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
					}
				case err != nil:
					t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
				default:
					m.value = v
					want = m.release()
				}
			case k < 75:
				v := m.value + r.Uint64N(12) - min(m.value, 2)
				id := m.next
				m.next++
				what = fmt.Sprintf("on reached %d", v)
				cancels[id] = s.OnReached(v, func(err error) {
					got = append(got, id)
					errs = append(errs, err)
				})
				m.wait = append(m.wait, modelWait{v, id})
				want = m.release()
			case k < 90:
				if m.next == 0 {
					continue
				}
				id := r.IntN(m.next)
				what = fmt.Sprintf("cancel %d", id)
				i := slices.IndexFunc(m.wait, func(w modelWait) bool { return w.id == id })
				if ok := cancels[id](); ok != (i >= 0) {
					t.Fatalf("seed %d round %d step %d: %s = %v", seed, round, step, what, ok)
				}
				if i >= 0 {
					m.wait = slices.Delete(m.wait, i, i+1)
				}
			case k < 98:
				v := m.value + r.Uint64N(3)
				what = fmt.Sprintf("poll %d", v)
				err := s.Wait(ended, v)
				if v > gpu.MaxValue {
					if !errors.Is(err, gpu.ErrArgument) {
						t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
					}
					continue
				}
				if ok := m.err == nil && v <= m.value; ok != (err == nil) || m.err != nil && err != m.err {
					t.Fatalf("seed %d round %d step %d: %s: %v", seed, round, step, what, err)
				}
			case step > 150:
				err := fmt.Errorf("failure of step %d", step)
				what = "fail"
				if r.IntN(2) == 0 {
					s.Fail(err)
				} else {
					what = "close"
					s.Close()
					err = nil
				}
				if m.err == nil {
					if m.err = err; err == nil {
						_, m.err = s.Query()
					}
					want = m.release()
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d round %d step %d: %s released %v, want %v", seed, round, step, what, got, want)
			}
			for _, err := range errs {
				if err != m.err {
					t.Fatalf("seed %d round %d step %d: the function of %s got %v, want %v", seed, round, step, what, err, m.err)
				}
			}
			if v, err := s.Query(); v != m.value || err != m.err {
				t.Fatalf("seed %d round %d step %d: %s: at %d, %v; want %d, %v", seed, round, step, what, v, err, m.value, m.err)
			}
			if n := timepoints(s); n != len(m.wait) {
				t.Fatalf("seed %d round %d step %d: %s: %d timepoints, want %d", seed, round, step, what, n, len(m.wait))
			}
		}
	}
}

// TestSemaphoreStorm concurrently signals, waits, registers functions and cancels them. Each
// function must be called once or cancelled, and no timepoints may be left.
func TestSemaphoreStorm(t *testing.T) {
	checkLeaks(t)
	ctx := minute(t)
	const last = 3000
	s := newSemaphore(t, 0)
	var registered, called, cancelled atomic.Int64
	var wg sync.WaitGroup
	for g := range uint64(3) {
		wg.Go(func() {
			for v := g + 1; v <= last; v += 3 {
				s.Signal(v)
			}
		})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, g))
			for range 3000 {
				registered.Add(1)
				cancel := s.OnReached(r.Uint64N(last)+1, func(error) { called.Add(1) })
				if r.IntN(3) == 0 && cancel() {
					cancelled.Add(1)
				}
			}
		})
		wg.Go(func() {
			for v := uint64(1); v <= last; v += 50 {
				if err := s.Wait(ctx, v); err != nil {
					t.Error(err)
					return
				}
				short, cancel := context.WithTimeout(ctx, time.Microsecond)
				s.Wait(short, last)
				cancel()
			}
		})
	}
	wg.Wait()
	wantValue(t, s, last)
	if registered.Load() != called.Load()+cancelled.Load() {
		t.Errorf("%d registered, %d called, %d canceled", registered.Load(), called.Load(), cancelled.Load())
	}
	wantNoTimepoints(t, s)
}

// TestSemaphoreAllocs tests B142: signals, queries, and waits for reached values allocate nothing.
func TestSemaphoreAllocs(t *testing.T) {
	s := newSemaphore(t, 1)
	v := uint64(1)
	ctx := t.Context()
	points := []gpu.Point{s.At(1), s.At(1)}
	for name, f := range map[string]func(){
		"signal": func() {
			v++
			s.Signal(v)
		},
		"query":            func() { s.Query() },
		"wait":             func() { s.Wait(ctx, 1) },
		"wait for all":     func() { gpu.WaitAll(ctx, points...) },
		"wait for any one": func() { gpu.WaitAny(ctx, points...) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkSemaphore(b *testing.B) {
	b.Run("create and close", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, _ := gpu.NewSemaphore(0)
			s.Close()
		}
	})
	b.Run("signal and query", func(b *testing.B) {
		b.ReportAllocs()
		s := newSemaphore(b, 0)
		for v := uint64(1); b.Loop(); v++ {
			s.Signal(v)
			s.Query()
		}
	})
	b.Run("query", func(b *testing.B) {
		b.ReportAllocs()
		s := newSemaphore(b, 0)
		for b.Loop() {
			s.Query()
		}
	})
	b.Run("wait for what is reached", func(b *testing.B) {
		b.ReportAllocs()
		s := newSemaphore(b, 5)
		ctx := b.Context()
		for b.Loop() {
			s.Wait(ctx, 5)
		}
	})
	b.Run("on reached and signal", func(b *testing.B) {
		b.ReportAllocs()
		s := newSemaphore(b, 0)
		fn := func(error) {}
		for v := uint64(1); b.Loop(); v++ {
			s.OnReached(v, fn)
			s.Signal(v)
		}
	})
	b.Run("wait from goroutine to goroutine", func(b *testing.B) {
		b.ReportAllocs()
		x, y := newSemaphore(b, 0), newSemaphore(b, 0)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for v := uint64(1); x.Wait(ctx, v) == nil; v++ {
				y.Signal(v)
			}
		}()
		for v := uint64(1); b.Loop(); v++ {
			x.Signal(v)
			y.Wait(ctx, v)
		}
		cancel()
		<-done
	})
}
