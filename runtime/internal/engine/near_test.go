package engine_test

import (
	"errors"
	"io"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// TestNear checks Timeline.last, the signal of the last work of the stream. If a submission waits
// only for that signal, the engine does not search the semaphore. The submission must still fail if
// that work fails.
func TestNear(t *testing.T) {
	checkLeaks(t)
	open := func(t *testing.T) (*gpu.Device, *gpu.Queue, *gpu.Buffer) {
		cuda := simdriver.CUDACaps()
		d, err := gpu.Open(simdriver.New(simdriver.Config{Caps: &cuda}), 0, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		b, err := d.Alloc(gpu.DeviceMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		q, s := d.Queue(0), newSemaphore(t, 0)
		for v := range uint64(8) { // so that Submissions are reused
			if err := q.Submit(gpu.Order{Signal: []gpu.Point{s.At(v + 1)}}, gpu.Fill(b.All(), []byte{0})); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Wait(minute(t), 8); err != nil {
			t.Fatal(err)
		}
		return d, q, b
	}
	fill := func(t *testing.T, q *gpu.Queue, o gpu.Order, b *gpu.Buffer) {
		if err := q.Submit(o, gpu.Fill(b.All(), []byte{1})); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("B124 a wait for the stream's last work does not search the semaphore", func(t *testing.T) {
		_, q, b := open(t)
		s := newSemaphore(t, 0)
		fill(t, q, gpu.Order{Signal: []gpu.Point{s.At(1)}}, b)
		first := s.At(1)
		if timeline(q).Last() != point(s, 1) {
			t.Fatalf("the last signal is %+v", timeline(q).Last())
		}
		x := newSemaphore(t, 0)
		fill(t, q, gpu.Order{Wait: []gpu.Point{first}, Signal: []gpu.Point{x.At(1)}}, b)
		if want := point(x, 1); timeline(q).Last() != want {
			t.Errorf("the last signal is %+v", timeline(q).Last())
		}
		fill(t, q, gpu.Order{Signal: []gpu.Point{s.At(2), x.At(2)}}, b)
		if want := (sema.Point{}); timeline(q).Last() != want {
			t.Errorf("of two that are signalled the last is %+v", timeline(q).Last())
		}
		if err := gpu.WaitAll(minute(t), s.At(2), x.At(2)); err != nil {
			t.Error(err)
		}
	})
	t.Run("B81 a failure in progress still fails the work", func(t *testing.T) {
		for _, otherwise := range []bool{false, true} {
			_, q, b := open(t)
			s, x, y := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
			fill(t, q, gpu.Order{Signal: []gpu.Point{s.At(1)}}, b) // no goroutine polls for this fill
			if otherwise {
				// Now y has the stream's last signal. The engine must search s for the wait.
				fill(t, q, gpu.Order{Signal: []gpu.Point{y.At(1)}}, b)
			}
			timeline(q).FailAll(io.EOF)
			fill(t, q, gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{x.At(1)}}, b)
			sema.Release(inner(s).Fail(&gpu.SubmitError{Op: "fill", Err: io.EOF}))
			if err := x.Wait(minute(t), 1); !errors.Is(err, io.EOF) {
				t.Errorf("otherwise %v: %v", otherwise, err)
			}
		}
	})
}
