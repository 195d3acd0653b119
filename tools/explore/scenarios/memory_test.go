package scenarios

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// pools opens devices and makes a pool on the first. The pool is the driver's or portable.
func pools(x *explore.T, c simdriver.Config) (*rig, *gpu.Pool) {
	r := open(x, c, quick())
	x.Window(false)
	p, err := r.devs[0].NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1})
	r.must(err)
	x.Window(true)
	return r, p
}

// TestDeallocaAgainstUse checks that two streams that allocate, write, read and free memory of one
// pool never see each other's data.
func TestDeallocaAgainstUse(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r, p := pools(x, simdriver.Config{})
		for i := range 2 {
			r.do(func() {
				q, s := r.devs[0].Queue(i), r.sem()
				v := uint64(0)
				next := func() gpu.Order { v++; return gpu.Order{Wait: pts(s, v-1), Signal: pts(s, v)} }
				for round := range 2 {
					var b *gpu.Buffer
					err := q.Submit(next(), gpu.Alloc(&b, p, 64))
					r.must(err)
					r.must(q.Submit(next(), gpu.Fill(b.All(), []byte{byte(10*i + round + 1)})))
					got := make([]byte, 64)
					r.must(q.Submit(next(), gpu.Download(got, b.All())))
					r.must(q.Submit(next(), gpu.Free(b)))
					if round == 1 || x.Choose(2) == 1 {
						r.must(r.wait(s, v))
						r.full("memory of a pool", got, byte(10*i+round+1))
					}
				}
				r.must(r.wait(s, v))
			})
		}
		r.wg.Wait()
		r.must(p.Close())
		r.end()
	})
}

// TestHandOver moves a block from one queue to another by a free and an alloc, while the first
// queue may still have parked work that uses the block.
func TestHandOver(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1 << 21})
		r.must(err)
		gate, s, u := r.sem(), r.sem(), r.sem()
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, gpu.Alloc(&a, p, 64))
		r.must(err)
		r.do(func() { r.must(gate.Signal(1)) })
		if x.Choose(2) == 1 {
			r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(a.All(), []byte{1})))
		} else {
			r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Barrier()))
		}
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Free(a)))
		r.do(func() {
			var b *gpu.Buffer
			err := d.Queue(1).Submit(gpu.Order{Wait: pts(s, 3), Signal: pts(u, 1)}, gpu.Alloc(&b, p, 64))
			r.must(err)
			r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, gpu.Fill(b.All(), []byte{2})))
			r.must(r.wait(u, 2))
			r.full("the second one's", r.bytes(d.Queue(0), b), 2)
			r.must(b.Device().Queue(0).Submit(gpu.Order{Wait: pts(u, 2), Signal: pts(u, 3)}, gpu.Free(b)))
			r.must(r.wait(u, 3))
		})
		r.wg.Wait()
		r.must(a.Close())
		r.must(p.Close())
		r.end()
	})
}

// TestDeallocaAfterFailure frees memory of running work whose semaphore was failed. No other work
// may get the memory while that work runs.
func TestDeallocaAfterFailure(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1 << 21})
		r.must(err)
		s, u, boom := r.sem(), r.sem(), errors.New("boom")
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&a, p, 64))
		r.must(err)
		r.must(r.wait(u, 1)) // otherwise the fill might be issued before the allocation
		u = r.sem()
		streams := r.sim.Streams(0)
		r.must(r.sim.StallStream(streams[len(streams)-2])) // stream of queue 0
		r.is(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{1})), boom)
		r.do(func() { s.Fail(boom) })
		r.is(r.wait(s, 1), boom)
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Free(a)))
		var b *gpu.Buffer
		err = d.Queue(1).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, gpu.Alloc(&b, p, 64))
		r.must(err)
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 2), Signal: pts(u, 3)}, gpu.Fill(b.All(), []byte{2})))
		// The free waits until the fill is over.
		r.do(func() { r.must(r.sim.ResumeStream(streams[len(streams)-2])) })
		r.must(r.wait(u, 3))
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(u, 4)}, gpu.Barrier()))
		r.must(r.wait(u, 4))
		r.full("another one's memory", r.bytes(d.Queue(1), b), 2)
		r.must(errors.Join(a.Close(), b.Close(), p.Close()))
		r.end()
	})
}

