package engine_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// hold blocks the device's pending-queue thread until the caller calls the returned function.
func hold(d *gpu.Device) (let func()) {
	end, err := gpu.NewSemaphore(0)
	if err != nil {
		panic(err)
	}
	n := native(d)
	s := timeline(d.Queue(0)).Get(work.Barrier)
	s.Signals = append(s.Signals, point(end, 1))
	s.Err.Store(&engine.Failure{errors.New("held")})
	mu := lockOf(end)
	mu.Lock() // the thread needs this mutex to fail the submission
	n.Ready(s)
	for n.Waiting() > 0 {
		runtime.Gosched()
	}
	select {
	case <-n.Wake(): // the thread may have taken the submission without receiving this wake-up
	default:
	}
	return mu.Unlock
}

// issuedHere is the number of released submissions that Semaphore.Signal itself issues.
const issuedHere = 1

func TestParked(t *testing.T) {
	checkLeaks(t)
	hip, cuda := simdriver.HIPCaps(), simdriver.CUDACaps()
	open := func(t *testing.T, c simdriver.Config) *gpu.Device {
		d, err := gpu.Open(simdriver.New(c), 0, gpu.Options{Queues: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	t.Run("B120 only the last needed signal wakes the device's thread, once", func(t *testing.T) {
		const n, k = 100, 1000
		d := open(t, simdriver.Config{Caps: &hip})
		s, other := newSemaphore(t, 0), newSemaphore(t, 0)
		for i := range n {
			if err := d.Queue(i).Submit(gpu.Order{Wait: []gpu.Point{s.At(k), s.At(k / 2), other.At(1)}}, gpu.HostCall(func() error { return nil })); err != nil {
				t.Fatal(err)
			}
			if err := d.Queue(i).Submit(gpu.Order{Wait: []gpu.Point{s.At(k), s.At(1), other.At(1)}}, gpu.Barrier()); err != nil {
				t.Fatal(err)
			}
		}
		let := hold(d)
		defer let()
		if d.Stats().Parked != 2*n {
			t.Errorf("%+v", d.Stats())
		}
		signal(t, other, 1)
		for v := uint64(1); v < k; v++ {
			signal(t, s, v)
		}
		if got := native(d).Waiting(); got != 0 || len(native(d).Wake()) != 0 || d.Stats().Parked != 2*n {
			t.Errorf("%d are ready and the thread is woken %d times, and nobody's waits are over", got, len(native(d).Wake()))
		}
		signal(t, s, k)
		if got := native(d).Waiting(); got != 2*n-issuedHere || len(native(d).Wake()) != 1 || d.Stats().Parked != 0 {
			t.Errorf("%d are ready, and the thread is woken %d times", got, len(native(d).Wake()))
		}
		signal(t, s, k+1)
		if got := native(d).Waiting(); got != 2*n-issuedHere {
			t.Errorf("%d are ready after another signal", got)
		}
	})
	t.Run("B120 B71 a signal issues one submission itself and passes on the others", func(t *testing.T) {
		const n = 100
		sim := simdriver.New(simdriver.Config{Caps: &cuda})
		d, err := gpu.Open(sim, 0, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		b, err := d.Alloc(gpu.DeviceMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := newSemaphore(t, 0)
		for range n {
			if err := d.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{s.At(1)}}, gpu.Fill(b.All(), []byte{1})); err != nil {
				t.Fatal(err)
			}
		}
		let := hold(d)
		signal(t, s, 1)
		if fills, left := sim.Counters().Devices[0].Calls[simdriver.OpFill], native(d).Waiting(); fills != issuedHere || left != n-issuedHere {
			t.Errorf("%d are issued, and %d left to the thread", fills, left)
		}
		let()
	})
	t.Run("B52 B75 work seen complete after a barrier implies a complete barrier", func(t *testing.T) {
		for _, caps := range []driver.Caps{cuda, hip} {
			sim := simdriver.New(simdriver.Config{Caps: &caps})
			d, err := gpu.Open(sim, 0, gpu.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Alloc(gpu.DeviceMem, 64)
			if err != nil {
				t.Fatal(err)
			}
			q, s := d.Queue(0), newSemaphore(t, 0)
			first, second, behind, later := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
			sim.StallDevice(0)
			for _, err := range []error{
				q.Submit(gpu.Order{Signal: []gpu.Point{s.At(1)}}, gpu.Fill(b.All(), []byte{1})),
				q.Submit(gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{first.At(1), second.At(1)}}, gpu.Barrier()),
				q.Submit(gpu.Order{Wait: []gpu.Point{second.At(1)}, Signal: []gpu.Point{behind.At(1)}}, gpu.Fill(b.All(), []byte{2})),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for d.Stats().InFlight < 3 {
				runtime.Gosched()
			}
			lockOf(first).Lock() // the barrier blocks at this mutex
			sim.ResumeDevice(0)
			done := make(chan error, 1)
			go func() { done <- behind.Wait(minute(t), 1) }()
			for !timeline(q).Passed(1) {
				runtime.Gosched()
			}
			if now(second) != 0 || now(behind) != 0 {
				t.Errorf("the barrier is at %d, and the work behind it at %d", now(second), now(behind))
			}
			if err := q.Submit(gpu.Order{Wait: []gpu.Point{second.At(1)}, Signal: []gpu.Point{later.At(1)}}, gpu.Barrier()); err != nil {
				t.Error(err)
			}
			if now(later) != 0 {
				t.Error("a barrier behind the barrier is done before it")
			}
			lockOf(first).Unlock()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := later.Wait(minute(t), 1); err != nil {
				t.Error(err)
			}
			if v, err := second.Query(); v != 1 || err != nil {
				t.Errorf("the semaphore is at %d, %v", v, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B85 work that becomes ready while the device closes does not start", func(t *testing.T) {
		d := open(t, simdriver.Config{Caps: &cuda})
		for _, op := range []work.Kind{work.HostCall, work.Notify, work.Barrier, work.Fill} {
			end := newSemaphore(t, 0)
			s := timeline(d.Queue(0)).Get(op) // no function is set, so a call would panic
			if op.OnHost() {
				s.Mode = engine.UntilReached
			}
			s.Signals = append(s.Signals, point(end, 1))
			native(d).Phase().Store(engine.PhaseStopped) // as in the middle of Close
			s.Timeline.Run(s)
			if err := end.Wait(minute(t), 1); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if n := native(d).Calls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestReleasedAfterClose fails the semaphore that a parked execution waits for, closes the device,
// and only then notifies the execution, as if other goroutines had run in between. By then the
// recording has been destroyed. The execution must fail.
func TestReleasedAfterClose(t *testing.T) {
	checkLeaks(t)
	d, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.NewCommandBuffer(gpu.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(gpu.Fill(b.All(), []byte{1})); err != nil {
		t.Fatal(err)
	}
	if err := c.End(); err != nil {
		t.Fatal(err)
	}
	gate, done, why := newSemaphore(t, 0), newSemaphore(t, 0), errors.New("why")
	if err := d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(done, 1)}, gpu.Execute(c)); err != nil {
		t.Fatal(err)
	}
	list := inner(gate).Fail(why)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	sema.ReleaseFromHost(list)
	if err := done.Wait(t.Context(), 1); !errors.Is(err, why) && !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("the execution's signal: %v", err)
	}
}
