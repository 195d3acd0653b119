package sema_test

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

func TestLists(t *testing.T) {
	checkLeaks(t)
	t.Run("B9 a list is signalled in order", func(t *testing.T) {
		var order []int
		var list []gpu.Point
		for i := range 5 {
			s := newSemaphore(t, 0)
			s.OnReached(1, func(error) { order = append(order, i) })
			list = append(list, s.At(uint64(i+1)))
		}
		if err := gpu.SignalAll(list...); err != nil {
			t.Fatal(err)
		}
		for i, p := range list {
			wantValue(t, p.Semaphore, p.Value)
			if order[i] != i {
				t.Errorf("order %v", order)
			}
		}
		if err := gpu.SignalAll(); err != nil {
			t.Errorf("an empty list: %v", err)
		}
	})
	t.Run("B9 the first that cannot be signalled ends it", func(t *testing.T) {
		failed := newSemaphore(t, 0)
		failed.Fail(io.ErrNoProgress)
		for name, c := range map[string]struct {
			bad  gpu.Point
			kind error
		}{
			"reached":         {gpu.Point{Semaphore: newSemaphore(t, 7), Value: 7}, gpu.ErrValue},
			"lower":           {gpu.Point{Semaphore: newSemaphore(t, 7), Value: 1}, gpu.ErrValue},
			"failed":          {failed.At(1), io.ErrNoProgress},
			"above the end":   {gpu.Point{Semaphore: newSemaphore(t, 0), Value: math.MaxUint64}, gpu.ErrArgument},
			"no semaphore":    {gpu.Point{}, gpu.ErrArgument},
			"a twice in list": {gpu.Point{Semaphore: newSemaphore(t, 2), Value: 2}, gpu.ErrValue},
		} {
			before, after := newSemaphore(t, 0), newSemaphore(t, 0)
			if err := gpu.SignalAll(before.At(3), c.bad, after.At(3)); !errors.Is(err, c.kind) {
				t.Errorf("%s: %v", name, err)
			}
			wantValue(t, before, 3)
			wantValue(t, after, 0)
		}
		s := newSemaphore(t, 0)
		if err := gpu.SignalAll(s.At(1), s.At(2), s.At(2)); !errors.Is(err, gpu.ErrValue) {
			t.Errorf("a point twice: %v", err)
		}
		wantValue(t, s, 2)
	})
	t.Run("B24 a list fails in order, and each keeps its first failure", func(t *testing.T) {
		a, b, c := newSemaphore(t, 1), newSemaphore(t, 2), newSemaphore(t, 3)
		b.Fail(io.EOF)
		fn, got := fired()
		a.OnReached(9, fn)
		c.OnReached(9, fn)
		gpu.FailAll(io.ErrNoProgress, a, nil, b, c)
		for _, x := range []struct {
			s   *gpu.Semaphore
			v   uint64
			err error
		}{{a, 1, io.ErrNoProgress}, {b, 2, io.EOF}, {c, 3, io.ErrNoProgress}} {
			if v, err := x.s.Query(); v != x.v || err != x.err {
				t.Errorf("at %d, %v; want %d, %v", v, err, x.v, x.err)
			}
		}
		for range 2 {
			if err := <-got; err != io.ErrNoProgress {
				t.Errorf("the function got %v", err)
			}
		}
		gpu.FailAll(nil, newSemaphore(t, 0))
		gpu.FailAll(io.EOF)
	})
	t.Run("B6 a wait above the highest value is a mistake", func(t *testing.T) {
		s := newSemaphore(t, gpu.MaxValue)
		good := gpu.Point{Semaphore: newSemaphore(t, 1), Value: 1}
		for range 2 {
			if err := s.Wait(t.Context(), gpu.MaxValue+1); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("Wait = %v", err)
			}
			if err := gpu.WaitAll(t.Context(), good, s.At(gpu.MaxValue+1)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("WaitAll = %v", err)
			}
			if i, err := gpu.WaitAny(t.Context(), good, s.At(gpu.MaxValue+1)); i != -1 || !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("WaitAny = %d, %v", i, err)
			}
			// The second round repeats the calls on a failed semaphore: the error must be the same.
			s.Fail(io.EOF)
		}
		x := newSemaphore(t, 0)
		fn, got := fired()
		cancel := x.OnReached(gpu.MaxValue+1, fn)
		signal(t, x, gpu.MaxValue)
		never(t, got)
		if !cancel() {
			t.Error("too late")
		}
	})
}
