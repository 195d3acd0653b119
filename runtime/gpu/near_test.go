package gpu

import (
	"errors"
	"io"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// TestNear has work come after what its own stream was given before, for which no place is looked up.
func TestNear(t *testing.T) {
	checkLeaks(t)
	open := func(t *testing.T) (*Device, *Queue, *Buffer) {
		cuda := simdriver.CUDACaps()
		d, err := Open(simdriver.New(simdriver.Config{Caps: &cuda}), 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		b, err := d.Alloc(DeviceMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		q, s := d.Queue(0), newSemaphore(t, 0)
		for v := range uint64(8) { // so that there are records to be used again
			if err := q.Fill(Order{Signal: []Point{{s, v + 1}}}, b.All(), []byte{0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Wait(within(t), 8); err != nil {
			t.Fatal(err)
		}
		return d, q, b
	}
	fill := func(t *testing.T, q *Queue, o Order, b *Buffer) {
		if err := q.Fill(o, b.All(), []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("B124 who waits for what its stream was given last asks no semaphore", func(t *testing.T) {
		_, q, b := open(t)
		s := newSemaphore(t, 0)
		fill(t, q, Order{Signal: []Point{{s, 1}}}, b)
		first := (Point{s, 1})
		if q.tl.last != first.inner() {
			t.Fatalf("what was signalled last is %+v", q.tl.last)
		}
		x := newSemaphore(t, 0)
		fill(t, q, Order{Wait: []Point{first}, Signal: []Point{{x, 1}}}, b)
		if want := (Point{x, 1}).inner(); q.tl.last != want {
			t.Errorf("what was signalled last is %+v", q.tl.last)
		}
		fill(t, q, Order{Signal: []Point{{s, 2}, {x, 2}}}, b)
		if want := (sema.Point{}); q.tl.last != want {
			t.Errorf("of two that are signalled the last is %+v", q.tl.last)
		}
		if err := WaitAll(within(t), Point{s, 2}, Point{x, 2}); err != nil {
			t.Error(err)
		}
	})
	t.Run("B81 what is failing meanwhile fails it after all", func(t *testing.T) {
		for _, otherwise := range []bool{false, true} {
			_, q, b := open(t)
			s, x, y := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
			fill(t, q, Order{Signal: []Point{{s, 1}}}, b) // which nobody finds done
			if otherwise {                                // the wait is found by the semaphore then
				fill(t, q, Order{Signal: []Point{{y, 1}}}, b)
			}
			q.tl.retireMu.Lock()
			q.tl.addFailed(q.tl.passed.Load()+1, q.tl.issued.Load(), io.EOF)
			q.tl.retireMu.Unlock()
			fill(t, q, Order{Wait: []Point{{s, 1}}, Signal: []Point{{x, 1}}}, b)
			sema.Release(s.sema.Fail(&SubmitError{Op: "fill", Err: io.EOF}))
			if err := x.Wait(within(t), 1); !errors.Is(err, io.EOF) {
				t.Errorf("otherwise %v: %v", otherwise, err)
			}
		}
	})
}
