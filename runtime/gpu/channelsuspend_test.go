package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// commMemory is what a rank takes here.
const commMemory = 1 << 20

// openPlain opens a group with a channel that has joined plainly.
func openPlain(t *testing.T, c simdriver.Config, o gpu.ChannelOptions) (*simdriver.Driver, *gpu.Group, []*gpu.Channel) {
	t.Helper()
	c.CommMemory, o.Plain = commMemory, true
	d := newSim(t, c)
	g, chans := openChannels(t, d, c.Devices, o)
	return d, g, chans
}

// onAll calls f for all channels at once.
func onAll(chans []*gpu.Channel, f func(c *gpu.Channel) error) error {
	errs := make([]error, len(chans))
	var wg sync.WaitGroup
	for i, c := range chans {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func suspendAll(ctx context.Context, chans []*gpu.Channel) error {
	return onAll(chans, func(c *gpu.Channel) error { return c.Suspend(ctx) })
}

func resumeAll(ctx context.Context, chans []*gpu.Channel) error {
	return onAll(chans, func(c *gpu.Channel) error { return c.Resume(ctx) })
}

// works has the ranks reduce something.
func works(t *testing.T, chans []*gpu.Channel) {
	t.Helper()
	var bufs []*gpu.Buffer
	for _, c := range chans {
		bufs = append(bufs, allocate(t, c.Device(), 64))
	}
	for i, s := range reduceAll(t, chans, bufs) {
		if err := s.Wait(minute(t), 1); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestSuspend suspends and resumes a channel twice. Meanwhile there is more memory, and what is submitted or executed fails.
func TestSuspend(t *testing.T) {
	_, g, chans := openPlain(t, simdriver.Config{Devices: 2}, gpu.ChannelOptions{})
	c, dev := chans[0], g.Devices()[0]
	mem, err := dev.Alloc(gpu.CommMem, 64)
	must(t, err)
	told, err := c.Register(mem)
	must(t, err)
	cb := commandBuffer(t, dev, gpu.AutoMode)
	recorded(t)(cb.Add(c.Group(sum(mem))))
	must(t, cb.End())
	free := func() uint64 {
		t.Helper()
		free, _, err := dev.MemInfo()
		must(t, err)
		return free
	}
	for range 2 {
		before := free()
		must(t, suspendAll(minute(t), chans))
		if s, err := c.Stats(); s != (gpu.ChannelStats{Suspendable: commMemory, Suspended: true}) || err != nil {
			t.Errorf("suspended it has %+v, %v", s, err)
		}
		if got := free(); got != before+commMemory {
			t.Errorf("%d bytes are free, %d before", got, before)
		}
		s := semaphores(t, 2)
		_, window := c.NewWindow(minute(t), mem, false)
		_, register := c.Register(mem)
		for what, err := range map[string]error{
			"submit": c.Submit(t.Context(), gpu.Order{Signal: pts(s[0], 1)}, sum(mem)),
			"again":  c.Suspend(minute(t)),
			"close":  told.Close(),
		} {
			if !errors.Is(err, gpu.ErrSuspended) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if !errors.Is(window, simdriver.ErrSuspended) || !errors.Is(register, simdriver.ErrSuspended) {
			t.Errorf("window: %v, register: %v", window, register)
		}
		dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(cb))
		for i, s := range s {
			if err := s.Wait(minute(t), 1); !errors.Is(err, gpu.ErrSuspended) {
				t.Errorf("signal %d: %v", i, err)
			}
		}
		if c.Err() != nil {
			t.Errorf("it has failed: %v", c.Err())
		}
		must(t, resumeAll(minute(t), chans))
		if err := c.Resume(minute(t)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("resumed again: %v", err)
		}
		if s, err := c.Stats(); s != (gpu.ChannelStats{Suspendable: commMemory}) || err != nil || free() != before {
			t.Errorf("resumed it has %+v, %v, and %d bytes are free, %d before", s, err, free(), before)
		}
		works(t, chans)
	}
	must(t, told.Close())
}

// TestSuspendRefused says what cannot be suspended, and that it goes on.
func TestSuspendRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	_, shared := openChannels(t, d, 2, gpu.ChannelOptions{})
	if err := suspendAll(minute(t), shared); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Plain") {
		t.Errorf("a channel with more communicators: %v", err)
	}
	works(t, shared)

	g, chans := openChannels(t, &stubbornDriver{Driver: newSim(t, simdriver.Config{})}, 1, gpu.ChannelOptions{Plain: true})
	_, stats := chans[0].Stats()
	for what, err := range map[string]error{"suspend": chans[0].Suspend(t.Context()), "resume": chans[0].Resume(t.Context()), "stats": stats} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), g.Devices()[0].Info().Name) {
			t.Errorf("%s of a driver that does not: %v", what, err)
		}
	}
	works(t, chans)

	zero := new(gpu.Channel)
	_, stats = zero.Stats()
	for what, err := range map[string]error{"suspend": zero.Suspend(t.Context()), "resume": zero.Resume(t.Context()), "stats": stats} {
		if !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s of a zero channel: %v", what, err)
		}
	}
}

