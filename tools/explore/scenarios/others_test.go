package scenarios

import (
	"errors"
	"reflect"
	"runtime"
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

// natively calls a function on a thread with a current device, as other code that uses the driver
// does.
func natively(v driver.Device, fn func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		bound := v.Bind()
		err := errors.Join(bound, fn(), v.Unbind())
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// drain waits until a stream of other code has no work left.
func drain(v driver.Device, h driver.Stream) error {
	e, err := v.NewEvent()
	if err != nil {
		return err
	}
	err = v.Record(e, h)
	for done := false; err == nil && !done; {
		if done, err = v.Query(e); !done {
			time.Sleep(10 * time.Microsecond)
		}
	}
	return errors.Join(err, v.DestroyEvent(e))
}

// takeLeft destroys the streams that a closed device has left to the driver, and closes the
// driver's device.
func (r *rig) takeLeft(v driver.Device) {
	natively(v, func() error {
		for _, h := range r.sim.Streams(0) {
			v.DestroyStream(h)
		}
		return v.Close()
	})
}

// TestAdopted gives an adopted stream work while its queue or device is closed, or the device is
// lost. When Close has returned, other code must be able to use the stream again.
func TestAdopted(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		v, err := r.sim.Open(0)
		r.must(err)
		var h driver.Stream
		r.must(natively(v, func() (err error) { h, err = v.NewStream(); return err }))
		q, err := interop.AdoptStream(d, h)
		r.must(err)
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1})
		r.must(err)
		b, s := r.alloc(d, 64), r.sem()
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost, gpu.ErrUnallocated}
		how := x.Choose(4)
		r.do(func() {
			r.is(q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})), ended...)
			r.is(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.Range(0, 8), []byte{2})), ended...)
			r.is(q.Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Fill(b.Range(0, 4), []byte{3})), ended...)
			var m *gpu.Buffer
			err := d.Queue(0).Submit(gpu.Order{Wait: pts(s, 3), Signal: pts(s, 4)}, gpu.Alloc(&m, p, 64))
			if r.is(err, ended...); err != nil {
				s.Fail(err)
				return
			}
			r.is(q.Submit(gpu.Order{Wait: pts(s, 4), Signal: pts(s, 5)}, gpu.Copy(m.All(), b.All())), ended...)
			r.is(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 5), Signal: pts(s, 6)}, gpu.Free(m)), ended...)
			err = r.wait(s, 6)
			if r.is(err, ended...); how == 0 {
				r.must(err)
			}
		})
		switch how {
		case 0:
			r.wg.Wait()
		case 1:
			r.do(func() { r.must(q.Close()) })
		case 2:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		case 3:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		r.must(q.Close())
		r.is(natively(v, func() error { return errors.Join(drain(v, h), v.DestroyStream(h)) }), driver.ErrLost, driver.ErrBusy)
		r.wg.Wait()
		for _, d := range r.devs {
			r.is(d.Close(), driver.ErrLost)
		}
		r.is(natively(v, v.Close), driver.ErrLost)
		if left := r.sim.Leaks(); len(left) > 0 && how != 3 {
			r.Errorf("left behind: %q", left)
		}
	})
}

// TestSharedEvents orders two queues by an event, which is then closed.
func TestSharedEvents(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		e, err := interop.NewEvent(d)
		r.must(err)
		b, gate, s, u := r.alloc(d, 64), r.sem(), r.sem(), r.sem()
		x.Window(true)
		r.do(func() { r.must(gate.Signal(1)) })
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{5})))
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, interop.RecordEvent(e)))
		r.must(s.WaitIssued(t.Context(), 2))
		if x.Choose(2) == 1 {
			r.do(func() { b2 := r.alloc(d, 64); r.must(b2.Close()) })
		}
		err = d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, interop.WaitEvent(e))
		r.do(func() { r.must(e.Close()) })
		r.must(err)
		got := make([]byte, 64)
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, gpu.Download(got, b.All())))
		r.must(r.wait(u, 2))
		r.full("what the event is behind", got, 5)
		r.is(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 3)}, interop.WaitEvent(e)), gpu.ErrClosed)
		r.wg.Wait()
		b.Close()
		r.end()
	})
}

// TestValues makes a stream wait for a value that another queue or the host writes, while another
// buffer and an event are closed. No wait may hang, and work behind the wait must see everything
// written before the value.
func TestValues(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, cuda(), quick())
		x.Window(false)
		d := r.devs[0]
		word, err := d.Alloc(gpu.HostMem, 8)
		r.must(err)
		b, spare, s, u := r.alloc(d, 64), r.alloc(d, 64), r.sem(), r.sem()
		e, err := interop.NewEvent(d)
		r.must(err)
		x.Window(true)
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, interop.WaitValue(word.All(), 1)))
		got := make([]byte, 64)
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Download(got, b.All())))
		r.do(func() { r.must(errors.Join(spare.Close(), e.Close())) })
		r.do(func() {
			r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(b.All(), []byte{6})))
			if x.Choose(2) == 1 {
				r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, interop.WriteValue(word.All(), 1)))
				return
			}
			r.must(r.wait(u, 1))
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&word.Bytes()[0])), 1)
		})
		r.must(r.wait(s, 2))
		r.full("what was written before the number", got, 6)
		r.wg.Wait()
		r.must(errors.Join(b.Close(), word.Close()))
		r.end()
	})
}

