package gpu

import (
	"errors"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// hold keeps a device's thread busy until the function returned is called, and returns when it is.
func hold(d *Device) (let func()) {
	end, err := NewSemaphore(0)
	if err != nil {
		panic(err)
	}
	s := d.Queue(0).get(work.Barrier)
	s.signals = append(s.signals, Point{end, 1}.inner())
	s.err.Store(&failure{errors.New("held")})
	mu := lockOf(&end.sema)
	mu.Lock() // which the thread takes to fail it
	d.native.ready(&s.submission)
	for waiting(d) > 0 {
		runtime.Gosched()
	}
	select {
	case <-d.native.pending.wake: // it may have come by itself
	default:
	}
	return mu.Unlock
}

// issuedHere is how many submissions a signal of the host issues itself.
const issuedHere = 1

// at returns a semaphore's value, and asks no device.
func at(s *Semaphore) uint64 {
	now, _ := s.sema.Value()
	return now
}

// waiting returns how many submissions a device's thread has to issue.
func waiting(d *Device) (n int) {
	d.native.mu.Lock()
	defer d.native.mu.Unlock()
	for s := d.native.pending.runnow; s != nil; s = s.next {
		n++
	}
	return n
}

func TestParked(t *testing.T) {
	checkLeaks(t)
	hip, cuda := simdriver.HIPCaps(), simdriver.CUDACaps()
	open := func(t *testing.T, c simdriver.Config) *Device {
		d, err := Open(simdriver.New(c), 0, Options{Queues: 2})
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
	t.Run("B120 of k signals only the one that is enough wakes the device's thread, once", func(t *testing.T) {
		const n, k = 100, 1000
		d := open(t, simdriver.Config{Caps: &hip})
		s, other := newSemaphore(t, 0), newSemaphore(t, 0)
		for i := range n {
			if err := d.Queue(i).HostCall(Order{Wait: []Point{{s, k}, {s, k / 2}, {other, 1}}}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			if err := d.Queue(i).Barrier(Order{Wait: []Point{{s, k}, {s, 1}, {other, 1}}}); err != nil {
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
		if got := waiting(d); got != 0 || len(d.native.pending.wake) != 0 || d.Stats().Parked != 2*n {
			t.Errorf("%d are ready and the thread is woken %d times, and nobody's waits are over", got, len(d.native.pending.wake))
		}
		signal(t, s, k)
		if got := waiting(d); got != 2*n-issuedHere || len(d.native.pending.wake) != 1 || d.Stats().Parked != 0 {
			t.Errorf("%d are ready, and the thread is woken %d times", got, len(d.native.pending.wake))
		}
		signal(t, s, k+1)
		if got := waiting(d); got != 2*n-issuedHere {
			t.Errorf("%d are ready after another signal", got)
		}
	})
	t.Run("B120 B71 a signal issues one itself and hands over the others", func(t *testing.T) {
		const n = 100
		sim := simdriver.New(simdriver.Config{Caps: &cuda})
		d, err := Open(sim, 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		b, err := d.Alloc(DeviceMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := newSemaphore(t, 0)
		for range n {
			if err := d.Queue(0).Fill(Order{Wait: []Point{{s, 1}}}, b.All(), []byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		let := hold(d)
		signal(t, s, 1)
		if fills, left := sim.Counters().Devices[0].Calls[simdriver.OpFill], waiting(d); fills != issuedHere || left != n-issuedHere {
			t.Errorf("%d are issued, and %d left to the thread", fills, left)
		}
		let()
	})
	t.Run("B52 B75 who sees something done behind a barrier sees the barrier done", func(t *testing.T) {
		for _, caps := range []driver.Caps{cuda, hip} {
			sim := simdriver.New(simdriver.Config{Caps: &caps})
			d, err := Open(sim, 0, Options{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Alloc(DeviceMem, 64)
			if err != nil {
				t.Fatal(err)
			}
			q, s := d.Queue(0), newSemaphore(t, 0)
			first, second, behind, later := newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0), newSemaphore(t, 0)
			sim.StallDevice(0)
			for _, err := range []error{
				q.Fill(Order{Signal: []Point{{s, 1}}}, b.All(), []byte{1}),
				q.Barrier(Order{Wait: []Point{{s, 1}}, Signal: []Point{{first, 1}, {second, 1}}}),
				q.Fill(Order{Wait: []Point{{second, 1}}, Signal: []Point{{behind, 1}}}, b.All(), []byte{2}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for d.Stats().InFlight < 3 {
				runtime.Gosched()
			}
			lockOf(&first.sema).Lock() // the barrier does not get further than that
			sim.ResumeDevice(0)
			done := make(chan error, 1)
			go func() { done <- behind.Wait(within(t), 1) }()
			for q.tl.passed.Load() == 0 {
				runtime.Gosched()
			}
			if at(second) != 0 || at(behind) != 0 {
				t.Errorf("the barrier is at %d, and the work behind it at %d", at(second), at(behind))
			}
			if err := q.Barrier(Order{Wait: []Point{{second, 1}}, Signal: []Point{{later, 1}}}); err != nil {
				t.Error(err)
			}
			if at(later) != 0 {
				t.Error("a barrier behind the barrier is done before it")
			}
			lockOf(&first.sema).Unlock()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := later.Wait(within(t), 1); err != nil {
				t.Error(err)
			}
			wantValue(t, second, 1)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B85 Close waits for calls that use pinned memory, and then there are none", func(t *testing.T) {
		sim := simdriver.New(simdriver.Config{Caps: &cuda})
		d, err := Open(sim, 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.native.stay() != nil {
			t.Fatal("too late")
		}
		b, err := d.stage.get(100)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		for d.native.phase.Load() < isStopped {
			runtime.Gosched()
		}
		clear(b.bytes())
		if n := sim.Counters().Devices[0].Allocations; n != 1 || len(closed) > 0 {
			t.Errorf("%d allocations; Close has returned: %v", n, len(closed) > 0)
		}
		b.free()
		d.native.leave()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if d.native.stay() == nil {
			t.Error("it may be used after that")
		}
		if n := sim.Counters().Devices[0].Allocations; n != 0 {
			t.Errorf("%d allocations are left", n)
		}
	})
	t.Run("B85 what becomes ready while the device stops does not begin", func(t *testing.T) {
		d := open(t, simdriver.Config{Caps: &cuda})
		for _, op := range []work.Kind{work.HostCall, work.Notify, work.Barrier, work.Fill} {
			end := newSemaphore(t, 0)
			s := d.Queue(0).get(op)
			s.fn = func() error { t.Error("called"); return nil }
			if op.OnHost() {
				s.mode = untilReached
			}
			s.signals = append(s.signals, Point{end, 1}.inner())
			d.native.phase.Store(isStopped) // as it is in the middle of Close
			if s.tl.enlist(&s.submission) {
				s.tl.run(&s.submission)
			}
			if err := end.Wait(within(t), 1); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", op, err)
			}
		}
		if n := d.native.calls.Load(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestReleasedAfterClose closes a device between the failure of what a parked execution waits for and the execution's release, which other
// goroutines can come between. The recording has been destroyed by then, and the execution fails all the same.
func TestReleasedAfterClose(t *testing.T) {
	checkLeaks(t)
	d, err := Open(simdriver.New(simdriver.Config{}), 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.NewCommandBuffer(CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fill(b.All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := c.End(); err != nil {
		t.Fatal(err)
	}
	gate, done, why := newSemaphore(t, 0), newSemaphore(t, 0), errors.New("why")
	if err := d.Queue(0).Execute(Order{Wait: []Point{{gate, 1}}, Signal: []Point{{done, 1}}}, c); err != nil {
		t.Fatal(err)
	}
	list := gate.fail(why)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	sema.ReleaseFromHost(list)
	if err := done.Wait(t.Context(), 1); !errors.Is(err, why) && !errors.Is(err, ErrClosed) {
		t.Errorf("the execution's signal: %v", err)
	}
}