// bubble opens two devices with a plain channel, in a bubble of package synctest.
func bubble(t *testing.T) (*simdriver.Driver, *gpu.Group, []*gpu.Channel) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Devices: 2, CommMemory: commMemory})
	g, err := gpu.OpenGroup(d, gpu.Options{})
	must(t, err)
	chans, err := g.NewChannels(t.Context(), gpu.ChannelOptions{Plain: true})
	must(t, err)
	return d, g, chans
}

// TestSuspendWithWorkUnderWay has groups wait for the host when their channel is suspended: it waits for them, and if the context ends before
// nothing has happened.
func TestSuspendWithWorkUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, chans := bubble(t)
		host, done := semaphores(t, 1)[0], semaphores(t, 2)
		for i, c := range chans {
			must(t, c.Submit(context.Background(), order(host, 1, done[i], 1), sum(allocate(t, g.Devices()[i], 64))))
		}
		if err := suspendAll(in(t, time.Second), chans); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("suspended: %v", err)
		}
		for _, c := range chans {
			if c.Err() != nil {
				t.Errorf("it has failed: %v", c.Err())
			}
		}
		suspended := make(chan error, 1)
		go func() { suspended <- suspendAll(t.Context(), chans) }()
		time.Sleep(time.Second)
		select {
		case err := <-suspended:
			t.Errorf("suspended with groups under way: %v", err)
		default:
		}
		must(t, host.Signal(1))
		must(t, <-suspended)
		for _, s := range done {
			must(t, s.Wait(t.Context(), 1))
		}
		must(t, resumeAll(t.Context(), chans))
		works(t, chans)
		must(t, g.Close())
	})
}

// TestSuspendInVain has the other rank not come when one is suspended, or resumed, or go away: nobody hangs, and the channel fails.
func TestSuspendInVain(t *testing.T) {
	for what, x := range map[string]struct {
		limit time.Duration
		end   func(d *simdriver.Driver, chans []*gpu.Channel)
		kind  error
	}{
		"until the context ends": {20 * time.Millisecond, nil, context.DeadlineExceeded},
		"until it is aborted":    {time.Minute, func(_ *simdriver.Driver, chans []*gpu.Channel) { chans[0].Abort(nil) }, gpu.ErrAborted},
		"until it is closed":     {time.Minute, func(_ *simdriver.Driver, chans []*gpu.Channel) { chans[0].Close() }, gpu.ErrClosed},
		"until the other is":     {time.Minute, func(_ *simdriver.Driver, chans []*gpu.Channel) { chans[1].Abort(nil) }, simdriver.ErrRankGone},
		"until a loss":           {time.Minute, func(d *simdriver.Driver, _ []*gpu.Channel) { d.LoseDevice(0, nil) }, driver.ErrLost},
	} {
		for _, resume := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resumed %v", what, resume), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, g, chans := bubble(t)
					call := chans[0].Suspend
					if resume {
						must(t, suspendAll(t.Context(), chans))
						call = chans[0].Resume
					}
					if x.end != nil {
						time.AfterFunc(20*time.Millisecond, func() { x.end(d, chans) })
					}
					if err := call(in(t, x.limit)); !errors.Is(err, x.kind) && !(x.kind == driver.ErrLost && errors.Is(err, simdriver.ErrRankGone)) {
						t.Errorf("it ends with %v", err)
					}
					if chans[0].Err() == nil {
						t.Error("the channel has not failed")
					}
					if err := chans[0].Resume(t.Context()); err == nil {
						t.Error("it was resumed")
					}
					if _, err := chans[0].Stats(); err == nil {
						t.Error("it tells how much memory it has")
					}
					chans[1].Abort(nil)
					if err := g.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
						t.Errorf("close: %v", err)
					}
					if left := d.Leaks(); len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
				})
			})
		}
	}
}

