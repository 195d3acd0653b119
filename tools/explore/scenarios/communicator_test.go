package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A team is a group of devices with a communicator each.
type team struct {
	*rig
	comms []*collective.Communicator
}

func meet(x *explore.T, n int, c simdriver.Config) *team {
	return meetAs(x, n, c, collective.Options{})
}

func meetAs(x *explore.T, n int, c simdriver.Config, o collective.Options) *team {
	x.Window(false)
	c.Devices = n
	sim := simdriver.New(settled(x, c))
	r := &team{rig: &rig{T: x, sim: sim}}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	g, err := gpu.OpenGroup(sim, quick(), all...)
	r.must(err)
	r.devs = g.Devices()
	r.comms, err = collective.NewAll(context.Background(), g.Devices(), o)
	r.must(err)
	x.Window(true)
	return r
}

var errBoom = errors.New("boom")

// failed ends the scenario unless err is nil, one of the given errors, or the failure of a
// communicator.
func (r *team) failed(err error, want ...error) {
	var channelErr *collective.Error
	if !errors.As(err, &channelErr) {
		r.is(err, want...)
	}
}

// TestCollectives runs two reductions on each rank, from one goroutine a rank. The sums must be
// right.
func TestCollectives(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{LazyComms: x.Choose(2) == 1})
		for i, c := range r.comms {
			r.do(func() {
				d := r.devs[i]
				a, b, s := r.alloc(d, 4), r.alloc(d, 4), r.sem()
				r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(a.All(), []byte{byte(i + 1)})))
				r.must(c.Device().Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, c.Group(collective.AllReduce(b.All(), a.All(), collective.Uint8, collective.Sum()))))
				r.must(c.Device().Queue(0).Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, c.Group(collective.AllReduce(a.All(), b.All(), collective.Uint8, collective.Sum()))))
				r.must(r.wait(s, 3))
				r.full("a sum of sums", r.bytes(d.Queue(1), a), 6)
				r.must(errors.Join(a.Close(), b.Close()))
			})
		}
		r.wg.Wait()
		r.closeAll()
		r.end()
	})
}

func (r *team) closeAll() {
	for _, c := range r.comms {
		r.do(func() { r.is(c.Close(), errBoom, driver.ErrLost) })
	}
	r.wg.Wait()
}

// TestGroupWhoseSemaphoreFails submits a group for which another rank may arrive late. It fails the
// group's semaphore and frees the group's memory. No other work may get the memory before the group
// is over.
func TestGroupWhoseSemaphoreFails(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{})
		x.Window(false)
		d := r.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1, MaxSize: 1 << 21})
		r.must(err)
		s, u, w := r.sem(), r.sem(), r.sem()
		var a *gpu.Buffer
		err = d.Queue(0).Submit(gpu.Order{Signal: pts(u, 1)}, gpu.Alloc(&a, p, 64))
		r.must(err)
		r.must(d.Queue(0).Submit(gpu.Order{Wait: pts(u, 1), Signal: pts(u, 2)}, gpu.Fill(a.All(), []byte{1})))
		r.must(r.wait(u, 2))
		far := r.alloc(r.devs[1], 64)
		x.Window(true)
		r.do(func() {
			r.is(r.comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, r.comms[0].Group(collective.AllReduce(a.All(), a.All(), collective.Uint8, collective.Sum()))), errBoom, gpu.ErrUnallocated)
		})
		r.do(func() {
			if x.Choose(2) == 1 {
				time.Sleep(time.Millisecond)
			}
			r.must(r.comms[1].Device().Queue(0).Submit(gpu.Order{Signal: pts(w, 1)}, r.comms[1].Group(collective.AllReduce(far.All(), far.All(), collective.Uint8, collective.Sum()))))
		})
		if x.Choose(2) == 1 {
			time.Sleep(100 * time.Microsecond)
		}
		s.Fail(errBoom)
		r.must(d.Queue(1).Submit(gpu.Order{Signal: pts(u, 3)}, gpu.Free(a)))
		var b *gpu.Buffer
		err = d.Queue(1).Submit(gpu.Order{Wait: pts(u, 3), Signal: pts(u, 4)}, gpu.Alloc(&b, p, 64))
		r.must(err)
		r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(u, 4), Signal: pts(u, 5)}, gpu.Fill(b.All(), []byte{2})))
		r.must(r.wait(u, 5))
		r.wg.Wait() // both ranks have submitted their groups
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.Wait(ctx, 1); err != nil { // rank 0's group may be refused, because its memory is freed: end rank 1's group
			r.comms[0].Abort(errBoom)
		}
		r.full("another one's memory", r.bytes(d.Queue(1), b), 2)
		for _, c := range r.comms {
			r.do(func() { r.failed(c.Close(), errBoom) })
		}
		r.wg.Wait()
		r.must(errors.Join(a.Close(), b.Close(), p.Close(), far.Close()))
		r.end()
	})
}

