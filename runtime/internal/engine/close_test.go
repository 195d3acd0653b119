package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// askedLittle fails the test if the driver's first device is not queried within one second of this
// call, or is queried more than 5000 times after that second. Without long pauses between polls, a
// minute of the synctest bubble's time would take seconds of real time.
func askedLittle(t *testing.T, d *simdriver.Driver) {
	queries := func() uint64 { return d.Counters().Devices[0].Calls[simdriver.OpQuery] }
	var first atomic.Uint64
	time.AfterFunc(time.Second, func() { first.Store(queries()) })
	t.Cleanup(func() {
		if n := queries() - first.Load(); first.Load() == 0 || n > 5000 {
			t.Errorf("the device was queried %d times in the first second, and then %d times", first.Load(), n)
		}
	})
}

// TestWaitBubble checks that a wait for work that takes a minute of the synctest bubble's time
// queries the device rarely, and ends within a second after the work.
func TestWaitBubble(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
		d.SetLatency(simdriver.OpFill, time.Minute)
		askedLittle(t, d)
		start := time.Now()
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, s[0].Wait(in(t, 2*time.Minute), 1))
		if took := time.Since(start); took > time.Minute+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestShutdownWaits checks that Shutdown waits for work in flight for longer than the ten seconds
// of Close, if the context given to Shutdown allows that.
func TestShutdownWaits(t *testing.T) {
	for name, shutdown := range map[string]func(dev *gpu.Device, ctx context.Context) error{
		"a device": func(dev *gpu.Device, ctx context.Context) error { return dev.Shutdown(ctx) },
		"a group": func(dev *gpu.Device, ctx context.Context) error {
			g, err := gpu.NewGroup(dev)
			return errors.Join(err, g.Shutdown(ctx))
		},
		"Close at the same time, which waits as well": func(dev *gpu.Device, ctx context.Context) error {
			other := make(chan error)
			go func() { other <- dev.Shutdown(context.Background()) }()
			return errors.Join(dev.Shutdown(ctx), <-other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
				d.SetLatency(simdriver.OpFill, time.Minute)
				askedLittle(t, d)
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
				inFlight(t, dev, 1)
				if err := shutdown(dev, in(t, 2*time.Minute)); err != nil {
					t.Error(err)
				}
				if v, err := s[0].Query(); v != 1 || err != nil {
					t.Errorf("the work ended with %d, %v", v, err)
				}
			})
		})
	}
}

// TestShutdownInTime checks that Shutdown and Close give up soon after their deadline if work has
// not ended, and return a CloseError with the number of submissions and of host calls.
func TestShutdownInTime(t *testing.T) {
	type setting struct {
		d    *simdriver.Driver
		dev  *gpu.Device
		s    *gpu.Semaphore
		hold chan struct{}
	}
	for name, x := range map[string]struct {
		begin              func(t *testing.T, x setting)
		submissions, calls int
	}{
		"a fill": {func(t *testing.T, x setting) {
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.Fill(allocate(t, x.dev, 64).All(), []byte{1})))
			inFlight(t, x.dev, 1)
		}, 1, 0},
		"two fills, and one that is parked": {func(t *testing.T, x setting) {
			b := allocate(t, x.dev, 64)
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.Fill(b.All(), []byte{1})))
			must(t, x.dev.Queue(0).Submit(gpu.Order{Wait: pts(x.s, 1), Signal: pts(x.s, 2)}, gpu.Fill(b.All(), []byte{1})))
			must(t, x.dev.Queue(0).Submit(order(semaphores(t, 1)[0], 1, semaphores(t, 1)[0], 1), gpu.Fill(b.All(), []byte{1})))
			inFlight(t, x.dev, 2)
		}, 2, 0},
		"a transfer in pieces": {func(t *testing.T, x setting) {
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.Download(make([]byte, 5<<20), allocate(t, x.dev, 5<<20).All())))
			eventually(t, "as many pieces as there may be are in flight", func() bool { return x.dev.Stats().InFlight == 3 }, x.dev)
		}, 3, 0},
		"a recording": {func(t *testing.T, x setting) {
			c, err := x.dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			_, err = c.Add(gpu.Fill(allocate(t, x.dev, 64).All(), []byte{1}))
			must(t, errors.Join(err, c.End()))
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.Execute(c)))
			inFlight(t, x.dev, 1)
		}, 1, 0},
		"a host call": {func(t *testing.T, x setting) {
			begun := make(chan struct{})
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.HostCall(func() error { close(begun); <-x.hold; return nil })))
			<-begun
		}, 0, 1},
		"a host call that waits for work": {func(t *testing.T, x setting) {
			begun := make(chan struct{})
			must(t, x.dev.Queue(0).Submit(gpu.Order{Signal: pts(x.s, 1)}, gpu.Fill(allocate(t, x.dev, 64).All(), []byte{1})))
			must(t, x.dev.Queue(0).Submit(gpu.Order{}, gpu.HostCall(func() error { close(begun); return x.s.Wait(context.Background(), 1) })))
			<-begun
		}, 1, 0},
	} {
		for bound, limit := range map[string]time.Duration{"": time.Second, ", by Close": 10 * time.Second, ", at once": 0} {
			t.Run(name+bound, func(t *testing.T) {
				onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
					dev, s := openDevice(t, d, 0, gpu.Options{Poll: -1}), semaphores(t, 1)
					hold := make(chan struct{})
					defer close(hold)
					d.StallDevice(0)
					x.begin(t, setting{d, dev, s[0], hold})
					start := time.Now()
					shut := func() error {
						if bound == ", by Close" {
							return dev.Close()
						}
						return dev.Shutdown(in(t, limit))
					}
					err := shut()
					of, ok := errors.AsType[*gpu.CloseError](err)
					if !ok || !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("%v", err)
					}
					if of.Submissions != x.submissions || of.Calls != x.calls || of.After < limit || of.After > limit+2*time.Second {
						t.Errorf("%+v", of)
					}
					if took := time.Since(start); took > limit+3*time.Second {
						t.Errorf("it took %v", took)
					}
					if x.submissions > 0 {
						if err := s[0].Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
							t.Errorf("the work: %v", err)
						}
					}
					if again := shut(); again != err {
						t.Errorf("again: %v", again)
					}
				})
			})
		}
	}
}

