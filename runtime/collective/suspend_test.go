package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// commMemory is the number of bytes of device memory that each rank of a communicator takes in
// these tests.
const commMemory = 1 << 20

// openPlain opens the devices as a group, and makes a communicator on each with Options.Plain.
func openPlain(t *testing.T, c simdriver.Config, o collective.Options) (*simdriver.Driver, *gpu.Group, []*collective.Communicator) {
	t.Helper()
	c.CommMemory, o.Plain = commMemory, true
	d := newSim(t, c)
	g, comms := openCommunicators(t, d, c.Devices, o)
	return d, g, comms
}

// onAll calls f for all communicators concurrently.
func onAll(comms []*collective.Communicator, f func(c *collective.Communicator) error) error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func suspendAll(ctx context.Context, comms []*collective.Communicator) error {
	return onAll(comms, func(c *collective.Communicator) error { return c.Suspend(ctx) })
}

func resumeAll(ctx context.Context, comms []*collective.Communicator) error {
	return onAll(comms, func(c *collective.Communicator) error { return c.Resume(ctx) })
}

// works checks that an all-reduce works on all ranks.
func works(t *testing.T, comms []*collective.Communicator) {
	t.Helper()
	var bufs []*gpu.Buffer
	for _, c := range comms {
		bufs = append(bufs, allocate(t, c.Device(), 64))
	}
	for i, s := range reduceAll(t, comms, bufs) {
		if err := s.Wait(minute(t), 1); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestSuspend suspends and resumes the communicators of two devices twice. Suspending must free the
// communicators' memory. While the communicators are suspended, groups, executions with groups and
// registrations must fail.
func TestSuspend(t *testing.T) {
	_, g, comms := openPlain(t, simdriver.Config{Devices: 2}, collective.Options{})
	c, dev := comms[0], g.Devices()[0]
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
		must(t, suspendAll(minute(t), comms))
		if s, err := c.Stats(); s != (collective.Stats{Suspendable: commMemory, Suspended: true}) || err != nil {
			t.Errorf("suspended it has %+v, %v", s, err)
		}
		if got := free(); got != before+commMemory {
			t.Errorf("%d bytes are free, %d before", got, before)
		}
		s := semaphores(t, 2)
		_, window := c.NewWindow(minute(t), mem, false)
		_, register := c.Register(mem)
		for what, err := range map[string]error{
			"submit": c.Device().Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, c.GroupContext(t.Context(), sum(mem))),
			"again":  c.Suspend(minute(t)),
			"close":  told.Close(),
		} {
			if !errors.Is(err, collective.ErrSuspended) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if !errors.Is(window, simdriver.ErrSuspended) || !errors.Is(register, simdriver.ErrSuspended) {
			t.Errorf("window: %v, register: %v", window, register)
		}
		dev.Queue(0).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Execute(cb))
		for i, s := range s {
			if err := s.Wait(minute(t), 1); !errors.Is(err, collective.ErrSuspended) {
				t.Errorf("signal %d: %v", i, err)
			}
		}
		if c.Err() != nil {
			t.Errorf("it has failed: %v", c.Err())
		}
		must(t, resumeAll(minute(t), comms))
		if err := c.Resume(minute(t)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("resumed again: %v", err)
		}
		if s, err := c.Stats(); s != (collective.Stats{Suspendable: commMemory}) || err != nil || free() != before {
			t.Errorf("resumed it has %+v, %v, and %d bytes are free, %d before", s, err, free(), before)
		}
		works(t, comms)
	}
	must(t, told.Close())
}

// TestSuspendRefused checks the errors of Suspend, Resume and Stats on communicators that cannot be
// suspended. The communicators must stay usable.
func TestSuspendRefused(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	_, shared := openCommunicators(t, d, 2, collective.Options{})
	if err := suspendAll(minute(t), shared); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Plain") {
		t.Errorf("a communicator with more communicators: %v", err)
	}
	works(t, shared)

	g, comms := openCommunicators(t, &stubbornDriver{Driver: newSim(t, simdriver.Config{})}, 1, collective.Options{Plain: true})
	_, stats := comms[0].Stats()
	for what, err := range map[string]error{"suspend": comms[0].Suspend(t.Context()), "resume": comms[0].Resume(t.Context()), "stats": stats} {
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), g.Devices()[0].Info().Name) {
			t.Errorf("%s of a driver that does not: %v", what, err)
		}
	}
	works(t, comms)

	zero := new(collective.Communicator)
	_, stats = zero.Stats()
	for what, err := range map[string]error{"suspend": zero.Suspend(t.Context()), "resume": zero.Resume(t.Context()), "stats": stats} {
		if !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s of a zero communicator: %v", what, err)
		}
	}
}

