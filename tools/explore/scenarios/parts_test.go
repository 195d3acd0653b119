package scenarios

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// inParts makes a recording of three parts with host calls between them. The recording fills its
// scratch memory with 4 and copies it to a binding of 64 bytes. If scratch is not nil, the scratch
// memory is this buffer.
func (r *rig) inParts(d *gpu.Device, scratch *gpu.Buffer, call func() error) *gpu.CommandBuffer {
	c, err := d.NewCommandBuffer(gpu.CommandOptions{})
	r.must(err)
	to, err := c.Binding()
	r.must(err)
	from, err := c.Scratch(64)
	r.must(err)
	if scratch != nil {
		r.must(c.SetScratch(scratch.All()))
	}
	_, err = c.Add(gpu.Fill(from.All(), []byte{4}))
	r.must(err)
	_, err = c.Add(gpu.HostCall(call))
	r.must(err)
	one, err := c.Add(gpu.Copy(to.Range(0, 32), from.Range(0, 32)))
	r.must(err)
	_, err = c.Add(gpu.Copy(to.Range(32, 32), from.Range(32, 32)), one)
	r.must(err)
	_, err = c.Add(gpu.HostCall(call))
	r.must(err)
	_, err = c.Add(gpu.Fill(to.Range(0, 8), []byte{4}))
	r.must(err)
	r.must(c.End())
	return c
}

// TestPartsAgainst executes a recording of several parts twice concurrently, while a semaphore
// fails, the recording is closed, its device is closed or lost, or a host call fails. Each
// execution must finish or fail. Memory that an execution uses must not go to another alloc before
// the execution is over.
func TestPartsAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d := r.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1 << 21})
		r.must(err)
		how := x.Choose(6)
		var scratch *gpu.Buffer
		if x.Choose(2) == 1 {
			scratch = r.alloc(d, 256)
		}
		var calls atomic.Int32
		c := r.inParts(d, scratch, func() error {
			if calls.Add(1) == 2 && how == 5 {
				return errBoom
			}
			return nil
		})
		u, s, other := r.sem(), r.sem(), r.sem()
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&a, p, 64))
		r.must(err)
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, gpu.Fill(a.All(), []byte{1})))
		r.must(r.wait(u, 2))
		kept := r.alloc(d, 64)
		x.Window(true)
		ended := []error{errBoom, gpu.ErrClosed, driver.ErrLost, gpu.ErrUnallocated}
		r.do(func() {
			o := gpu.Order{Signal: pts(other, 1)}
			if scratch != nil { // both executions use scratch, so the program must order them
				o.Wait = pts(s, 1)
			}
			err := d.Queue(1).Submit(o, gpu.Execute(c, kept.All()))
			if r.is(err, ended...); err == nil {
				err = r.wait(other, 1)
				r.is(err, ended...)
			}
			if err == nil {
				if got := make([]byte, 64); d.Queue(1).Submit(gpu.Order{Signal: pts(other, 2)}, gpu.Download(got, kept.All())) == nil && r.wait(other, 2) == nil {
					r.full("what an execution has copied", got, 4)
				}
			} else if how == 0 {
				r.must(err)
			}
		})
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c, a.All()))
		r.is(err, ended...)
		if x.Choose(2) == 1 {
			time.Sleep(10 * time.Microsecond)
		}
		switch how {
		case 1:
			s.Fail(errBoom)
		case 2:
			r.do(func() { r.must(c.Close()) })
		case 3:
			r.do(func() { r.is(d.Close(), driver.ErrLost) })
		case 4:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		over := r.wait(s, 1)
		if r.is(over, ended...); how == 0 {
			r.must(over)
		}
		err = d.Queue(1).Submit(gpu.Order{Signal: pts(u, 3)}, gpu.Free(a))
		r.is(err, ended...)
		var b *gpu.Buffer
		err = d.Queue(1).Submit(gpu.Order{Wait: pts(u, 3), Signal: pts(u, 4)}, gpu.Alloc(&b, p, 64))
		if r.is(err, ended...); err == nil {
			err = d.Queue(1).Submit(gpu.Order{Wait: pts(u, 4), Signal: pts(u, 5)}, gpu.Fill(b.All(), []byte{2}))
			if r.is(err, ended...); err == nil {
				err = r.wait(u, 5)
				r.is(err, ended...)
			}
		}
		r.wg.Wait()
		if err == nil {
			got := make([]byte, 64)
			if d.Queue(0).Submit(gpu.Order{Signal: pts(u, 6)}, gpu.Download(got, b.All())) == nil && r.wait(u, 6) == nil {
				r.full("another one's memory", got, 2)
			}
		}
		b.Close()
		a.Close()
		if scratch != nil {
			r.must(scratch.Close())
		}
		r.must(errors.Join(c.Close(), kept.Close(), p.Close()))
		if how >= 3 {
			r.lose()
			return
		}
		r.end()
	})
}

