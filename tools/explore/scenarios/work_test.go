package scenarios

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestSubmitAgainstSignal submits work on one queue, and work behind it on another queue, while the
// host signals the point that the first work waits for.
func TestSubmitAgainstSignal(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		b, s, end := r.alloc(r.devs[0], 8), r.sem(), r.sem()
		r.do(func() { r.must(s.Signal(1)) })
		r.do(func() {
			r.must(r.devs[0].Queue(1).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(end, 1)}, gpu.Fill(b.All(), []byte{2})))
		})
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
		r.must(r.wait(end, 1))
		r.full("the later fill", r.bytes(r.devs[0].Queue(0), b), 2)
		r.must(b.Close())
		r.end()
	})
}

// TestChains submits a chain of operations, each on one of two queues. Each operation waits for the
// one before. Memory must be as if the operations ran one after the other.
func TestChains(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		a, b, s := r.alloc(d, 8), r.alloc(d, 8), r.sem()
		var model [2]byte
		for i := range uint64(5) {
			o := gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}
			q := d.Queue(x.Choose(2))
			switch x.Choose(3) {
			case 0:
				r.must(q.Submit(o, gpu.Fill(a.All(), []byte{byte(i + 1)})))
				model[0] = byte(i + 1)
			case 1:
				r.must(q.Submit(o, gpu.Copy(b.All(), a.All())))
				model[1] = model[0]
			case 2:
				r.must(q.Submit(o, gpu.UploadCopy(a.All(), []byte{9, 9, 9, 9, 9, 9, 9, 9})))
				model[0] = 9
			}
		}
		if x.Choose(2) == 1 {
			r.do(func() { r.must(r.wait(s, 3)) })
		}
		r.must(r.wait(s, 5))
		got := r.bytes(d.Queue(0), a)
		r.full("a", got, model[0])
		r.full("b", r.bytes(d.Queue(1), b), model[1])
		r.must(errors.Join(a.Close(), b.Close()))
		r.end()
	})
}

// TestParkReleaseCancel parks work. At the same time goroutines release the work, and may fail the
// work or close the device. The work's points must be reached or fail.
func TestParkReleaseCancel(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, end := r.alloc(d, 8), r.sem(), r.sem()
		boom := errors.New("boom")
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(end, 1)}, gpu.Fill(b.All(), []byte{1})))
		r.must(d.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{end.At(1), s.At(2)}, Signal: pts(end, 2)}, gpu.Fill(b.All(), []byte{2})))
		r.do(func() { r.is(s.Signal(1), boom, gpu.ErrValue) })
		r.do(func() { r.is(s.Signal(2), boom, gpu.ErrValue) })
		r.do(func() {
			if x.Choose(2) == 0 {
				s.Fail(boom)
			} else {
				s.Signal(2)
			}
		})
		r.do(func() {
			if x.Choose(3) == 0 {
				r.must(d.Close())
			}
		})
		for v := range uint64(2) {
			r.is(r.wait(end, v+1), boom, gpu.ErrClosed)
		}
		r.must(b.Close())
		r.end()
	})
}

// TestRetireAgainstWait waits in several ways for work of two queues, which any of the waiters may
// retire.
func TestRetireAgainstWait(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, u := r.alloc(d, 8), r.sem(), r.sem()
		called := make(chan error, 2)
		s.OnReached(2, func(err error) { called <- err })
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.Range(0, 4), []byte{1})))
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(b.Range(4, 4), []byte{2})))
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{3})))
		s.OnReached(1, func(err error) { called <- err })
		r.do(func() { r.must(r.wait(s, 2)) })
		r.do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Microsecond)
			defer cancel()
			if i, err := gpu.WaitAny(ctx, s.At(1), u.At(1)); err == nil && i < 0 {
				r.Errorf("WaitAny: %d", i)
			} else {
				r.is(err, context.DeadlineExceeded)
			}
		})
		r.do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.must(gpu.WaitAll(ctx, s.At(2), u.At(1)))
			if v, err := s.Query(); v != 2 || err != nil {
				r.Errorf("Query: %d, %v", v, err)
			}
		})
		r.must(<-called)
		r.must(<-called)
		r.must(b.Close())
		r.end()
	})
}

// TestPollUntilReached checks that a value is reached although every wait for it has a context that
// has already ended.
func TestPollUntilReached(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		b, s := r.alloc(r.devs[0], 8), r.sem()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		for end := time.Now().Add(patience()); s.Wait(ctx, 1) != nil; time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				r.Fatalf("the value is not reached after %v of asking", patience())
			}
		}
		r.must(b.Close())
		r.end()
	})
}

// TestFailAgainstPublish fails a semaphore that work will signal, while the work is issued, runs
// and is retired.
func TestFailAgainstPublish(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, end := r.alloc(d, 8), r.sem(), r.sem()
		boom := errors.New("boom")
		r.do(func() { s.Fail(boom) })
		r.do(func() {
			r.is(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(end, 1)}, gpu.Fill(b.All(), []byte{2})), boom)
		})
		r.is(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})), boom)
		r.is(r.wait(s, 1), boom)
		r.is(r.wait(end, 1), boom)
		if err := r.wait(s, 2); !errors.Is(err, boom) {
			r.Errorf("a value above: %v", err)
		}
		r.must(b.Close())
		r.end()
	})
}