// bubble opens two devices and makes a communicator on each with Options.Plain, for tests in a
// bubble of package synctest. It does not check for leaks.
func bubble(t *testing.T) (*simdriver.Driver, *gpu.Group, []*collective.Communicator) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Devices: 2, CommMemory: commMemory})
	g, err := gpu.OpenGroup(d, gpu.Options{})
	must(t, err)
	comms, err := collective.NewAll(t.Context(), g.Devices(), collective.Options{Plain: true})
	must(t, err)
	return d, g, comms
}

// TestSuspendWithWorkUnderWay suspends a communicator whose groups wait for the host. Suspend must
// wait for the groups. If the context ends first, the communicator must not fail.
func TestSuspendWithWorkUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, comms := bubble(t)
		host, done := semaphores(t, 1)[0], semaphores(t, 2)
		for i, c := range comms {
			must(t, submitGroup(c, order(host, 1, done[i], 1), sum(allocate(t, g.Devices()[i], 64))))
		}
		if err := suspendAll(in(t, time.Second), comms); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("suspended: %v", err)
		}
		for _, c := range comms {
			if c.Err() != nil {
				t.Errorf("it has failed: %v", c.Err())
			}
		}
		suspended := make(chan error, 1)
		go func() { suspended <- suspendAll(t.Context(), comms) }()
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
		must(t, resumeAll(t.Context(), comms))
		works(t, comms)
		must(t, g.Close())
	})
}

// TestSuspendInVain checks that Suspend and Resume return an error, and that the communicator
// fails, if the other rank does not make the same call. The call ends when its context ends, when
// either rank is aborted, when the communicator is closed, or when the communicator's device is
// lost.
func TestSuspendInVain(t *testing.T) {
	for what, x := range map[string]struct {
		limit time.Duration
		end   func(d *simdriver.Driver, comms []*collective.Communicator)
		kind  error
	}{
		"until the context ends": {20 * time.Millisecond, nil, context.DeadlineExceeded},
		"until it is aborted":    {time.Minute, func(_ *simdriver.Driver, comms []*collective.Communicator) { comms[0].Abort(nil) }, collective.ErrAborted},
		"until it is closed":     {time.Minute, func(_ *simdriver.Driver, comms []*collective.Communicator) { comms[0].Close() }, gpu.ErrClosed},
		"until the other is":     {time.Minute, func(_ *simdriver.Driver, comms []*collective.Communicator) { comms[1].Abort(nil) }, simdriver.ErrRankGone},
		"until a loss":           {time.Minute, func(d *simdriver.Driver, _ []*collective.Communicator) { d.LoseDevice(0, nil) }, driver.ErrLost},
	} {
		for _, resume := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resumed %v", what, resume), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, g, comms := bubble(t)
					call := comms[0].Suspend
					if resume {
						must(t, suspendAll(t.Context(), comms))
						call = comms[0].Resume
					}
					if x.end != nil {
						time.AfterFunc(20*time.Millisecond, func() { x.end(d, comms) })
					}
					if err := call(in(t, x.limit)); !errors.Is(err, x.kind) && !(x.kind == driver.ErrLost && errors.Is(err, simdriver.ErrRankGone)) {
						t.Errorf("it ends with %v", err)
					}
					if comms[0].Err() == nil {
						t.Error("the communicator has not failed")
					}
					if err := comms[0].Resume(t.Context()); err == nil {
						t.Error("it was resumed")
					}
					if _, err := comms[0].Stats(); err == nil {
						t.Error("it tells how much memory it has")
					}
					comms[1].Abort(nil)
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

// TestResumeOutOfMemory allocates all free memory of one rank's device while the communicator is
// suspended. Resume must then fail on all ranks.
func TestResumeOutOfMemory(t *testing.T) {
	_, g, comms := openPlain(t, simdriver.Config{Devices: 2, Memory: 4 << 20}, collective.Options{})
	must(t, suspendAll(minute(t), comms))
	free, _, err := g.Devices()[0].MemInfo()
	must(t, err)
	all, err := g.Devices()[0].Alloc(gpu.DeviceMem, free)
	must(t, err)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = c.Resume(minute(t)) })
	}
	wg.Wait()
	if !errors.Is(errs[0], driver.ErrOutOfMemory) || !errors.Is(errs[1], simdriver.ErrRankGone) {
		t.Errorf("it was resumed: %v", errs)
	}
	must(t, all.Close())
}