// TestFailWhileIssued fails the semaphore of work and frees the work's memory while the work is
// being issued. No other work may get the memory before that work is over.
func TestFailWhileIssued(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, pieces())
		x.Window(false)
		d, other := r.devs[0], r.devs[1]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1 << 21})
		r.must(err)
		s, u, boom := r.sem(), r.sem(), errors.New("boom")
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&a, p, 64))
		r.must(err)
		r.must(r.wait(u, 1))
		c, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: []gpu.Mode{gpu.StreamMode, gpu.GraphMode}[x.Choose(2)]})
		r.must(err)
		m, err := c.Binding()
		r.must(err)
		for i := range uint64(2) {
			_, err = c.Add(gpu.Fill(m.Range(32*i, 32), []byte{1}))
			r.must(err)
		}
		r.must(c.End())
		kind := x.Choose(6)
		outer, err := d.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.StreamMode})
		r.must(err)
		if kind == 5 { // otherwise outer is not executed, and must not hold the memory
			_, err := outer.Add(gpu.Execute(c, a.All()))
			r.must(err)
		}
		r.must(outer.End())
		ones := r.alloc(other, 64)
		r.must(other.Queue(0).Submit(gpu.Order{Signal: pts(u, 2)}, gpu.Fill(ones.All(), []byte{1})))
		r.must(r.wait(u, 2))
		o, q, data := gpu.Order{Signal: pts(s, 1)}, d.Queue(0), bytes.Repeat([]byte{1}, 64)
		use := []func() error{
			func() error { return q.Submit(o, gpu.Fill(a.All(), []byte{1})) },
			func() error { return q.Submit(o, gpu.Execute(c, a.All())) },
			func() error {
				return q.Submit(o, gpu.Native("", func(n gpu.NativeCall) error { return n.Device.Fill(n.Stream, n.Ptrs[0], 1, 1, 64) }, a.All()))
			},
			func() error { return other.Queue(0).Submit(o, gpu.Copy(a.All(), ones.All())) },
			func() error { return q.Submit(o, gpu.Upload(a.All(), data)) },
			func() error { return q.Submit(o, gpu.Execute(outer)) },
		}[kind]
		var held []driver.Stream // streams that may use the memory
		for i := range r.devs {
			streams := r.sim.Streams(i)
			held = append(held, streams[len(streams)-2]) // stream of queue 0
			r.must(r.sim.StallStream(held[i]))
		}
		x.Window(true)
		r.do(func() { r.is(use(), boom, gpu.ErrUnallocated) })
		s.Fail(boom)
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 3)}, gpu.Free(a)))
		var b *gpu.Buffer
		err = d.Queue(1).Submit(gpu.Order{Wait: pts(u, 3), Signal: pts(u, 4)}, gpu.Alloc(&b, p, 64))
		r.must(err)
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 4), Signal: pts(u, 5)}, gpu.Fill(b.All(), []byte{2})))
		r.do(func() {
			for _, h := range held {
				r.must(r.sim.ResumeStream(h)) // the free may wait until the streams continue
			}
		})
		r.must(r.wait(u, 5))
		r.wg.Wait()
		x.Window(false)
		for _, d := range r.devs {
			w := r.sem()
			r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(w, 1)}, gpu.Barrier()))
			r.must(r.wait(w, 1))
		}
		r.full("another one's memory", r.bytes(d.Queue(1), b), 2)
		r.must(errors.Join(a.Close(), b.Close(), outer.Close(), c.Close(), p.Close(), ones.Close()))
		r.end()
	})
}