// TestShutdownAtOnce closes a device with a context that has ended. Work that has completed must
// not fail, although it is not retired yet. Parked work must fail.
func TestShutdownAtOnce(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 3)
		b := allocate(t, dev, 64)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s[1], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		must(t, dev.Queue(1).Submit(order(semaphores(t, 1)[0], 1, s[2], 1), gpu.Fill(b.All(), []byte{1})))
		synctest.Wait() // the work completes, but no goroutine polls
		must(t, dev.Shutdown(ended))
		for i, want := range []error{nil, nil, gpu.ErrClosed} {
			if err := s[i].Wait(minute(t), 1); !errors.Is(err, want) {
				t.Errorf("work %d: %v; want %v", i, err, want)
			}
		}
		must(t, dev.Shutdown(ended))
		must(t, dev.Close())
	})
}

// TestShutdownHurried calls Shutdown with a late deadline, and again with an early one. The first
// call must end at the deadline of the second.
func TestShutdownHurried(t *testing.T) {
	onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
		dev := openDevice(t, d, 0, gpu.Options{})
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		inFlight(t, dev, 1)
		first := make(chan error)
		go func() { first <- dev.Shutdown(in(t, time.Hour)) }()
		synctest.Wait()
		start := time.Now()
		err := dev.Shutdown(in(t, time.Second))
		if _, ok := errors.AsType[*gpu.CloseError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if other := <-first; other != err {
			t.Errorf("the first: %v", other)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestShutdownGives checks that Shutdown succeeds if the work in flight ends within half a second
// after the context.
func TestShutdownGives(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0]
		d.SetLatency(simdriver.OpFill, 200*time.Millisecond) // time of the synctest bubble
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		inFlight(t, dev, 1)
		must(t, dev.Shutdown(in(t, 100*time.Millisecond)))
		must(t, s.Wait(minute(t), 1))
	})
}

// TestShutdownStuckDriver blocks a driver call beyond the deadline. Shutdown must return in time,
// with ErrBusy. After the driver call has returned, the device must be closed without leaks.
func TestShutdownStuckDriver(t *testing.T) {
	for _, op := range []simdriver.Op{simdriver.OpQuery, simdriver.OpFree, simdriver.OpDestroyStream} {
		t.Run(string(op), func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{})
				must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
				d.SetLatency(op, time.Minute)
				start := time.Now()
				err := dev.Shutdown(in(t, time.Second))
				if !errors.Is(err, driver.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if took := time.Since(start); took > 4*time.Second {
					t.Errorf("it took %v", took)
				}
				d.SetLatency(op, 0)
				time.Sleep(2 * time.Minute) // wait until the driver call has returned
				dev.Shutdown(context.Background())
			})
		})
	}
}

