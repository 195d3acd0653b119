package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestShutdownGivesUp shuts a device down with a deadline of a millisecond. Its work is stalled, or
// waits for a value that is written late or never. Every waiter must return. When the point of
// Order.Free is reached, nothing may touch the program's memory.
func TestShutdownGivesUp(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, cuda(), quick())
		x.Window(false)
		d := r.devs[0]
		v, err := r.sim.Open(0)
		r.must(err)
		word, err := d.Alloc(gpu.HostMem, 8)
		r.must(err)
		b, s, free := r.alloc(d, 64), r.sem(), r.sem()
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1})
		r.must(err)
		waits, goesOn := x.Choose(2) == 1, x.Choose(2) == 1
		if waits {
			r.must(d.Queue(0).Submit(gpu.Order{}, interop.WaitValue(word.All(), 1)))
		} else {
			r.must(r.sim.StallDevice(0))
		}
		x.Window(true)
		mem := make([]byte, 64)
		var m *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{}, gpu.Alloc(&m, p, 64))
		r.must(err)
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1), Free: pts(free, 1)}, gpu.Download(mem, b.All())))
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Free(m)))
		if goesOn {
			r.do(func() {
				if time.Sleep(time.Duration(x.Choose(4)) * 300 * time.Millisecond); !waits {
					r.is(r.sim.ResumeDevice(0), driver.ErrLost)
				} else if err := d.Queue(1).Submit(gpu.Order{}, interop.WriteValue(word.All(), 1)); err != nil {
					r.is(err, gpu.ErrClosed, driver.ErrLost)
				}
			})
		}
		r.do(func() { r.is(r.wait(s, 2), gpu.ErrClosed, driver.ErrLost) })
		r.do(func() {
			if err := r.wait(free, 1); err != nil {
				r.is(err, driver.ErrBusy)
				return
			}
			for i := range mem {
				mem[i] = 9
			}
			time.Sleep(time.Second)
			r.full("memory of the program, after Free", mem, 9)
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		err = d.Shutdown(ctx)
		var late *gpu.CloseError
		if r.is(err, gpu.ErrClosed, driver.ErrBusy, driver.ErrLost); !errors.As(err, &late) && !errors.Is(err, driver.ErrBusy) && err != nil {
			r.Errorf("Shutdown = %v", err)
		}
		r.wg.Wait()
		r.sim.ResumeDevice(0)
		r.sim.LoseDevice(0, nil)
		r.takeLeft(v)
		if left := r.sim.Leaks(); err == nil && len(left) > 0 {
			r.Errorf("left behind: %q", left)
		}
	})
}

// TestAcrossDrivers lets devices of two drivers wait for each other through the host, while a
// device is closed or lost, or the semaphore fails. Every wait must return.
func TestAcrossDrivers(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		other := simdriver.New(simdriver.Config{Strict: true})
		far, err := gpu.Open(other, 0, quick())
		r.must(err)
		near := r.devs[0]
		a, b := r.alloc(near, 64), r.alloc(far, 64)
		s, boom := r.sem(), errors.New("boom")
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost, boom}
		how := x.Choose(4)
		r.do(func() {
			r.is(near.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{1})), ended...)
			r.is(far.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{2})), ended...)
			r.is(near.Queue(1).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Fill(a.All(), []byte{3})), ended...)
			err := r.wait(s, 3)
			if r.is(err, ended...); how == 0 {
				r.must(err)
				r.full("the far one's", r.bytes(far.Queue(1), b), 2)
				r.full("the near one's", r.bytes(near.Queue(0), a), 3)
			}
		})
		switch how {
		case 0:
			r.wg.Wait()
		case 1:
			r.do(func() { other.LoseDevice(0, nil) })
			r.wg.Wait()
		case 2:
			r.do(func() { s.Fail(boom) })
			r.wg.Wait()
		case 3:
			r.do(func() { r.is(far.Close(), driver.ErrLost) })
			// Work that waits for refused work would wait for ever, if s did not fail.
			r.do(func() {
				time.Sleep(time.Second)
				s.Fail(gpu.ErrClosed)
			})
			r.wg.Wait()
		}
		r.is(far.Close(), driver.ErrLost)
		if left := other.Leaks(); len(left) > 0 && how != 1 {
			r.Errorf("left behind: %q", left)
		}
		r.end()
	})
}

// TestStreamsJoin joins two streams while the first fails or the first one's device is lost. Every
// wait must return. If the work of both streams completes, the copied bytes must be right.
func TestStreamsJoin(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		x.Window(false)
		one, other := r.devs[0].Queue(0).NewStream(), r.devs[1].Queue(0).NewStream()
		a, b, boom := r.alloc(r.devs[0], 64), r.alloc(r.devs[1], 64), errors.New("boom")
		got := make([]byte, 64)
		x.Window(true)
		how := x.Choose(3)
		ended := []error{boom, driver.ErrLost}
		r.do(func() {
			r.is(one.Fill(a.All(), []byte{1}), ended...)
			p := one.Point()
			r.is(other.After(p), ended...)
			r.is(other.Copy(b.All(), a.All()), ended...)
			r.is(one.After(other.Point()), ended...)
			r.is(one.Fill(a.All(), []byte{2}), ended...)
			done := new(gpu.Semaphore).At(1)
			r.is(r.devs[1].Queue(1).Submit(gpu.Order{Wait: []gpu.Point{other.Point()}, Signal: []gpu.Point{done}}, gpu.Download(got, b.All())), ended...)
			r.is(other.After(done), ended...)
			r.is(other.Do(gpu.Barrier()), ended...)
			err := errors.Join(r.ends(one), r.ends(other))
			if how == 0 {
				r.must(err)
			}
			if err == nil {
				r.full("what was copied", got, 1)
			}
			if how == 0 {
				r.full("what was filled anew", r.bytes(r.devs[0].Queue(1), a), 2)
			}
		})
		switch how {
		case 1:
			r.do(func() { one.Fail(boom) })
		case 2:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		r.wg.Wait()
		a.Close()
		b.Close()
		r.lose()
	})
}