// TestResumeOutOfMemory has the program take what a channel has given back: the channel fails, on all ranks.
func TestResumeOutOfMemory(t *testing.T) {
	_, g, chans := openPlain(t, simdriver.Config{Devices: 2, Memory: 4 << 20}, gpu.ChannelOptions{})
	must(t, suspendAll(minute(t), chans))
	free, _, err := g.Devices()[0].MemInfo()
	must(t, err)
	all, err := g.Devices()[0].Alloc(gpu.DeviceMem, free)
	must(t, err)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, c := range chans {
		wg.Go(func() { errs[i] = c.Resume(minute(t)) })
	}
	wg.Wait()
	if !errors.Is(errs[0], driver.ErrOutOfMemory) || !errors.Is(errs[1], simdriver.ErrRankGone) {
		t.Errorf("it was resumed: %v", errs)
	}
	must(t, all.Close())
}

// TestSuspendedEnds closes and aborts channels that are suspended, and loses their device.
func TestSuspendedEnds(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, d *simdriver.Driver, g *gpu.Group, chans []*gpu.Channel) error{
		"closed on all ranks": func(_ *testing.T, _ *simdriver.Driver, _ *gpu.Group, chans []*gpu.Channel) error {
			return onAll(chans, (*gpu.Channel).Close)
		},
		"closed with the devices": func(_ *testing.T, _ *simdriver.Driver, g *gpu.Group, _ []*gpu.Channel) error { return g.Close() },
		"closed on one, resumed on the other": func(t *testing.T, _ *simdriver.Driver, _ *gpu.Group, chans []*gpu.Channel) error {
			return onAll(chans, func(c *gpu.Channel) error {
				if c.Rank() == 0 {
					return c.Close()
				}
				if err := c.Resume(t.Context()); err != nil {
					return err
				}
				return c.Close()
			})
		},
		"closed on one alone": func(t *testing.T, _ *simdriver.Driver, _ *gpu.Group, chans []*gpu.Channel) error {
			if err := chans[0].Close(); !errors.Is(err, gpu.ErrClosed) { // after ten seconds
				return fmt.Errorf("closed: %w", err)
			}
			chans[1].Abort(nil)
			return chans[1].Close()
		},
		"aborted": func(_ *testing.T, _ *simdriver.Driver, _ *gpu.Group, chans []*gpu.Channel) error {
			for _, c := range chans {
				c.Abort(nil)
			}
			return onAll(chans, (*gpu.Channel).Close)
		},
		"lost": func(_ *testing.T, d *simdriver.Driver, g *gpu.Group, chans []*gpu.Channel) error {
			d.LoseDevice(0, nil)
			if err := chans[0].Resume(context.Background()); !errors.Is(err, driver.ErrLost) {
				return fmt.Errorf("resumed: %w", err)
			}
			chans[1].Abort(nil)
			g.Close() // with the loss
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, g, chans := bubble(t)
				must(t, suspendAll(t.Context(), chans))
				if err := end(t, d, g, chans); err != nil {
					t.Error(err)
				}
				g.Close()
				if left := d.Leaks(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		})
	}
}

// TestSuspendFails has the driver fail: the channel fails, but if it is refused.
func TestSuspendFails(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpSuspendComm, simdriver.OpResumeComm} {
		for _, kind := range []error{simdriver.ErrInjected, driver.ErrUnsupported} {
			t.Run(fmt.Sprint(op, kind), func(t *testing.T) {
				d, _, chans := openPlain(t, simdriver.Config{Devices: 1}, gpu.ChannelOptions{})
				c, call := chans[0], chans[0].Suspend
				if op == simdriver.OpResumeComm {
					must(t, c.Suspend(t.Context()))
					call = c.Resume
				}
				d.Inject(simdriver.Fault{Op: op, Device: simdriver.AnyDevice, N: 1, Err: kind})
				if err := call(t.Context()); !errors.Is(err, kind) {
					t.Errorf("%v: %v", op, err)
				}
				if failed := c.Err() != nil; failed != (kind == simdriver.ErrInjected) {
					t.Errorf("the channel: %v", c.Err())
				}
				if c.Err() == nil {
					must(t, call(t.Context()))
				}
			})
		}
	}
}