// TestShutdownNames blocks a device's closing beyond the deadline. The error of Shutdown must name
// the call that Shutdown waits for, and not the tracer, because the device has none.
func TestShutdownNames(t *testing.T) {
	for name, block := range map[string]func(dev *gpu.Device, v *slowErrorDevice, ended chan struct{}){
		"a function of Native": func(dev *gpu.Device, _ *slowErrorDevice, ended chan struct{}) {
			go dev.Queue(0).Submit(gpu.Order{}, gpu.Native("long", func(gpu.NativeCall) error { <-ended; return nil }))
			synctest.Wait()
		},
		// The driver has taken everything back.
		"a call of the driver": func(_ *gpu.Device, v *slowErrorDevice, ended chan struct{}) { v.ended = ended },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, ended := &slowErrors{Driver: newSim(t, simdriver.Config{})}, make(chan struct{})
				dev := openDevice(t, d, 0, gpu.Options{})
				block(dev, d.device, ended)
				err := dev.Shutdown(in(t, time.Second))
				if !errors.Is(err, driver.ErrBusy) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "tracer") {
					t.Error(err)
				}
				close(ended)
				if err := dev.Shutdown(context.Background()); (err != nil) != (d.device.ended != nil) {
					t.Error(err)
				}
			})
		})
	}
}

// A slowErrors is a driver whose device may return an error from Close. The first call of the
// error's Is returns at once. Later calls block until slowErrorDevice.ended is closed.
type slowErrors struct {
	*simdriver.Driver
	device *slowErrorDevice
}

type slowErrorDevice struct {
	driver.Device
	driver.Natives
	ended chan struct{} // ends the calls of Is when closed; nil if Close adds no error
	asked atomic.Int32
}

func (d *slowErrors) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err == nil {
		d.device = &slowErrorDevice{Device: v, Natives: v.(driver.Natives)}
	}
	return d.device, err
}

// Caps returns only the features whose interfaces the wrapper implements.
func (v *slowErrorDevice) Caps() driver.Caps { return driver.Caps{Native: v.Device.Caps().Native} }

func (v *slowErrorDevice) Close() error {
	err := v.Device.Close()
	if v.ended != nil {
		return errors.Join(err, v)
	}
	return err
}

func (v *slowErrorDevice) Error() string { return "an error that is slow to compare" }

func (v *slowErrorDevice) Is(error) bool {
	if v.asked.Add(1) > 1 {
		<-v.ended
	}
	return false
}

// TestCloseAsksAgain fails one query of the event that Close waits for. This driver does not allow
// a pending event to be recorded again, so Close must query the same event again.
func TestCloseAsksAgain(t *testing.T) {
	t.Run("B85 an event that cannot be queried at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			caps := hipPoolCaps()
			d := newSim(t, simdriver.Config{Caps: &caps})
			dev := openDevice(t, d, 0, gpu.Options{})
			d.StallDevice(0)
			b, err := testkit.AllocIn(dev.Queue(0), gpu.Order{}, nil, 64)
			must(t, err)
			// No event is recorded behind this free.
			must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Free(b)))
			fault := d.Inject(simdriver.Fault{Op: simdriver.OpQuery, Device: 0, N: 1})
			time.AfterFunc(100*time.Millisecond, func() { d.ResumeDevice(0) })
			if err := dev.Close(); err != nil || fault.Hits() != 1 || len(d.Leaks()) > 0 {
				t.Errorf("%v; the fault has struck %d times; left behind: %v", err, fault.Hits(), d.Leaks())
			}
		})
	})
}