// TestSuspendedEnds checks that nothing leaks if a suspended communicator is closed or aborted, or
// if its device is lost.
func TestSuspendedEnds(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, d *simdriver.Driver, g *gpu.Group, comms []*collective.Communicator) error{
		"closed on all ranks": func(_ *testing.T, _ *simdriver.Driver, _ *gpu.Group, comms []*collective.Communicator) error {
			return onAll(comms, (*collective.Communicator).Close)
		},
		"closed with the devices": func(_ *testing.T, _ *simdriver.Driver, g *gpu.Group, _ []*collective.Communicator) error {
			return g.Close()
		},
		"closed on one, resumed on the other": func(t *testing.T, _ *simdriver.Driver, _ *gpu.Group, comms []*collective.Communicator) error {
			return onAll(comms, func(c *collective.Communicator) error {
				if c.Rank() == 0 {
					return c.Close()
				}
				if err := c.Resume(t.Context()); err != nil {
					return err
				}
				return c.Close()
			})
		},
		"closed on one alone": func(t *testing.T, _ *simdriver.Driver, _ *gpu.Group, comms []*collective.Communicator) error {
			if err := comms[0].Close(); !errors.Is(err, gpu.ErrClosed) { // Close gives up after ten seconds
				return fmt.Errorf("closed: %w", err)
			}
			comms[1].Abort(nil)
			return comms[1].Close()
		},
		"aborted": func(_ *testing.T, _ *simdriver.Driver, _ *gpu.Group, comms []*collective.Communicator) error {
			for _, c := range comms {
				c.Abort(nil)
			}
			return onAll(comms, (*collective.Communicator).Close)
		},
		"lost": func(_ *testing.T, d *simdriver.Driver, g *gpu.Group, comms []*collective.Communicator) error {
			d.LoseDevice(0, nil)
			if err := comms[0].Resume(context.Background()); !errors.Is(err, driver.ErrLost) {
				return fmt.Errorf("resumed: %w", err)
			}
			comms[1].Abort(nil)
			g.Close() // returns the loss of the device
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, g, comms := bubble(t)
				must(t, suspendAll(t.Context(), comms))
				if err := end(t, d, g, comms); err != nil {
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

// TestSuspendFails checks that a communicator fails if the driver's call for Suspend or Resume
// fails, unless the driver's error is ErrUnsupported.
func TestSuspendFails(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpSuspendComm, simdriver.OpResumeComm} {
		for _, kind := range []error{simdriver.ErrInjected, driver.ErrUnsupported} {
			t.Run(fmt.Sprint(op, kind), func(t *testing.T) {
				d, _, comms := openPlain(t, simdriver.Config{Devices: 1}, collective.Options{})
				c, call := comms[0], comms[0].Suspend
				if op == simdriver.OpResumeComm {
					must(t, c.Suspend(t.Context()))
					call = c.Resume
				}
				d.Inject(simdriver.Fault{Op: op, Device: simdriver.AnyDevice, N: 1, Err: kind})
				if err := call(t.Context()); !errors.Is(err, kind) {
					t.Errorf("%v: %v", op, err)
				}
				if failed := c.Err() != nil; failed != (kind == simdriver.ErrInjected) {
					t.Errorf("the communicator: %v", c.Err())
				}
				if c.Err() == nil {
					must(t, call(t.Context()))
				}
			})
		}
	}
}