// TestRecordedCollectives executes recordings with a collective, one a rank. Meanwhile a
// communicator is aborted or closed, a device is lost or closed, or a recording or memory is
// closed. Each execution, and the work behind it, must finish or fail.
func TestRecordedCollectives(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{LazyComms: x.Choose(2) == 1})
		x.Window(false)
		how := x.Choose(7)
		var recs [2]*gpu.CommandBuffer
		var mem [2]*gpu.Buffer
		for i, d := range r.devs {
			mem[i] = r.alloc(d, 4)
			c, err := d.NewCommandBuffer(gpu.CommandOptions{})
			r.must(err)
			if x.Choose(2) == 1 {
				_, err = c.Add(gpu.Fill(mem[i].All(), []byte{byte(i + 1)}))
			} else {
				r.fill(d, mem[i], byte(i+1))
			}
			r.must(err)
			_, err = c.Add(r.comms[i].Group(collective.AllReduce(mem[i].All(), mem[i].All(), collective.Uint8, collective.Sum())))
			r.must(err)
			_, err = c.Add(gpu.Fill(mem[i].Range(0, 2), []byte{9}))
			r.must(err)
			r.must(c.End())
			recs[i] = c
		}
		gate := r.sem()
		x.Window(true)
		ok := func(err error) {
			r.failed(err, errBoom, driver.ErrLost, gpu.ErrClosed)
			if how == 0 {
				r.must(err)
			}
		}
		apart := func() { // otherwise a rank may wait for one that never arrives
			for _, c := range r.comms {
				c.Abort(errBoom)
			}
		}
		r.do(func() { r.must(gate.Signal(1)) })
		r.do(func() {
			switch how {
			case 1:
				r.comms[0].Abort(errBoom)
			case 2:
				r.sim.LoseDevice(0, nil)
			case 3:
				ok(r.comms[0].Close())
			case 4:
				r.is(r.devs[0].Close(), driver.ErrLost, driver.ErrBusy)
			case 5:
				r.must(recs[0].Close())
			case 6:
				r.must(mem[0].Close())
			}
		})
		for i := range r.comms {
			r.do(func() {
				s, d := r.sem(), r.devs[i]
				err := d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Execute(recs[i]))
				if err != nil && !(how == 6 && i == 0 && errors.Is(err, gpu.ErrUnallocated)) {
					ok(err)
				}
				if err != nil {
					apart()
					return
				}
				behind := d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Barrier())
				ok(behind)
				one := r.wait(s, 1)
				if ok(one); one != nil {
					apart()
				}
				if behind == nil {
					two := r.wait(s, 2)
					if ok(two); one != nil && two == nil {
						r.Errorf("work behind a failed execution was reached")
					}
				}
				if how == 0 {
					got := r.bytes(d.Queue(1), mem[i])
					r.full("behind a recorded group", got[:2], 9)
					r.full("a recorded sum", got[2:], 3)
				}
			})
		}
		r.wg.Wait()
		for _, c := range r.comms {
			r.do(func() { ok(c.Close()) })
		}
		r.wg.Wait()
		for i := range recs {
			r.must(errors.Join(recs[i].Close(), mem[i].Close()))
		}
		if how == 0 {
			r.end()
			return
		}
		r.lose()
	})
}

// TestRegisteredMemory registers memory with a communicator, by Register or by NewWindow, for
// groups that use it. Meanwhile the memory is closed, or the communicator is aborted or closed.
// Every call must return.
func TestRegisteredMemory(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{})
		x.Window(false)
		how, all := x.Choose(4), x.Choose(2) == 1
		var mem [2]*gpu.Buffer
		for i, d := range r.devs {
			b, err := d.Alloc(gpu.CommMem, 4096)
			if errors.Is(err, driver.ErrUnsupported) {
				x.Window(true)
				r.closeAll()
				r.must(mem[0].Close())
				r.end()
				return
			}
			r.must(err)
			mem[i] = b
		}
		x.Window(true)
		ok := func(err error) {
			r.failed(err, errBoom, gpu.ErrClosed, gpu.ErrUnallocated, driver.ErrUnsupported, simdriver.ErrRankGone)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		r.do(func() {
			switch how {
			case 1:
				r.comms[0].Abort(errBoom)
			case 2:
				ok(r.comms[0].Close())
			case 3:
				r.must(mem[0].Close())
			}
		})
		for i, c := range r.comms {
			r.do(func() {
				var told *collective.Memory
				var err error
				if all {
					told, err = c.NewWindow(ctx, mem[i], true)
				} else {
					told, err = c.Register(mem[i])
				}
				ok(err)
				if err != nil {
					c.Abort(errBoom)
					return
				}
				s := r.sem()
				err = c.Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, c.GroupContext(ctx, collective.AllReduce(mem[i].Range(0, 4), mem[i].Range(0, 4), collective.Uint8, collective.Sum())))
				if ok(err); err == nil {
					if x.Choose(2) == 1 {
						r.do(func() { ok(told.Close()) })
					}
					err = r.wait(s, 1)
					ok(err)
				}
				if err != nil {
					c.Abort(errBoom)
				} else if how == 0 {
					r.must(err)
				}
				ok(told.Close())
			})
		}
		r.wg.Wait()
		for _, c := range r.comms {
			r.do(func() { ok(c.Close()) })
		}
		r.wg.Wait()
		r.must(errors.Join(mem[0].Close(), mem[1].Close()))
		r.lose()
	})
}