// TestPoolAgainstLoss loses the device while memory of a pool is allocated, used and freed.
func TestPoolAgainstLoss(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r, p := pools(x, simdriver.Config{})
		d := r.devs[0]
		r.do(func() { r.sim.LoseDevice(0, nil) })
		for i := range 2 {
			r.do(func() {
				q, s := d.Queue(i), r.sem()
				var b *gpu.Buffer
				err := q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&b, p, 64))
				if err != nil {
					r.is(err, driver.ErrLost)
					return
				}
				r.is(q.Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})), driver.ErrLost, gpu.ErrUnallocated)
				err = b.Device().Queue(0).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Free(b))
				r.is(err, driver.ErrLost, gpu.ErrUnallocated)
				if err == nil {
					r.is(r.wait(s, 3), driver.ErrLost, gpu.ErrUnallocated)
				}
				r.is(b.Close(), driver.ErrLost)
			})
		}
		r.wg.Wait()
		r.is(p.Close(), driver.ErrLost)
		r.lose()
	})
}

// TestPoolClosed closes a pool while its memory is in use, and trims the device. The pool's memory
// must be given back.
func TestPoolClosed(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		// Not with HIP's features: there a pool grows on another goroutine, and the alloc may then
		// find the pool closed.
		r, p := pools(x, cuda())
		d := r.devs[0]
		s := r.sem()
		var b *gpu.Buffer
		err := d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&b, p, 64))
		r.must(err)
		r.do(func() { r.must(p.Close()) })
		if x.Choose(2) == 1 {
			r.do(func() { r.is(d.Trim(), gpu.ErrClosed) })
		}
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1})))
		if x.Choose(2) == 1 {
			r.must(r.wait(s, 2))
			r.must(d.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
		} else {
			r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Free(b)))
			r.must(r.wait(s, 3))
		}
		r.wg.Wait()
		r.settles("the pool's memory is given back", func() bool { c := r.sim.Counters().Devices[0]; return c.Allocations == 0 && c.Pools == 0 })
		r.end()
	})
}

// TestAccessAgainst gives another device access to a pool, takes the access away, makes the driver
// fail, and closes the pool, all concurrently. Work of the other device is then refused or
// permitted, and neither device is lost.
func TestAccessAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		c := cuda()
		c.Devices = 2
		r := open(x, c, quick())
		x.Window(false)
		d, other, s := r.devs[0], r.devs[1], r.sem()
		p, err := d.NewPool(gpu.PoolOptions{})
		r.must(err)
		var b *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&b, p, 64))
		r.must(err)
		r.must(r.wait(s, 1))
		if x.Choose(2) == 1 {
			r.must(p.Access(other, true))
		}
		if x.Choose(2) == 1 {
			r.sim.Inject(simdriver.Fault{Op: simdriver.OpAccessPool, Device: simdriver.AnyDevice, N: 1})
		}
		closes := x.Choose(3) == 1
		x.Window(true)
		for i := range 3 {
			r.do(func() { r.is(p.Access(other, i > 0), gpu.ErrClosed, simdriver.ErrInjected) })
		}
		if closes {
			r.do(func() { r.must(p.Close()) })
		}
		r.wg.Wait()
		err = other.Queue(0).Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1}))
		if r.is(err, gpu.ErrArgument); err == nil {
			r.must(r.wait(s, 2))
		}
		r.must(d.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
		r.must(p.Close())
		r.end()
	})
}

// TestCurrentPool allocates from the current pool of a device while other goroutines change the
// current pool, query and set properties, and close that pool and the device. A current pool must
// exist until the device is closed, and an alloc may fail only if its pool or the device is being
// closed.
func TestCurrentPool(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r, p := pools(x, simdriver.Config{})
		d := r.devs[0]
		closes := x.Choose(3) == 1
		over := func(err error) bool {
			if err != nil && !closes {
				r.Fatalf("%v", err)
			}
			r.is(err, gpu.ErrClosed)
			return err != nil
		}
		r.do(func() { // the default pool may be made only now
			for range 2 {
				s := r.sem()
				var b *gpu.Buffer
				err := d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&b, nil, 64))
				if errors.Is(err, gpu.ErrClosed) && !closes {
					continue // the pool was closed while it was the current pool
				}
				if over(err) {
					return
				}
				r.is(r.wait(s, 1), gpu.ErrClosed)
				b.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(b))
			}
		})
		r.do(func() {
			r.is(d.SetCurrentPool(p), gpu.ErrClosed)
			now, err := d.CurrentPool()
			if !over(err) {
				now.Options()
				_, err := now.Stats()
				r.is(err, gpu.ErrClosed)
			}
		})
		r.do(func() {
			for n := range uint64(2) {
				r.is(p.SetThreshold(n), gpu.ErrClosed)
			}
			r.must(p.Close())
		})
		r.do(func() {
			p, err := d.DefaultPool()
			if !over(err) {
				_, err = p.Reuse()
				over(err)
			}
			if now, err := d.CurrentPool(); !over(err) && now == nil {
				r.Errorf("no pool, and no error")
			}
		})
		if closes {
			r.do(func() { r.must(d.Close()) })
		}
		r.wg.Wait()
		r.end()
	})
}