// TestTimings reads and closes a timing while operations use the timing.
func TestTimings(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		timing, err := d.NewTiming()
		r.must(err)
		b, s := r.alloc(d, 64), r.sem()
		x.Window(true)
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1}).Timed(timing)))
		r.do(func() { timing.Duration() }) // may fail, because there may be no time yet
		r.must(r.wait(s, 1))
		if _, err := timing.Duration(); err != nil {
			r.Errorf("when it is done: %v", err)
		}
		r.do(func() { r.must(timing.Close()) })
		r.is(d.Queue(1).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{2}).Timed(timing)), gpu.ErrClosed)
		timing.Duration()
		if x.Choose(2) == 1 {
			r.is(d.Close())
		}
		r.wg.Wait()
		b.Close()
		r.end()
	})
}

// TestTimingsAgainst reads the timing of a fill, a recording, a host call or a download. Meanwhile
// nothing happens, another goroutine reads the timing, the work's semaphore fails, the device is
// lost, or the device is closed. In the last three cases the timing may be closed too. In the first
// two cases the timing must have a duration when the work is done.
func TestTimingsAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		timing, err := d.NewTiming()
		r.must(err)
		b, s, gate := r.alloc(d, 64), r.sem(), r.sem()
		c := r.recorded(d, b.All(), 1)
		how, what := x.Choose(5), x.Choose(4)
		x.Window(true)
		ended := []error{errBoom, gpu.ErrClosed, driver.ErrLost}
		give := func(from, to uint64) error {
			o := gpu.Order{Wait: pts(s, from), Signal: pts(s, to)}
			if from == 0 {
				o.Wait = pts(gate, 1)
			}
			op := gpu.Download(make([]byte, 64), b.All())
			switch what {
			case 0:
				op = gpu.Fill(b.All(), []byte{1})
			case 1:
				op = gpu.Execute(c)
			case 2:
				op = gpu.HostCall(func() error { return nil })
			}
			return d.Queue(0).Submit(o, op.Timed(timing))
		}
		r.do(func() { r.must(gate.Signal(1)) })
		r.do(func() {
			for n := range uint64(2) {
				err := give(n, n+1)
				if r.is(err, ended...); err != nil {
					return
				}
				if err = r.wait(s, n+1); err != nil {
					r.is(err, ended...)
					return
				}
				if _, err := timing.Duration(); err != nil && how < 2 {
					r.Errorf("when it is done: %v", err)
				}
			}
		})
		switch how {
		case 1:
			r.do(func() { timing.Duration() })
		case 2:
			r.do(func() { s.Fail(errBoom) })
		case 3:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		case 4:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		}
		if x.Choose(2) == 1 && how > 1 {
			r.must(timing.Close())
		}
		r.wg.Wait()
		timing.Duration()
		r.must(errors.Join(timing.Close(), c.Close(), b.Close()))
		r.lose()
	})
}

// TestEventsOfOthers orders a queue behind other code's work by that code's event. Meanwhile the
// event is released, or the device is closed or lost. The event belongs to the runtime until the
// function passed to AdoptEvent has been called.
func TestEventsOfOthers(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		v, err := r.sim.Open(0)
		r.must(err)
		var h driver.Stream
		var e driver.Event
		r.must(natively(v, func() error {
			var one, two error
			h, one = v.NewStream()
			e, two = v.NewEvent()
			return errors.Join(one, two)
		}))
		b, s, u := r.alloc(d, 64), r.sem(), r.sem()
		var free atomic.Bool
		shared, err := interop.AdoptEvent(d, e, func() { free.Store(true) })
		r.must(err)
		how, back := x.Choose(4), x.Choose(2) == 1
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost}
		r.is(natively(v, func() error {
			if err := v.Fill(h, b.Ptr(), 0x05050505, 4, 16); err != nil {
				return err
			}
			return v.Record(e, h)
		}), driver.ErrLost)
		got := make([]byte, 64)
		r.do(func() {
			err := d.Queue(1).Submit(gpu.Order{Signal: pts(s, 1)}, interop.WaitEvent(shared))
			if r.is(err, ended...); err != nil {
				return
			}
			err = d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Download(got, b.All()))
			if r.is(err, ended...); err != nil {
				return
			}
			err = r.wait(s, 2)
			if r.is(err, ended...); err == nil {
				r.full("what the event is behind", got, 5)
			}
			if err == nil && back { // use the same event in the other direction
				err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(b.All(), []byte{6}))
				if r.is(err, ended...); err == nil {
					err = d.Queue(0).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, interop.RecordEvent(shared))
				}
				if r.is(err, ended...); err == nil {
					r.is(r.wait(u, 2), ended...)
				}
			}
		})
		switch how {
		case 1:
			r.do(func() { r.must(shared.Close()) })
		case 2:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		case 3:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		if how == 1 {
			r.settles("an event of others is told to be free", free.Load)
		}
		r.wg.Wait()
		r.must(errors.Join(shared.Close(), b.Close()))
		for _, d := range r.devs {
			r.is(d.Close(), driver.ErrLost)
		}
		r.settles("an event of others is told to be free", free.Load)
		r.is(natively(v, func() error { return errors.Join(drain(v, h), v.DestroyEvent(e), v.DestroyStream(h)) }), driver.ErrLost, driver.ErrBusy)
		r.is(natively(v, v.Close), driver.ErrLost)
		if left := r.sim.Leaks(); len(left) > 0 && how != 3 {
			r.Errorf("left behind: %q", left)
		}
	})
}

