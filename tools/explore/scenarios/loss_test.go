package scenarios

import (
	"context"
	"errors"
	"testing"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestLossAcross loses the first of two or three devices. Each other device has work that waits for
// work of the device before it. All work behind lost work must fail, in all queues, and no wait may
// hang.
func TestLossAcross(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		n := 2 + x.Choose(2)
		r := open(x, simdriver.Config{Devices: n}, quick())
		lost := r.sem()
		end := make([]*gpu.Semaphore, n)
		mem := make([]*gpu.Buffer, n)
		for i, d := range r.devs {
			mem[i], end[i] = r.alloc(d, 8), r.sem()
		}
		r.is(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(lost, 1)}, gpu.Fill(mem[0].All(), []byte{1})), driver.ErrLost)
		r.do(func() { r.sim.LoseDevice(0, nil) })
		for i, d := range r.devs[1:] {
			r.do(func() {
				own, behind := r.sem(), end[i+1]
				before := lost
				if i > 0 {
					before = end[i]
				}
				r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(own, 1)}, gpu.Fill(mem[i+1].All(), []byte{1})))
				r.is(d.Queue(0).Submit(gpu.Order{Wait: pts(before, 1), Signal: pts(behind, 1)}, gpu.Fill(mem[i+1].All(), []byte{2})), driver.ErrLost)
				r.is(d.Queue(1).Submit(gpu.Order{Wait: pts(behind, 1), Signal: pts(behind, 2)}, gpu.Fill(mem[i+1].All(), []byte{3})), driver.ErrLost)
				r.is(r.wait(own, 1), driver.ErrLost)
				one := r.wait(behind, 1)
				r.is(one, driver.ErrLost)
				two := r.wait(behind, 2)
				r.is(two, driver.ErrLost)
				if one != nil && two == nil {
					r.Errorf("work behind lost work was reached")
				}
			})
		}
		if err := r.wait(lost, 1); err != nil {
			r.is(err, driver.ErrLost)
			for _, e := range end[1:] {
				if r.wait(e, 1) == nil {
					r.Errorf("work that waits for lost work was reached")
				}
			}
		}
		r.wg.Wait()
		for _, b := range mem {
			r.is(b.Close(), driver.ErrLost)
		}
		r.lose()
	})
}

// TestEachFault makes one driver call fail or lose the device, while work is parked, pools
// allocate, and a recording is executed. Every call must return, and data that arrives must be
// right.
func TestEachFault(t *testing.T) {
	ops := []simdriver.Op{"", simdriver.OpRecord, simdriver.OpQuery, simdriver.OpStreamWait, simdriver.OpFill, simdriver.OpCopy, simdriver.OpAllocAsync, simdriver.OpFreeAsync,
		simdriver.OpAlloc, simdriver.OpFree, simdriver.OpNewEvent, simdriver.OpLaunchGraph, simdriver.OpInstantiate, simdriver.OpSetNode, simdriver.OpDownload, simdriver.OpNewPool}
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		f := simdriver.Fault{Op: ops[x.Choose(len(ops))], Device: simdriver.AnyDevice, N: uint64(1 + x.Choose(6))}
		if f.Op == "" {
			f.N = uint64(1 + x.Choose(80))
		}
		switch x.Choose(4) {
		case 1:
			f.OOM = true
		case 2:
			f.Lost = true
		case 3:
			f.AtExecution = true
		}
		if x.Choose(10) > 0 {
			r.sim.Inject(f)
		}
		ok := func(err error) bool {
			r.is(err, driver.ErrLost, simdriver.ErrInjected, driver.ErrOutOfMemory, gpu.ErrUnallocated, gpu.ErrClosed)
			return err == nil
		}
		gate := r.sem()
		r.do(func() { r.must(gate.Signal(1)) })
		for i := range 2 {
			r.do(func() {
				p, err := d.NewPool(gpu.PoolOptions{Portable: i == 1, MaxSize: 1 << 21, Zero: true})
				if !ok(err) {
					return
				}
				defer p.Close()
				q, s := d.Queue(i), r.sem()
				var b *gpu.Buffer
				err = q.Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Alloc(&b, p, 64))
				if !ok(err) {
					return
				}
				defer b.Close()
				got := make([]byte, 64)
				last := uint64(1)
				if ok(q.Submit(gpu.Order{Wait: pts(s, last), Signal: pts(s, last+1)}, gpu.Fill(b.Range(0, 32), []byte{1}))) {
					last++
				}
				if ok(q.Submit(gpu.Order{Wait: pts(s, last), Signal: pts(s, last+1)}, gpu.Download(got, b.All()))) {
					last++
				}
				if ok(b.Device().Queue(0).Submit(gpu.Order{Wait: pts(s, last), Signal: pts(s, last+1)}, gpu.Free(b))) {
					last++
				}
				if ok(r.wait(s, last)) && last == 4 {
					r.full("filled", got[:32], 1)
					r.full("zeroed", got[32:], 0)
				}
			})
		}
		r.do(func() {
			b, err := d.Alloc(gpu.DeviceMem, 64)
			if !ok(err) {
				return
			}
			defer b.Close()
			c, err := d.NewCommandBuffer(gpu.CommandOptions{})
			if !ok(err) {
				return
			}
			defer c.Close()
			one, err := c.Add(gpu.Fill(b.All(), []byte{1}))
			if !ok(err) {
				return
			}
			_, err = c.Add(gpu.Fill(b.All(), []byte{2}), one)
			if !ok(errors.Join(err, c.End())) {
				return
			}
			s := r.sem()
			if ok(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c))) && ok(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Execute(c))) {
				ok(r.wait(s, 2))
			}
		})
		r.lose()
	})
}