// TestPoolClosedBeside closes a pool with room for one allocation while other goroutines read the
// pool's figures, trim the pool, and make a second allocation that collects unused memory. Every
// call must return, and the pool's memory must be given back.
func TestPoolClosedBeside(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, cuda(), quick())
		d := r.devs[0]
		x.Window(false)
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1024})
		r.must(err)
		s, u := r.sem(), r.sem()
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&a, p, 1000))
		r.must(err)
		x.Window(true)
		r.do(func() { r.must(p.Close()) })
		r.do(func() {
			st, err := p.Stats()
			r.is(err, gpu.ErrClosed)
			if st.Used > st.UsedHigh || st.Reserved > 1<<16 {
				r.Errorf("the pool has %+v", st)
			}
		})
		r.do(func() { r.is(errors.Join(p.Trim(0), p.SetThreshold(1)), gpu.ErrClosed) })
		r.do(func() {
			var b *gpu.Buffer
			err := d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&b, p, 1000))
			if err != nil {
				r.is(err, gpu.ErrClosed)
				return
			}
			err = r.wait(u, 1)
			r.is(err, gpu.ErrClosed, driver.ErrOutOfMemory)
			if err == nil {
				r.must(d.Queue(1).Submit(gpu.Order{}, gpu.Free(b)))
			}
			r.must(b.Close())
		})
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(a.All(), []byte{1})))
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Free(a)))
		r.must(r.wait(s, 3))
		r.wg.Wait()
		_, err = p.Stats()
		if !errors.Is(err, gpu.ErrClosed) {
			r.Errorf("statistics of a closed pool: %v", err)
		}
		r.settles("the pool's memory is given back", func() bool { c := r.sim.Counters().Devices[0]; return c.Allocations == 0 && c.Pools == 0 })
		r.end()
	})
}

// TestBareOrder checks that work without waits and signals keeps its order, even if the device has
// no event left.
func TestBareOrder(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r, p := pools(x, simdriver.Config{})
		d := r.devs[0]
		big, other := r.alloc(d, 128<<10), r.alloc(d, 128<<10)
		s := d.Queue(0).NewStream()
		r.do(func() {
			for range 3 {
				r.must(d.Queue(1).Submit(gpu.Order{}, gpu.Fill(other.All(), []byte{1})))
			}
		})
		b, err := s.Alloc(p, 64)
		r.must(err)
		for range 3 {
			r.must(s.Fill(big.Range(0, 100<<10), []byte{1}))
		}
		r.must(s.Fill(b.All(), []byte{7}))
		got := make([]byte, 64)
		r.must(s.Download(got, b.All()))
		r.must(s.Free(b))
		r.do(func() {
			var c *gpu.Buffer
			err := d.Queue(1).Submit(gpu.Order{}, gpu.Alloc(&c, p, 64))
			r.must(err)
			r.must(d.Queue(1).Submit(gpu.Order{}, gpu.Fill(c.All(), []byte{8})))
			r.must(c.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(c)))
		})
		r.must(r.ends(s))
		r.full("a stream's own", got, 7)
		r.wg.Wait()
		r.must(errors.Join(big.Close(), other.Close(), p.Close()))
		r.end()
	})
}