// TestSignalsTwice signals a value, by the host or by another device, that work in flight signals
// too. Waiters for higher values must get the error, unless the host's Signal has got it.
func TestSignalsTwice(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		one, two, s, u := r.alloc(r.devs[0], 8), r.alloc(r.devs[1], 8), r.sem(), r.sem()
		byHost := x.Choose(2) == 0
		if !byHost {
			r.must(r.sim.StallDevice(0))
		}
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(one.All(), []byte{1})))
		mistake := true
		if byHost {
			mistake = s.Signal(1) == nil // otherwise the work signalled it first
		} else {
			r.must(r.devs[1].Queue(0).Submit(gpu.Order{Signal: []gpu.Point{s.At(1), u.At(1)}}, gpu.Fill(two.All(), []byte{1})))
			r.must(r.wait(u, 1)) // work of the second device has signalled s, and nobody has queried the first device
			r.do(func() { r.must(r.sim.ResumeDevice(0)) })
		}
		if mistake && r.wait(s, 2) == nil {
			r.Errorf("a value that nobody signals is reached")
		}
		r.wg.Wait()
		r.must(one.Close())
		r.must(two.Close())
		r.end()
	})
}

// TestHostCalls checks that host calls, notifications and a link run between work, also while a
// function of OnReached blocks.
func TestHostCalls(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, gate := r.alloc(d, 8), r.sem(), r.sem()
		var calls atomic.Int32
		held := make(chan struct{})
		gate.OnReached(1, func(error) { <-held }) // this function must not block others
		gate.Link(1, s, 1)
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.HostCall(func() error { calls.Add(1); return nil })))
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Fill(b.All(), []byte{1})))
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 3), Signal: pts(s, 4)}, gpu.Notify(func() { calls.Add(1) })))
		r.do(func() { r.must(gate.Signal(1)) })
		r.must(r.wait(s, 4))
		close(held)
		r.must(b.Close())
		r.end() // also waits until all functions have returned
		if n := calls.Load(); n != 2 {
			r.Errorf("%d calls", n)
		}
	})
}

// TestBarrierAgainstClose closes a device with a barrier that waits for another device's work. The
// barrier's signal must be reached when Close returns.
func TestBarrierAgainstClose(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		config := cuda()
		config.Devices = 2
		r := open(x, config, quick())
		d, other := r.devs[0], r.devs[1]
		x.Window(false)
		b, s, passed := r.alloc(d, 64), r.sem(), r.sem()
		r.must(r.sim.StallDevice(0))
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		r.must(other.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(passed, 1)}, gpu.Barrier()))
		x.Window(true)
		r.do(func() { r.must(r.sim.ResumeDevice(0)) })
		r.must(other.Close())
		if v, err := passed.Query(); v != 1 || err != nil {
			x.Errorf("at %d when Close has returned: %v", v, err)
		}
		r.wg.Wait()
		r.end()
	})
}

// TestBarriers joins points by a barrier whose waits include another barrier's signal. That signal
// may fail.
func TestBarriers(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, u, end := r.alloc(d, 8), r.sem(), r.sem(), r.sem()
		boom := errors.New("boom")
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.Range(0, 4), []byte{1})))
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(b.Range(4, 4), []byte{1})))
		passing := r.sem()
		if x.Choose(2) == 1 {
			r.do(func() { passing.Fail(boom) })
		}
		r.is(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(passing, 1)}, gpu.Barrier()), boom)
		r.is(d.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{passing.At(1), u.At(1)}, Signal: pts(end, 1)}, gpu.Barrier()), boom)
		r.is(d.Queue(0).Submit(gpu.Order{Wait: pts(end, 1), Signal: pts(end, 2)}, gpu.Fill(b.All(), []byte{2})), boom)
		err := r.wait(end, 2)
		r.is(err, boom)
		if err == nil {
			r.full("behind barriers", r.bytes(d.Queue(1), b), 2)
		}
		r.must(b.Close())
		r.end()
	})
}

// TestPick picks a queue while another goroutine submits work and waits for the work.
func TestPick(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		b, s := r.alloc(r.devs[0], 8), r.sem()
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		r.do(func() {
			r.must(r.devs[0].Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
			r.must(r.wait(s, 2))
		})
		for range 3 {
			if q, err := r.devs[0].Pick(1); err != nil || q != r.devs[0].Queue(0) {
				r.Errorf("Pick(1) is queue %v, %v, want queue 0", q, err)
			}
			if q, err := r.devs[0].PickAfter(0, s.At(2)); err != nil || q == nil {
				r.Errorf("after what may have been given: %v, %v", q, err)
			}
		}
		r.must(r.wait(s, 2))
		r.must(b.Close())
		r.end()
	})
}

// TestOvertaken lets two unordered submissions signal one semaphore. The submission with the lower
// value may run later. The semaphore has then passed this value already, which is no error.
func TestOvertaken(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, s, one, two := r.alloc(d, 8), r.sem(), r.sem(), r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(one, 1), Signal: pts(s, 1)}, gpu.Fill(b.Range(0, 4), []byte{1})))
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(two, 1), Signal: pts(s, 2)}, gpu.Fill(b.Range(4, 4), []byte{1})))
		r.do(func() { r.must(two.Signal(1)) })
		if x.Choose(2) == 1 {
			r.do(func() { r.must(one.Signal(1)) })
			r.must(r.wait(s, 2))
		} else {
			r.must(r.wait(s, 2))
			r.must(one.Signal(1))
		}
		r.wg.Wait()
		end := r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(end, 1)}, gpu.Barrier()))
		r.must(r.wait(end, 1))
		r.must(r.wait(s, 2))
		r.full("both fills", r.bytes(d.Queue(0), b), 1)
		r.must(b.Close())
		r.end()
	})
}
