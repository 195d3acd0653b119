package scenarios

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// recorded makes a recording of four fills of a buffer in a row: enough commands for a graph.
func (r *rig) recorded(d *gpu.Device, b gpu.Range, v byte) *gpu.CommandBuffer {
	c, err := d.NewCommandBuffer(gpu.CommandOptions{})
	r.must(err)
	var last []gpu.Command
	for range 4 {
		one, err := c.Add(gpu.Fill(b, []byte{v}), last...)
		r.must(err)
		last = []gpu.Command{one}
	}
	r.must(c.End())
	return c
}

// TestRecordingAgainstClose executes a recording while the recording, the buffer that it writes and
// perhaps the device are closed.
func TestRecordingAgainstClose(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		x.Window(false)
		b, s, gate := r.alloc(d, 64), r.sem(), r.sem()
		var c *gpu.CommandBuffer
		var bind []gpu.Range
		if x.Choose(2) == 1 {
			var err error
			c, err = d.NewCommandBuffer(gpu.CommandOptions{})
			r.must(err)
			to, err := c.Binding()
			r.must(err)
			var last []gpu.Command
			for range 4 {
				one, err := c.Add(gpu.Fill(to.Range(0, 64), []byte{1}), last...)
				r.must(err)
				last = []gpu.Command{one}
			}
			r.must(c.End())
			bind = []gpu.Range{b.All()}
		} else {
			c = r.recorded(d, b.All(), 1)
		}
		x.Window(true)
		r.do(func() { r.must(gate.Signal(1)) })
		r.do(func() {
			err := d.Queue(1).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Execute(c, bind...))
			r.is(err, gpu.ErrClosed)
			if err == nil {
				r.is(r.wait(s, 1), gpu.ErrClosed)
			}
		})
		r.do(func() { r.must(c.Close()) })
		if x.Choose(2) == 1 {
			r.do(func() { r.must(d.Close()) })
		}
		r.do(func() { r.must(b.Close()) })
		r.end()
	})
}

// TestReleaseAgainstClose releases a parked execution while its device is closed.
func TestReleaseAgainstClose(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		x.Window(false)
		b, s, gate := r.alloc(d, 64), r.sem(), r.sem()
		c := r.recorded(d, b.All(), 1)
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Execute(c)))
		x.Window(true)
		r.do(func() { r.must(gate.Signal(1)) })
		r.must(d.Close())
		r.is(r.wait(s, 1), gpu.ErrClosed)
		r.wg.Wait()
		r.end()
	})
}

// TestExecutions executes one recording twice on each of two queues, with different memory on each.
// Afterwards both memories must have all the bytes that the recording writes.
func TestExecutions(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		x.Window(false)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		to, err := c.Binding()
		r.must(err)
		one, err := c.Add(gpu.Fill(to.Range(0, 8), []byte{1}))
		r.must(err)
		_, err = c.Add(gpu.Fill(to.Range(8, 8), []byte{1}), one)
		r.must(err)
		scratch, err := c.Scratch(64)
		r.must(err)
		two, err := c.Add(gpu.Fill(scratch.Range(0, 16), []byte{5}))
		r.must(err)
		_, err = c.Add(gpu.Copy(to.Range(16, 16), scratch.Range(0, 16)), two)
		r.must(err)
		r.must(c.End())
		mem := [2]*gpu.Buffer{r.alloc(d, 32), r.alloc(d, 32)}
		x.Window(true)
		for i := range 2 {
			r.do(func() {
				s := r.sem()
				for n := range uint64(2) {
					r.must(d.Queue(i).Submit(gpu.Order{Wait: pts(s, n), Signal: pts(s, n+1)}, gpu.Execute(c, mem[i].All())))
				}
				r.must(r.wait(s, 2))
			})
		}
		r.wg.Wait()
		for i, b := range mem {
			got := r.bytes(d.Queue(i), b)
			r.full("recorded fills", got[:16], 1)
			r.full("by way of scratch memory", got[16:], 5)
		}
		r.must(errors.Join(c.Close(), mem[0].Close(), mem[1].Close()))
		r.end()
	})
}

func put(g *simdriver.Grid, to driver.Ptr) error {
	bytes, err := simdriver.View[byte](g, to, 8)
	if err == nil {
		bytes[0] = 1
	}
	return err
}

// load loads code with the kernel named put and the given other parts.
func (r *rig) load(d *gpu.Device, more ...string) (*gpu.Module, *gpu.Kernel) {
	code, err := d.Load(simdriver.Image(append(more, "put")...))
	r.must(err)
	k, err := code.Kernel("put")
	r.must(err)
	return code, k
}