// TestTouchWhileFreed submits a fill of a new buffer and closes the buffer. Meanwhile another
// goroutine makes the device lost.
func TestTouchWhileFreed(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		b, s := r.alloc(r.devs[0], 64), r.sem()
		r.do(func() { r.sim.LoseDevice(0, nil) })
		r.is(r.devs[0].Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})), driver.ErrLost)
		r.is(b.Close(), driver.ErrLost)
		r.lose()
	})
}

// TestPieces uploads and downloads in pieces, while a driver call may fail. If the download
// succeeds, the data must be right.
func TestPieces(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, pieces())
		d := r.devs[0]
		b, s := r.alloc(d, 64), r.sem()
		if n := x.Choose(8); n > 0 {
			op := []simdriver.Op{simdriver.OpUpload, simdriver.OpDownload, simdriver.OpRecord}[x.Choose(3)]
			r.sim.Inject(simdriver.Fault{Op: op, Device: simdriver.AnyDevice, N: uint64(n)})
		}
		data, got := make([]byte, 64), make([]byte, 64)
		for i := range data {
			data[i] = byte(i)
		}
		r.is(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Upload(b.All(), data)), simdriver.ErrInjected)
		r.is(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Download(got, b.All())), simdriver.ErrInjected)
		c, u := r.alloc(d, 64), r.sem()
		r.do(func() {
			r.is(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.UploadCopy(c.Range(0, 16), data[:16])), simdriver.ErrInjected)
			r.is(r.wait(u, 1), simdriver.ErrInjected)
		})
		err := r.wait(s, 2)
		r.is(err, simdriver.ErrInjected)
		for i := range got {
			if err == nil && got[i] != byte(i) {
				r.Errorf("byte %d is %d", i, got[i])
				break
			}
		}
		r.wg.Wait()
		r.must(errors.Join(b.Close(), c.Close()))
		r.lose()
	})
}

// TestPoolAfterFailure frees a pool's only block while work whose semaphore was failed still uses
// the block. The pool must have memory again once that work is over, even if no goroutine waits for
// that work.
func TestPoolAfterFailure(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, quick())
		d := r.devs[0]
		over := r.alloc(d, 1024)
		p, err := d.NewPool(gpu.PoolOptions{Over: over})
		r.must(err)
		s, u, boom := r.sem(), r.sem(), errors.New("boom")
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&a, p, 1000))
		r.must(err)
		r.must(r.wait(u, 1))
		r.must(r.sim.StallDevice(0))
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{1})))
		s.Fail(boom)
		r.must(d.Queue(1).Submit(gpu.Order{}, gpu.Free(a)))
		r.do(func() { r.must(r.sim.ResumeDevice(0)) })
		var b *gpu.Buffer
		r.settles("there is memory again", func() bool {
			there := r.sem()
			err = d.Queue(1).Submit(gpu.Order{Signal: pts(there, 1)}, gpu.Alloc(&b, p, 1000))
			r.must(err)
			err = r.wait(there, 1)
			if err != nil {
				r.is(err, driver.ErrOutOfMemory)
				r.must(b.Close())
			}
			return err == nil
		})
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 2)}, gpu.Fill(b.All(), []byte{2})))
		r.must(r.wait(u, 2))
		r.full("another one's memory", r.bytes(d.Queue(1), b), 2)
		r.wg.Wait()
		r.must(errors.Join(a.Close(), b.Close(), p.Close(), over.Close()))
		r.end()
	})
}

// TestCollectAgainstQuery makes an allocation that finds no free memory although the work that used
// the memory is done, while other goroutines query that work. The allocation must find out that the
// work is done, too.
func TestCollectAgainstQuery(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		config := cuda()
		config.Memory = 1 << 17
		r := open(x, config, quick())
		d := r.devs[0]
		x.Window(false)
		b, s := r.alloc(d, 1<<17), r.sem()
		r.must(d.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{1})))
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{2})))
		r.must(b.Close())
		x.Window(true)
		r.do(func() {
			for range 2 {
				_, err := s.Query()
				r.must(err)
			}
		})
		for r.sim.Counters().Devices[0].Pending > 0 {
			time.Sleep(time.Microsecond)
		}
		r.must(r.alloc(d, 1<<17).Close())
		r.end()
	})
}