// TestCloseTells checks the error of Close: if work or a stream does not end, if the device is lost
// during Close, and if it was lost before.
func TestCloseTells(t *testing.T) {
	t.Run("B85 work that does not end", func(t *testing.T) {
		onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
			dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
			d.StallDevice(0)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
			inFlight(t, dev, 1)
			start := time.Now()
			err := dev.Close()
			if !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, driver.ErrBusy) {
				t.Errorf("%v, though work did not end and its stream is left", err)
			}
			var all *gpu.CloseError
			if !errors.As(err, &all) || all.Submissions != 1 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "did not end within") {
				t.Errorf("%v is not one line that says first that work did not end", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if again := dev.Close(); again != err {
				t.Errorf("again: %v", again)
			}
		})
	})
	for name, ends := range map[string]bool{"B85 a stream that does not end": false, "B85 a stream that ends in time": true} {
		t.Run(name+" behind an event that could not be recorded", func(t *testing.T) {
			onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
				dev, s := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)
				b := allocate(t, dev, 1<<20)
				d.StallDevice(0)
				d.Inject(simdriver.Fault{Op: simdriver.OpRecord, Device: simdriver.AnyDevice})
				must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(b.All(), []byte{1})))
				if err := s[0].Wait(minute(t), 1); !errors.Is(err, simdriver.ErrInjected) {
					t.Fatal(err)
				}
				if ends {
					time.AfterFunc(100*time.Millisecond, func() { d.ResumeDevice(0) })
				}
				err := dev.Close()
				switch {
				case ends && (err != nil || len(d.Leaks()) > 0):
					t.Errorf("%v; left behind: %v", err, d.Leaks())
				case !ends && !errors.Is(err, driver.ErrBusy):
					t.Errorf("%v, though a stream is left", err)
				}
			})
		})
	}
	t.Run("B85 a loss found during the wait for work in flight", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev, s, why := openDevice(t, d, 0, gpu.Options{}), semaphores(t, 1)[0], errors.New("it fell off the bus")
			d.SetLatency(simdriver.OpFill, time.Second)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 1<<20).All(), []byte{1})))
			time.AfterFunc(500*time.Millisecond, func() { d.LoseDevice(0, why) })
			err := dev.Close()
			if !errors.Is(err, driver.ErrLost) || !errors.Is(err, why) {
				t.Errorf("Close does not return the loss: %v", err)
			}
			if _, gaveUp := errors.AsType[*gpu.CloseError](err); gaveUp {
				t.Errorf("%v, though nothing was given up", err)
			}
			if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("the work: %v", err)
			}
		})
	})
	t.Run("B85 a lost device leaks nothing", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			allocate(t, dev, 64)
			d.LoseDevice(0, nil)
			if _, err := dev.Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestCloseFromFunction checks that a function of OnReached can close the device whose work signals
// the point.
func TestCloseFromFunction(t *testing.T) {
	for name, submit := range map[string]func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error{
		"a host call": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Submit(o, gpu.HostCall(func() error { return nil }))
		},
		"a host call that fails": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Submit(o, gpu.HostCall(func() error { return errHostCall }))
		},
		"a host call that panics": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Submit(o, gpu.HostCall(func() error { panic(errHostCall) }))
		},
		"a notification": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Submit(o, gpu.Notify(func() {}))
		},
		"an upload": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			return q.Submit(o, gpu.Upload(b.All(), make([]byte, b.Size())))
		},
		"an upload that is refused in part": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpUpload, N: 2})
			return q.Submit(o, gpu.Upload(b.All(), make([]byte, b.Size())))
		},
		"a download that is refused in part": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpDownload, N: 2})
			return q.Submit(o, gpu.Download(make([]byte, b.Size()), b.All()))
		},
		"a fill": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			return q.Submit(o, gpu.Fill(b.All(), []byte{1}))
		},
		"a fill that is refused": func(q *gpu.Queue, d *simdriver.Driver, o gpu.Order, b *gpu.Buffer) error {
			d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 1})
			return q.Submit(o, gpu.Fill(b.All(), []byte{1}))
		},
		"a barrier": func(q *gpu.Queue, _ *simdriver.Driver, o gpu.Order, _ *gpu.Buffer) error {
			return q.Submit(o, gpu.Barrier())
		},
	} {
		t.Run("B121 "+name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, s := openDevice(t, d, 0, gpu.Options{StageSize: 1 << 20}), semaphores(t, 2)
				closed := make(chan error, 1)
				begin := make(chan time.Time, 1)
				s[1].OnReached(1, func(error) {
					begin <- time.Now()
					closed <- dev.Close()
				})
				must(t, submit(dev.Queue(0), d, order(s[0], 1, s[1], 1), allocate(t, dev, 5<<20)))
				must(t, s[0].Signal(1))
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if took := time.Since(<-begin); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if left := d.Leaks(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		})
	}
}