// TestNestWhileExecuted adds a recording to another recording while the added one is executed.
func TestNestWhileExecuted(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		config := cuda() // with CUDA the driver knows the parameters of kernels
		config.Kernels = map[string]simdriver.Kernel{"put": simdriver.MustKernel(put)}
		r := open(x, config, quick())
		d := r.devs[0]
		x.Window(false)
		code, k := r.load(d)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		to, err := c.Binding()
		r.must(err)
		_, err = c.Add(gpu.Launch(k, gpu.Grid{}, to.All()))
		r.must(err)
		r.must(c.End())
		b := r.alloc(d, 8)
		x.Window(true)
		s := r.sem()
		r.do(func() {
			r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c, b.All())))
			r.must(r.wait(s, 1))
		})
		o, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		_, err = o.Add(gpu.Execute(c, b.All()))
		r.must(err)
		r.must(o.End())
		r.wg.Wait()
		r.must(errors.Join(o.Close(), c.Close(), b.Close(), code.Close()))
		r.end()
	})
}

// TestRecordedHostCall closes a recording and its memory while the recording's host call uses the
// memory. The memory must not be freed before the call has returned.
func TestRecordedHostCall(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		b, err := d.Alloc(gpu.HostMem, 64)
		r.must(err)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		_, err = c.Add(gpu.Fill(b.All(), []byte{3}))
		r.must(err)
		var got atomic.Int32
		mem := b.Bytes()
		begun := make(chan struct{})
		_, err = c.Add(gpu.HostCall(func() error {
			close(begun)
			if n := r.sim.Counters().Devices[0].Calls[simdriver.OpFree]; n > 0 {
				r.Errorf("memory that a host call uses has been freed")
			}
			for range 3 {
				got.Add(int32(mem[0]))
			}
			time.Sleep(50 * time.Microsecond)
			if n := r.sim.Counters().Devices[0].Calls[simdriver.OpFree]; n > 0 {
				r.Errorf("memory that a host call uses has been freed meanwhile")
			}
			return nil
		}))
		r.must(err)
		r.must(c.End())
		s := r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
		<-begun
		r.must(errors.Join(c.Close(), b.Close()))
		r.must(r.wait(s, 1))
		if got.Load() != 9 {
			r.Errorf("%d", got.Load())
		}
		r.end()
	})
}

// TestTimedBlocks executes a recording with timestamps three times at once, on a driver that cannot
// record an event again. The first execution waits for the second, which may fail.
func TestTimedBlocks(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		config := cuda()
		config.Caps.RerecordEvents = false
		r := open(x, config, quick())
		d := r.devs[0]
		x.Window(false)
		b := r.alloc(d, 24)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		// Executions write different memory, because a failure leaves them without an order.
		out, err := c.Binding()
		r.must(err)
		_, err = c.Timestamp()
		r.must(err)
		_, err = c.Add(gpu.Fill(out.Range(0, 8), []byte{1}))
		r.must(err)
		_, err = c.Timestamp()
		r.must(err)
		r.must(c.End())
		x.Window(true)
		s, u, boom := r.sem(), r.sem(), errors.New("boom")
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(s, 1)}, gpu.Execute(c, b.Range(0, 8))))
		if x.Choose(2) == 1 {
			r.do(func() { u.Fail(boom) })
		}
		r.is(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Execute(c, b.Range(8, 8))), boom)
		end := r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(end, 1)}, gpu.Execute(c, b.Range(16, 8))))
		r.is(r.wait(s, 1), boom)
		r.is(r.wait(u, 1), boom)
		r.must(r.wait(end, 1))
		r.wg.Wait()
		r.must(errors.Join(c.Close(), b.Close()))
		r.end()
	})
}

// TestScratchBlocks executes a recording with scratch memory from two goroutines, and once more
// behind one of these executions. The recording's host call may have failed in an earlier
// execution.
func TestScratchBlocks(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		x.Window(false)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		in, err1 := c.Binding()
		out, err2 := c.Binding()
		mid, err3 := c.Scratch(8)
		r.must(errors.Join(err1, err2, err3))
		f, err := c.Add(gpu.Copy(mid.All(), in.Range(0, 8)))
		r.must(err)
		boom, calls := errors.New("boom"), x.Choose(3)
		fails := calls == 2
		if calls > 0 {
			_, err = c.Add(gpu.HostCall(func() error {
				if fails {
					fails = false
					return boom
				}
				return nil
			}))
			r.must(err)
		}
		_, err = c.Add(gpu.Copy(out.Range(0, 8), mid.All()), f)
		r.must(errors.Join(err, c.End()))
		var from, to []*gpu.Buffer
		for i := range byte(3) {
			from, to = append(from, r.alloc(d, 8)), append(to, r.alloc(d, 8))
			r.fill(d, from[i], i+1)
		}
		s := []*gpu.Semaphore{r.sem(), r.sem(), r.sem()}
		if calls == 2 { // the host call fails in the first execution, and not later
			r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c, from[0].All(), to[0].All())))
			r.is(r.wait(s[0], 1), boom)
			s[0] = r.sem()
		}
		x.Window(true)
		r.do(func() {
			r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(c, from[1].All(), to[1].All())))
		})
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Execute(c, from[0].All(), to[0].All())))
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s[0], 1), Signal: pts(s[2], 1)}, gpu.Execute(c, from[2].All(), to[2].All())))
		r.wg.Wait()
		r.must(c.Close())
		for i, u := range s {
			r.must(r.wait(u, 1))
			r.full("an output", r.bytes(d.Queue(0), to[i]), byte(i)+1)
		}
		for i := range s {
			r.must(errors.Join(from[i].Close(), to[i].Close()))
		}
		r.end()
	})
}

