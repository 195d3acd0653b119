package scenarios

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestValueThatIsLate makes a stream wait for a value, by an operation or in a recording. The value
// is written late or never, while the semaphore fails, the recording and memory are closed, or the
// device is closed or lost. Other queues must go on, and the waiting work must finish or fail.
func TestValueThatIsLate(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, cuda(), quick())
		x.Window(false)
		d := r.devs[0]
		v, err := r.sim.Open(0)
		r.must(err)
		word, err := d.Alloc(gpu.HostMem, 8)
		r.must(err)
		b, aside, s, u := r.alloc(d, 64), r.alloc(d, 64), r.sem(), r.sem()
		how, written := x.Choose(5), x.Choose(3)
		var c *gpu.CommandBuffer
		if x.Choose(2) == 1 {
			c, err = d.NewCommandBuffer(gpu.CommandOptions{})
			r.must(err)
			one, err := c.Add(interop.WaitValue(word.All(), 1))
			r.must(err)
			two, err := c.Add(gpu.Fill(b.All(), []byte{1}), one)
			r.must(err)
			_, err = c.Add(gpu.Fill(b.Range(0, 8), []byte{2}), two)
			r.must(err)
			r.must(c.End())
		}
		x.Window(true)
		ended := []error{errBoom, gpu.ErrClosed, driver.ErrLost}
		wait := func() error {
			o := gpu.Order{Signal: pts(s, 1)}
			if c != nil {
				return d.Queue(0).Submit(o, gpu.Execute(c))
			}
			return d.Queue(0).Submit(o, interop.WaitValue(word.All(), 1))
		}
		r.must(wait())
		r.do(func() {
			if written == 2 {
				return
			}
			time.Sleep(time.Duration(written) * time.Second)
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&word.Bytes()[0])), 1)
		})
		r.do(func() { // the other queue must go on
			err := d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(aside.All(), []byte{3}))
			if r.is(err, ended...); err == nil {
				r.is(r.wait(u, 1), ended...)
			}
		})
		behind := d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.HostCall(func() error { return nil }))
		r.is(behind, ended...)
		switch how {
		case 0:
			if written == 2 {
				s.Fail(errBoom)
			}
		case 1:
			s.Fail(errBoom)
		case 2:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		case 3:
			if c != nil {
				r.do(func() { r.must(c.Close()) })
			}
			r.do(func() { r.must(b.Close()) })
			if written == 2 {
				s.Fail(errBoom)
			}
		case 4:
			r.do(func() { r.is(d.Close(), driver.ErrLost, driver.ErrBusy) })
		}
		if behind == nil {
			err := r.wait(s, 2)
			if r.is(err, ended...); err == nil && written == 2 {
				r.Errorf("a wait for a number that nobody writes is over")
			}
		}
		r.wg.Wait()
		if written == 2 && how != 4 && x.Choose(2) == 1 { // otherwise Close gives up the wait
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&word.Bytes()[0])), 1)
			written = 0
		}
		if c != nil {
			r.must(c.Close())
		}
		r.must(errors.Join(b.Close(), aside.Close(), word.Close()))
		if how == 2 || written == 2 {
			for _, d := range r.devs {
				r.is(d.Close(), driver.ErrLost, driver.ErrBusy)
			}
			r.sim.LoseDevice(0, nil)
			r.takeLeft(v)
			return
		}
		r.must(natively(v, v.Close))
		r.lose()
	})
}

// TestAllAtOnce signals two semaphores that work of two devices waits for. Meanwhile both
// semaphores may fail, or other work may signal one of them. All waits must return, a function of
// OnReached must be called once, and a failure must stay.
func TestAllAtOnce(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		x.Window(false)
		s, u, w := r.sem(), r.sem(), r.sem()
		one, two := r.alloc(r.devs[0], 8), r.alloc(r.devs[1], 8)
		how := x.Choose(3)
		x.Window(true)
		var called atomic.Int32
		fills := func(i int, b *gpu.Buffer) {
			err := r.devs[i].Queue(i).Submit(gpu.Order{Wait: []gpu.Point{s.At(1), u.At(1)}, Signal: pts(w, uint64(i+1))}, gpu.Fill(b.All(), []byte{byte(i + 1)}))
			r.is(err, errBoom, gpu.ErrValue)
		}
		s.OnReached(1, func(error) { called.Add(1) })
		r.do(func() {
			err := gpu.SignalAll(s.At(1), u.At(1))
			if how == 0 {
				r.must(err)
			}
			r.is(err, errBoom, gpu.ErrValue)
		})
		r.do(func() {
			switch how {
			case 1:
				gpu.FailAll(errBoom, u, s)
			case 2:
				r.is(r.devs[1].Queue(0).Submit(gpu.Order{Signal: pts(u, 2)}, gpu.Barrier()), errBoom, gpu.ErrValue)
			}
		})
		fills(0, one)
		if err := r.wait(w, 1); err != nil {
			r.is(err, errBoom)
		}
		fills(1, two)
		r.is(r.wait(w, 2), errBoom)
		r.wg.Wait()
		if how == 1 && (!errors.Is(r.wait(s, 9), errBoom) || !errors.Is(r.wait(u, 9), errBoom)) {
			r.Errorf("a failure is not kept")
		}
		r.settles("a function is called once", func() bool { return called.Load() == 1 })
		r.must(errors.Join(one.Close(), two.Close()))
		r.end()
	})
}