// TestStuck checks that Close returns in bounded time although work does not end. That work, parked
// work, and another device's work that waits for either must fail.
func TestStuck(t *testing.T) {
	t.Run("B85 Close ends in bounded time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := simdriver.New(simdriver.Config{Devices: 2, Kernels: simKernels})
			defer d.Kill() // ends the stalled stream
			dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			s := semaphores(t, 4)
			a, b := allocate(t, dev, 64), allocate(t, other, 64)
			d.StallDevice(0)
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s[0], 1)}, gpu.Fill(a.All(), []byte{1})))
			must(t, dev.Queue(0).Submit(order(s[3], 1, s[1], 1), gpu.Fill(a.All(), []byte{1})))
			must(t, other.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[1], Value: 1}, {Semaphore: s[0], Value: 1}}, Signal: pts(s[2], 1)}, gpu.Fill(b.All(), []byte{1})))
			got := make(chan error, 1)
			go func() { got <- s[0].Wait(context.Background(), 1) }()
			start := time.Now()
			dev.Close()
			if took := time.Since(start); took > 11*time.Second {
				t.Errorf("Close took %v", took)
			}
			if err := <-got; !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("the waiter got %v", err)
			}
			for i := range 3 {
				if err := s[i].Wait(context.Background(), 1); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("semaphore %d: %v", i, err)
				}
			}
			d.LoseDevice(0, nil)
			d.ResumeDevice(0)
			other.Close()
		})
	})
}

// TestBusyStreams closes a lost device while the driver returns ErrBusy for its streams. Close must
// try again until the streams are destroyed. The work of the lost device uses another device's
// memory. That memory must be kept until the streams are destroyed.
func TestBusyStreams(t *testing.T) {
	onEach(t, 2, func(t *testing.T, sim *simdriver.Driver, _ driver.Caps) {
		d := &busyStreams{Driver: sim}
		other := openDevice(t, d, 1, gpu.Options{})
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), semaphores(t, 1)[0]
		b, err := other.Alloc(gpu.HostMem, 64) // memory that all devices can use
		must(t, err)
		sim.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		inFlight(t, dev, 1)
		sim.LoseDevice(0, nil)
		if err := s.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		must(t, b.Close())
		d.streams.Store(3)
		d.asked = func() {
			if calls(sim, 1, simdriver.OpFree) > 0 {
				t.Error("memory is freed while a stream may use it")
			}
		}
		must(t, dev.Close())
		synctest.Wait()
		if calls(sim, 1, simdriver.OpFree) != 1 {
			t.Error("the memory is not freed")
		}
		d.asked = nil
		must(t, other.Close())
		if left := sim.Leaks(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestRecordBehindEnd closes a lost device while a submission of another device is being issued.
// The submission waits for work of a third device and of the lost device. Once the lost device's
// streams are being destroyed, the submission must record no event in them.
func TestRecordBehindEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, simdriver.Config{Devices: 3})
		d := &busyStreams{Driver: sim}
		var devs [3]*gpu.Device
		for i := range devs {
			devs[i] = openDevice(t, d, i, gpu.Options{})
		}
		s := semaphores(t, 3)
		sim.StallDevice(0)
		for i := range 2 {
			var st *gpu.Stream
			st, s[i] = lazily(devs[i].Queue(0))
			several(t, st, allocate(t, devs[i], 64), 1)
		}
		of := [2]driver.Stream{sim.Streams(0)[0], sim.Streams(1)[0]}
		held, submitted := make(chan struct{}), make(chan struct{})
		var destroys atomic.Bool
		d.record = func(s driver.Stream) {
			switch {
			case s == of[1]:
				<-held
			case s == of[0] && destroys.Load():
				t.Error("an event is recorded in a stream that is being destroyed")
			}
		}
		b := allocate(t, devs[2], 64)
		go func() {
			defer close(submitted)
			devs[2].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: s[1], Value: 1}, {Semaphore: s[0], Value: 1}}, Signal: pts(s[2], 1)}, gpu.Fill(b.All(), []byte{1}))
		}()
		synctest.Wait()
		sim.LoseDevice(0, nil)
		// This call finds the loss without a query of an event.
		if _, err := devs[0].Alloc(gpu.DeviceMem, 64); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Alloc = %v", err)
		}
		d.asked = func() {
			if destroys.CompareAndSwap(false, true) {
				close(held)
				<-submitted
			}
		}
		devs[0].Close()
		if err := s[2].Wait(minute(t), 1); !destroys.Load() || !errors.Is(err, driver.ErrLost) {
			t.Errorf("work that waits for the lost device: %v", err)
		}
	})
}