// TestNestedTimers executes a recording with timestamps, and a recording that nests the first one
// twice, on a driver that cannot record an event again.
func TestNestedTimers(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		config := cuda()
		config.Caps.RerecordEvents = false
		r := open(x, config, quick())
		d := r.devs[0]
		x.Window(false)
		c, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		_, err = c.Timestamp()
		r.must(err)
		_, err = c.Timestamp()
		r.must(err)
		r.must(c.End())
		o, err := d.NewCommandBuffer(gpu.CommandOptions{})
		r.must(err)
		for range 2 {
			_, err = o.Add(gpu.Execute(c))
			r.must(err)
		}
		r.must(o.End())
		x.Window(true)
		s, u := r.sem(), r.sem()
		r.do(func() { r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Execute(o))) })
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Execute(o)))
		r.must(r.wait(s, 2))
		r.wg.Wait()
		r.must(r.wait(u, 1))
		r.must(errors.Join(o.Close(), c.Close()))
		r.end()
	})
}

// TestCloseAgainst closes the device concurrently with one other operation.
func TestCloseAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		d := r.devs[0]
		x.Window(false)
		b, far, s, s0 := r.alloc(d, 64), r.alloc(r.devs[1], 64), r.sem(), r.sem()
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1})
		r.must(err)
		c := r.recorded(d, b.All(), 1)
		var used *gpu.Buffer
		// This allocation gives the pool a slab.
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(s0, 1)}, gpu.Alloc(&used, p, 64))
		r.must(err)
		r.must(used.Device().Queue(0).Submit(gpu.Order{Wait: pts(s0, 1), Signal: pts(s0, 2)}, gpu.Free(used)))
		r.must(r.wait(s0, 2))
		x.Window(true)
		var given error
		against := []func(){
			func() { given = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})) },
			func() {
				gate := r.sem()
				given = d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1}))
				r.must(gate.Signal(1))
			},
			func() {
				var a *gpu.Buffer
				err := d.Queue(1).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&a, p, 64))
				if given = err; err == nil {
					r.is(a.Device().Queue(0).Submit(gpu.Order{Wait: pts(s, 1)}, gpu.Free(a)), gpu.ErrClosed, gpu.ErrUnallocated)
				}
			},
			func() { given = d.Queue(1).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)) },
			func() {
				given = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.HostCall(func() error { return nil }))
			},
			func() {
				given = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.UploadCopy(b.All(), make([]byte, 64)))
			},
			func() {
				given = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Download(make([]byte, 64), b.All()))
			},
			func() { given = r.devs[1].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Copy(far.All(), b.All())) },
			func() {
				_, err := d.Alloc(gpu.DeviceMem, 64)
				given = errors.Join(err, s.Signal(1))
			},
			func() {
				_, err := d.NewPool(gpu.PoolOptions{})
				given = errors.Join(err, s.Signal(1))
			},
			func() { given = errors.Join(d.Trim(), s.Signal(1)) },
			func() { given = errors.Join(p.Close(), s.Signal(1)) },
			func() { given = errors.Join(p.Trim(0), s.Signal(1)) },
			func() {
				c, err := d.NewCommandBuffer(gpu.CommandOptions{})
				if err == nil {
					_, err = c.Add(gpu.Fill(b.All(), []byte{1}))
					err = errors.Join(err, c.End(), c.Close())
				}
				given = errors.Join(err, s.Signal(1))
			},
			func() { given = errors.Join(d.Queue(0).Flush(), s.Signal(1)) },
			func() {
				_, err := p.Stats()
				given = errors.Join(err, s.Signal(1))
			},
			func() {
				d.Stats()
				d.Parked()
				given = s.Signal(1)
			},
		}
		do := against[x.Choose(len(against))]
		r.do(do)
		r.do(func() { r.must(d.Close()) })
		r.wg.Wait()
		r.is(given, gpu.ErrClosed)
		if given == nil {
			r.is(r.wait(s, 1), gpu.ErrClosed, driver.ErrLost)
		}
		r.must(far.Close())
		r.end()
	})
}