// TestLossBelow loses a device whose work signals a value below the awaited one. The waiter must
// get the loss.
func TestLossBelow(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		a, s := r.alloc(r.devs[0], 8), r.sem()
		r.must(r.sim.StallDevice(0)) // so that the device is lost before it runs the work
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{1})))
		r.do(func() { r.sim.LoseDevice(0, nil) })
		if err := r.wait(s, 2); !errors.Is(err, driver.ErrLost) {
			r.Errorf("%v", err)
		}
		r.wg.Wait()
		r.is(a.Close(), driver.ErrLost)
		r.lose()
	})
}

// TestLossFar loses the first device of a chain, in which each device waits for the one before it.
// Waiters for the last device must get the loss, although no goroutine queries the devices in
// between.
func TestLossFar(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		n := 2 + x.Choose(2)
		r := open(x, simdriver.Config{Devices: n}, quick())
		r.must(r.sim.StallDevice(0))
		s := make([]*gpu.Semaphore, n)
		mem := make([]*gpu.Buffer, n)
		for i, d := range r.devs {
			s[i], mem[i] = r.sem(), r.alloc(d, 8)
			o := gpu.Order{Signal: pts(s[i], 1)}
			if i > 0 {
				o.Wait = pts(s[i-1], 1)
			}
			r.must(d.Queue(0).Submit(o, gpu.Fill(mem[i].All(), []byte{1})))
		}
		r.do(func() { r.sim.LoseDevice(0, nil) })
		if err := r.wait(s[n-1], 1); !errors.Is(err, driver.ErrLost) {
			r.Errorf("%v", err)
		}
		r.wg.Wait()
		for _, m := range mem {
			r.is(m.Close(), driver.ErrLost)
		}
		r.lose()
	})
}

// TestLossWhileFollowed loses a device while another device gets work that waits for it. Whichever
// comes first, the waiting work must fail.
func TestLossWhileFollowed(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		n := 2 + x.Choose(2)
		r := open(x, simdriver.Config{Devices: n}, quick())
		x.Window(false)
		s := make([]*gpu.Semaphore, n)
		mem := make([]*gpu.Buffer, n)
		for i, d := range r.devs {
			s[i], mem[i] = r.sem(), r.alloc(d, 8)
		}
		r.must(r.sim.StallDevice(0))
		r.must(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(mem[0].All(), []byte{1})))
		r.must(s[0].WaitIssued(context.Background(), 1))
		x.Window(true)
		r.do(func() {
			r.must(r.sim.LoseDevice(0, nil))
			_, err := r.devs[0].Alloc(gpu.DeviceMem, 8)
			r.is(err, driver.ErrLost)
		})
		for i, d := range r.devs[1:] {
			r.do(func() {
				r.is(d.Queue(0).Submit(gpu.Order{Wait: pts(s[i], 1), Signal: pts(s[i+1], 1)}, gpu.Fill(mem[i+1].All(), []byte{1})), driver.ErrLost)
				if err := r.wait(s[i+1], 1); !errors.Is(err, driver.ErrLost) {
					r.Errorf("%v", err)
				}
			})
		}
		r.wg.Wait()
		for _, m := range mem {
			r.is(m.Close(), driver.ErrLost)
		}
		r.lose()
	})
}

// TestLossFoundAgainstClose lets a waiter find that the device is lost while other goroutines use
// and close the device. The waiter must get an error.
func TestLossFoundAgainstClose(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		x.Window(false)
		d, b, s := r.devs[0], r.alloc(r.devs[0], 64), r.sem()
		r.must(r.sim.StallDevice(0))
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		r.must(s.WaitIssued(context.Background(), 1))
		r.must(r.sim.LoseDevice(0, nil))
		x.Window(true)
		r.do(func() { r.is(r.wait(s, 1), driver.ErrLost, gpu.ErrClosed) })
		if x.Choose(2) == 1 {
			r.do(func() { d.Queue(1).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{2})) })
		} else {
			r.do(func() { d.Queue(0).Flush() })
		}
		r.is(d.Close(), driver.ErrLost)
		r.wg.Wait()
		if err := r.wait(s, 1); err == nil {
			r.Errorf("work of a lost device is reached")
		}
		r.lose()
	})
}