// TestShutdownTold checks that Shutdown returns as soon as the last awaited work ends, not at the
// next poll.
func TestShutdownTold(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, dev, other *gpu.Device, s *gpu.Semaphore){
		"a host call": func(t *testing.T, dev, _ *gpu.Device, s *gpu.Semaphore) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.HostCall(func() error { time.Sleep(time.Minute); return nil })))
		},
		"work in flight": func(t *testing.T, dev, _ *gpu.Device, s *gpu.Semaphore) {
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		},
		"a barrier after another device's work": func(t *testing.T, dev, other *gpu.Device, s *gpu.Semaphore) {
			first := semaphores(t, 1)[0]
			must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(first, 1)}, gpu.Fill(allocate(t, other, 64).All(), []byte{1})))
			must(t, dev.Queue(0).Submit(order(first, 1, s, 1), gpu.Barrier()))
		},
		"another device's work, which uses memory of this one": func(t *testing.T, dev, other *gpu.Device, s *gpu.Semaphore) {
			b, err := dev.Alloc(gpu.HostMem, 64)
			must(t, err)
			must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
				dev, other, s := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), semaphores(t, 1)[0]
				d.SetLatency(simdriver.OpFill, time.Minute)
				begin(t, dev, other, s)
				synctest.Wait()
				if now, err := s.Query(); now != 0 || err != nil {
					t.Fatalf("it has ended before: %d, %v", now, err)
				}
				ended := make(chan time.Time, 1)
				go func() {
					if err := s.Wait(in(t, time.Hour), 1); err != nil {
						t.Error(err)
					}
					ended <- time.Now()
				}()
				must(t, dev.Shutdown(in(t, time.Hour)))
				if late := time.Since(<-ended); late != 0 {
					t.Errorf("it returns %v later", late)
				}
			})
		})
	}
}

// TestShutdownWhileLent closes a device while work of another device still reads the closed
// device's memory. The memory must not be freed, and the error must say that other devices' work
// still uses it.
func TestShutdownWhileLent(t *testing.T) {
	onEachLeaky(t, func(t *testing.T, d *simdriver.Driver) {
		dev, other, s := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{}), semaphores(t, 1)[0]
		b, err := dev.Alloc(gpu.HostMem, 64)
		must(t, err)
		d.SetLatency(simdriver.OpCopy, time.Minute)
		must(t, other.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Copy(allocate(t, other, 64).All(), b.All())))
		inFlight(t, other, 1)
		start := time.Now()
		err = dev.Shutdown(in(t, time.Second))
		of, ok := errors.AsType[*gpu.CloseError](err)
		if !ok || of.Submissions != 0 || of.Calls != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, driver.ErrBusy) ||
			!strings.Contains(err.Error(), "other devices' work") {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		must(t, b.Close())
		synctest.Wait()
		if n := calls(d, 0, simdriver.OpFree); n != 0 {
			t.Errorf("%d frees while work of the other device reads the memory", n)
		}
		must(t, s.Wait(in(t, time.Hour), 1))
		must(t, other.Close())
	})
}

// A busyStreams is a driver that returns ErrBusy for some calls of DestroyStream.
type busyStreams struct {
	*simdriver.Driver
	streams atomic.Int32        // number of calls of DestroyStream that still return ErrBusy
	asked   func()              // called first whenever a stream is to be destroyed
	record  func(driver.Stream) // called before an event is recorded in the stream
}

type busyStreamsDevice struct {
	driver.Device
	driver.Pools
	d *busyStreams
}

func (d *busyStreams) Open(i int) (driver.Device, error) {
	v, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &busyStreamsDevice{v, v.(driver.Pools), d}, nil
}

// Caps returns only the features that the wrapper has.
func (v *busyStreamsDevice) Caps() driver.Caps {
	c := v.Device.Caps()
	return driver.Caps{Pools: c.Pools, RerecordEvents: c.RerecordEvents}
}

func (v *busyStreamsDevice) Record(e driver.Event, s driver.Stream) error {
	if v.d.record != nil {
		v.d.record(s)
	}
	return v.Device.Record(e, s)
}

func (v *busyStreamsDevice) DestroyStream(s driver.Stream) error {
	if v.d.asked != nil {
		v.d.asked()
	}
	if v.d.streams.Add(-1) >= 0 {
		return driver.ErrBusy
	}
	return v.Device.DestroyStream(s)
}