// TestAbortAgainstGroup aborts or closes a communicator, ends a group's context, or loses or closes
// a device, while groups wait, are issued and run. Each group must complete or fail, and so must
// the work behind it.
func TestAbortAgainstGroup(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		gate := r.sem()
		mem := make([][2]*gpu.Buffer, 2)
		for i, d := range r.devs {
			mem[i] = [2]*gpu.Buffer{r.alloc(d, 4), r.alloc(d, 4)}
		}
		r.do(func() { r.must(gate.Signal(1)) })
		how := x.Choose(5)
		r.do(func() {
			switch how {
			case 0:
				r.comms[0].Abort(errBoom)
			case 1:
				cancel()
			case 2:
				r.sim.LoseDevice(0, nil)
			case 3:
				r.is(r.comms[0].Close(), errBoom, driver.ErrLost)
			case 4:
				r.is(r.devs[0].Close(), driver.ErrLost, driver.ErrBusy)
			}
		})
		ok := func(err error) { r.failed(err, errBoom, context.Canceled, driver.ErrLost, gpu.ErrClosed) }
		for i, c := range r.comms {
			r.do(func() {
				s := r.sem()
				a, b := mem[i][0], mem[i][1]
				err := c.Device().Queue(0).Submit(gpu.Order{Wait: pts(gate, 1), Signal: pts(s, 1)}, c.GroupContext(ctx, collective.AllReduce(b.All(), a.All(), collective.Uint8, collective.Sum())))
				ok(err)
				if err != nil {
					c.Abort(errBoom) // otherwise the other rank waits
					return
				}
				err = r.devs[i].Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1}))
				ok(err)
				one := r.wait(s, 1)
				ok(one)
				if one != nil {
					c.Abort(errBoom)
				}
				if err == nil {
					two := r.wait(s, 2)
					ok(two)
					if one != nil && two == nil {
						r.Errorf("work behind a failed group was reached")
					}
				}
			})
		}
		r.wg.Wait()
		cancel()
		for _, c := range r.comms {
			r.do(func() {
				if err := c.Close(); err != nil {
					ok(err)
				}
			})
		}
		r.wg.Wait()
		for _, m := range mem {
			m[0].Close()
			m[1].Close()
		}
		r.lose()
	})
}

// TestSplitAgainstAbort splits a communicator. Meanwhile the context may end, or a rank's
// communicator may be aborted. Each rank must get its part or an error.
func TestSplitAgainstAbort(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{})
		ctx, cancel := context.WithCancelCause(context.Background())
		how := x.Choose(3)
		r.do(func() {
			switch how {
			case 0:
				cancel(errBoom)
			case 1:
				r.comms[0].Abort(errBoom)
			}
		})
		parts := make([]*collective.Communicator, 2)
		for i, c := range r.comms {
			r.do(func() {
				var err error
				parts[i], err = c.Split(ctx, i, 0)
				if how == 0 && err == nil && c.Err() != nil {
					r.Errorf("Split succeeded, and the communicator has failed: %v", c.Err())
				}
				if err != nil {
					if how == 2 {
						r.Errorf("%v", err)
					}
					if how != 1 && c.Err() == nil && ctx.Err() == nil {
						r.Errorf("Split failed with %v, and the communicator has not failed", err)
					}
				} else if parts[i] == nil {
					r.Errorf("neither a part nor an error")
				}
			})
		}
		r.wg.Wait()
		cancel(nil)
		for _, c := range append(parts, r.comms...) {
			if c != nil {
				r.do(func() {
					c.Close()
				})
			}
		}
		r.lose()
	})
}

// TestSuspendAgainstAll suspends and resumes a communicator on all ranks. Meanwhile groups are
// submitted, the context ends, a rank aborts or closes the communicator, or a device is lost. The
// library must get no group of a suspended communicator, and every call must return.
func TestSuspendAgainstAll(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		how := x.Choose(6)
		r := meetAs(x, 2-how/5, simdriver.Config{CommMemory: 1 << 20}, collective.Options{Plain: true})
		ctx, cancel := context.WithCancelCause(context.Background())
		r.do(func() {
			switch how {
			case 0:
				cancel(errBoom)
			case 1:
				r.comms[0].Abort(errBoom)
			case 2:
				r.comms[0].Close()
			case 3:
				r.sim.LoseDevice(0, nil)
			case 5: // a communicator of one rank
				d := r.devs[0]
				a, b, s := r.alloc(d, 4), r.alloc(d, 4), r.sem()
				err := r.comms[0].Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, r.comms[0].Group(collective.AllReduce(b.All(), a.All(), collective.Uint8, collective.Sum())))
				for _, err := range []error{err, r.wait(s, 1)} {
					if err != nil {
						r.is(err, collective.ErrSuspended)
					}
				}
				r.must(errors.Join(a.Close(), b.Close()))
			}
		})
		for _, c := range r.comms {
			r.do(func() {
				for range 2 {
					err := c.Suspend(ctx)
					if err == nil {
						err = c.Resume(ctx)
					}
					if err == nil {
						continue
					}
					if how > 3 || c.Err() == nil && how != 0 && how != 2 && how != 3 {
						r.Errorf("%v, and the communicator: %v", err, c.Err())
					}
					if errors.Is(c.Err(), simdriver.ErrSuspended) {
						r.Errorf("the library was given what a suspended communicator does not take: %v", c.Err())
					}
					c.Abort(errBoom) // otherwise the other rank waits
					return
				}
			})
		}
		r.wg.Wait()
		cancel(nil)
		r.closeAll()
		if how > 3 {
			r.end()
			return
		}
		r.lose()
	})
}