// TestCodeAgainst asks a module for a kernel, the kernel's facts and a variable, and a recording
// for its figures, while the module is closed. Meanwhile the recording or the device may be closed,
// or the device lost. Each call must return its result, or an error that says closed, lost or
// unsupported. So must a fill of the variable.
func TestCodeAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Kernels: map[string]simdriver.Kernel{"put": simdriver.MustKernel(put)}}, quick())
		x.Window(false)
		d := r.devs[0]
		code, first := r.load(d, "table=64")
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		from, err := c.Timestamp()
		r.must(err)
		to, err := c.Timestamp(from)
		r.must(err)
		r.must(c.End())
		s := r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
		r.must(r.wait(s, 1))
		how := x.Choose(4)
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost, driver.ErrUnsupported}
		r.do(func() {
			b, err := code.Global("table")
			if r.is(err, ended...); err != nil {
				return
			}
			u := r.sem()
			err = d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Fill(b.All(), []byte{1}))
			if r.is(err, ended...); err == nil {
				r.is(r.wait(u, 1), ended...)
			}
			r.must(b.Close())
		})
		r.do(func() {
			k, err := code.Kernel("put")
			if r.is(err, ended...); err == nil && !reflect.DeepEqual(k.Info(), first.Info()) {
				r.Errorf("a kernel has two descriptions: %+v, %+v", k.Info(), first.Info())
			}
			_, err = first.Occupancy(32, 0)
			r.is(err, ended...)
			_, _, err = first.BlockSize(0, 0)
			r.is(err, ended...)
		})
		r.do(func() {
			_, err := c.Elapsed(from, to)
			r.is(err, ended...)
			_, err = c.ScratchSize()
			r.is(err, ended...)
			_, _, err = d.MemInfo()
			r.is(err, ended...)
		})
		r.do(func() { r.must(code.Close()) })
		switch how {
		case 1:
			r.do(func() { r.must(c.Close()) })
		case 2:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		case 3:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		r.wg.Wait()
		r.must(c.Close())
		r.lose()
	})
}

// TestCodeClosed closes code while launches of it are parked, issued and recorded, and the device
// may be closed or lost. The code must be unloaded once nothing uses it.
func TestCodeClosed(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Kernels: map[string]simdriver.Kernel{"put": simdriver.MustKernel(put)}}, quick())
		x.Window(false)
		d := r.devs[0]
		code, k := r.load(d)
		b, s, u, gate := r.alloc(d, 8), r.sem(), r.sem(), r.sem()
		put := gpu.Launch(k, gpu.Grid{}, b.All())
		how := x.Choose(4)
		var c *gpu.CommandBuffer
		var err error
		if x.Choose(2) == 1 {
			c, err = d.NewCommandBuffer(gpu.CommandOptions{})
			r.must(err)
			one, err := c.Add(gpu.Fill(b.Range(4, 4), []byte{2}))
			r.must(err)
			_, err = c.Add(put, one)
			r.must(err)
			r.must(c.End())
		}
		x.Window(true)
		ended := []error{gpu.ErrClosed, driver.ErrLost}
		launch := func(q int, o gpu.Order) error {
			if c != nil {
				return d.Queue(q).Submit(o, gpu.Execute(c))
			}
			return d.Queue(q).Submit(o, put)
		}
		r.do(func() { r.must(gate.Signal(1)) })
		r.do(func() {
			err := launch(0, gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)})
			if r.is(err, ended...); err == nil {
				err = r.wait(s, 1)
				r.is(err, ended...)
			} else {
				s.Fail(err) // otherwise work that waits for s waits for ever
			}
		})
		err = launch(1, gpu.Order{Wait: pts(s, 1), Signal: pts(u, 1)})
		r.is(err, ended...)
		r.do(func() { r.must(code.Close()) })
		switch how {
		case 1:
			if c != nil {
				r.do(func() { r.must(c.Close()) })
			}
		case 2:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		case 3:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		r.wg.Wait()
		if err == nil {
			err = r.wait(u, 1)
			r.is(err, ended...)
		}
		if how < 2 && err == nil { // otherwise the device may be closed or lost
			if got := r.bytes(d.Queue(0), b); got[0] != 1 {
				r.Errorf("launches were reached, and have left %v", got)
			}
		}
		if c != nil {
			r.must(c.Close())
		}
		r.must(b.Close())
		r.lose()
	})
}