// TestLostWhileJoined loses a device while its communicator is made.
func TestLostWhileJoined(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		x.Window(false)
		id, err := collective.NewID(r.devs[0])
		r.must(err)
		x.Window(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.do(func() { r.sim.LoseDevice(0, nil) })
		for i, d := range r.devs {
			r.do(func() {
				c, err := collective.New(ctx, d, collective.Options{ID: id, Rank: i, Count: 2})
				if err != nil {
					return
				}
				if i == 0 {
					s := r.sem()
					if d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Barrier()) == nil {
						r.is(r.wait(s, 1), driver.ErrLost)
					}
				}
				c.Close()
			})
		}
		r.lose()
	})
}

// TestGroupsOfOneCaller submits the groups of both ranks from one goroutine. The collective library
// blocks its caller until the other rank arrives. Work between the groups waits for the first
// group.
func TestGroupsOfOneCaller(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 2, simdriver.Config{LazyComms: true})
		var s [2]*gpu.Semaphore
		var mem [2]*gpu.Buffer
		for i, c := range r.comms {
			d := r.devs[i]
			s[i], mem[i] = r.sem(), r.alloc(d, 4)
			r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s[i], 1)}, gpu.Fill(mem[i].All(), []byte{byte(i + 1)})))
			r.must(c.Device().Queue(0).Submit(gpu.Order{Wait: pts(s[i], 1), Signal: pts(s[i], 2)}, c.Group(collective.AllReduce(mem[i].All(), mem[i].All(), collective.Uint8, collective.Sum()))))
			r.must(d.Queue(1).Submit(gpu.Order{Wait: pts(s[i], 2), Signal: pts(s[i], 3)}, gpu.Fill(mem[i].Range(0, 2), []byte{7})))
		}
		for i := range s {
			r.must(r.wait(s[i], 3))
			got := r.bytes(r.devs[i].Queue(0), mem[i])
			r.full("behind a group", got[:2], 7)
			r.full("a sum", got[2:], 3)
			r.must(mem[i].Close())
		}
		r.closeAll()
		r.end()
	})
}

// TestShrinkAgainst shrinks a communicator of three ranks to two while groups are in flight, the
// third rank is closed, aborted or lost, or a context ends. The smaller communicator must work, or
// the calls must return the reason, and every call must return.
func TestShrinkAgainst(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := meet(x, 3, simdriver.Config{})
		x.Window(false)
		how, abort, groups := x.Choose(5), x.Choose(2) == 1, x.Choose(3)
		mem := make([]*gpu.Buffer, 3)
		for i, d := range r.devs {
			mem[i] = r.alloc(d, 4)
			r.fill(d, mem[i], byte(i+1))
		}
		x.Window(true)
		ok := func(err error) {
			r.failed(err, errBoom, context.Canceled, context.DeadlineExceeded, driver.ErrLost, gpu.ErrClosed, collective.ErrAborted, simdriver.ErrRankGone)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		submit := func(c *collective.Communicator, i int) (over func() error) {
			s := r.sem()
			err := c.Device().Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, c.GroupContext(ctx, collective.AllReduce(mem[i].All(), mem[i].All(), collective.Uint8, collective.Sum())))
			if err != nil {
				return func() error { return err }
			}
			return func() error { return r.wait(s, 1) }
		}
		r.do(func() {
			if groups == 2 {
				ok(submit(r.comms[2], 2)())
			}
			switch how {
			case 1:
				r.comms[2].Abort(errBoom)
			case 2:
				ok(r.comms[2].Close())
			case 3:
				r.sim.LoseDevice(2, nil)
			case 4:
				cancel()
			}
		})
		for i, c := range r.comms[:2] {
			r.do(func() {
				if groups > 0 { // if groups is 1, the third rank submits no group, and the groups of the first two fail
					if groups == 1 && !abort {
						return
					}
					over := submit(c, i)
					r.do(func() { ok(over()) })
				}
				part, err := c.Shrink(ctx, abort, 2)
				ok(err)
				if err != nil {
					if how == 0 && groups == 0 {
						r.must(err)
					}
					c.Abort(errBoom)
					return
				}
				if err := submit(part, i)(); err != nil {
					ok(err)
					if how != 4 {
						r.must(err)
					}
				}
				ok(part.Close())
			})
		}
		r.wg.Wait()
		for _, c := range r.comms {
			r.do(func() { ok(c.Close()) })
		}
		r.wg.Wait()
		for _, b := range mem {
			r.must(b.Close())
		}
		r.lose()
	})
}
