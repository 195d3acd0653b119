package gpu_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestTraceCalls: for its times a submission takes one event where the stream has work, which is the one that is behind it anyway if it is not brief, and two where
// the stream has to wait or was idle. The device is asked once about each event.
func TestTraceCalls(t *testing.T) {
	const n = 1000
	for _, x := range []struct {
		name                   string
		wait, fill             bool
		queues                 int
		off, on, none, elapsed float64 // records a submission without a tracer, with one, and with one that notes no times; and how often its times are asked for
	}{
		{name: "fills ahead", fill: true, queues: 1, off: 0.125, none: 0.125, on: 1, elapsed: 1},
		{name: "launches ahead", queues: 1, off: 1, none: 1, on: 1, elapsed: 1},
		{name: "launches across streams", queues: 2, off: 1, none: 1, on: 2, elapsed: 2},
		{name: "launches one at a time", wait: true, queues: 1, off: 1, none: 1, on: 2, elapsed: 2},
	} {
		for level, want := range map[string]float64{"off": x.off, "no times": x.none, "times": x.on} {
			t.Run(x.name+", "+level, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := gpu.Options{Queues: 2, Events: 4 * n}
					switch level {
					case "no times":
						o.Tracer = newTracer(t, gpu.TracerOptions{Times: gpu.NoTimes})
					case "times":
						o.Tracer = newTracer(t, gpu.TracerOptions{})
					}
					d, dev, sleep := sleeper(t, bothCaps()["cuda"], o)
					b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
					must(t, sleep.Dispatch(dev.Queue(0), gpu.Order{Signal: pts(s, 1)}, gpu.GridFor(1, 1), sleepArgs{uint64(time.Second)}))
					calls := func() map[simdriver.Op]uint64 { return d.Counters().Calls }
					before := calls()
					for i := range uint64(n) {
						q, o := dev.Queue(int(i)%x.queues), gpu.Order{Wait: pts(s, i+1), Signal: pts(s, i+2)}
						if x.fill {
							must(t, q.Fill(o, b.All(), []byte{1}))
						} else {
							must(t, sleep.Dispatch(q, o, gpu.GridFor(1, 1), sleepArgs{1000}))
						}
						if x.wait {
							must(t, s.Wait(context.Background(), i+2))
						}
					}
					must(t, s.Wait(context.Background(), n+1))
					// The refiller may have been late for one of the first, and the clock has asked a few times.
					within := func(what string, got uint64, want float64) {
						t.Helper()
						if each := float64(got) / n; each < want-0.01 || each > want+0.01 {
							t.Errorf("%v %s a submission, and not %v", each, what, want)
						}
					}
					within("records", calls()[simdriver.OpRecord]-before[simdriver.OpRecord], want)
					if o.Tracer != nil {
						list := submissions(taken(o.Tracer))
						if len(list) != n+1 {
							t.Errorf("%d records of %d submissions", len(list), n+1)
						}
						for _, r := range list {
							if timed := r.Timed == gpu.DeviceTime; timed != (level == "times") {
								t.Fatalf("%+v", r)
							}
							if took := r.Ended - r.Begun; level == "times" && !x.fill && r.Waits != nil && took != 1000 {
								t.Fatalf("a launch took %v", took)
							}
						}
						asked := 0.0
						if level == "times" {
							asked = x.elapsed
						}
						within("times", calls()[simdriver.OpElapsed]-before[simdriver.OpElapsed], asked)
					}
					must(t, dev.Close())
				})
			})
		}
	}
}

// TestTraceIdle: work has not begun before it was there, though nobody has asked the device since it had done what was in front of it.
func TestTraceIdle(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, gpu.TracerOptions{})
				d, dev, sleep := sleeper(t, caps, gpu.Options{Tracer: tracer})
				s := semaphores(t, 1)[0]
				records := d.Counters().Calls[simdriver.OpRecord]
				var at []time.Duration
				pauses := []time.Duration{0, time.Microsecond, 5 * time.Microsecond, 9 * time.Microsecond, 50 * time.Microsecond, time.Second}
				for i, pause := range pauses {
					time.Sleep(pause)
					at = append(at, time.Since(tracer.Start()))
					must(t, sleep.Dispatch(dev.Queue(0), gpu.Order{Wait: pts(s, uint64(i)), Signal: pts(s, uint64(i)+1)}, gpu.GridFor(1, 1), sleepArgs{3000}))
				}
				must(t, s.Wait(context.Background(), uint64(len(pauses))))
				if n := d.Counters().Calls[simdriver.OpRecord] - records; n != uint64(len(pauses))+3 {
					t.Errorf("%d events were recorded, and not one behind each and one in front of the first and of those that came late", n)
				}
				must(t, dev.Close())
				list := submissions(taken(tracer))
				if len(list) != len(pauses) {
					t.Fatalf("%d records of %d submissions", len(list), len(pauses))
				}
				free := time.Duration(0)
				for i, r := range list {
					begun := max(at[i], free)
					free = begun + 3000
					if r.Timed != gpu.DeviceTime || r.Begun < r.Issued || r.Ended > r.Done || r.Within > 10*time.Microsecond {
						t.Errorf("submission %d: %+v", i, r)
					}
					if (r.Begun-begun).Abs() > r.Within || (r.Ended-free).Abs() > r.Within || (r.Ended-r.Begun-3000).Abs() > time.Microsecond {
						t.Errorf("submission %d: from %v to %v within %v, and it was from %v to %v", i, r.Begun, r.Ended, r.Within, begun, free)
					}
				}
			})
		})
	}
}

// TestTraceClockLate: what was done before the device's clock could be compared with the host's has its times when it has been, and for want of a clock nothing
// waits for ever.
func TestTraceClockLate(t *testing.T) {
	for _, ever := range []bool{true, false} {
		d := newSim(t, simdriver.Config{})
		tracer := newTracer(t, gpu.TracerOptions{})
		d.Inject(simdriver.Fault{Op: simdriver.OpNewTimer, Device: simdriver.AnyDevice, N: 1}) // the clock's
		dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
		no := d.Inject(simdriver.Fault{Op: simdriver.OpNewTimer, Device: simdriver.AnyDevice}) // nor has it one later
		b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
		for i := range uint64(10) {
			must(t, dev.Queue(0).Fill(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, b.All(), []byte{byte(i)}))
		}
		must(t, s.Wait(minute(t), 10))
		list := submissions(taken(tracer))
		if len(list) > 0 {
			t.Errorf("nothing is known of the clock, and there are records of %d submissions", len(list))
		}
		if ever {
			no.Remove()
		}
		for range 20 {
			list = append(list, submissions(taken(tracer))...)
		}
		for _, r := range list {
			if r.Untimed == ever || (r.Timed == gpu.DeviceTime) != ever {
				t.Errorf("%+v", r)
			}
		}
		if len(list) != 10 {
			t.Errorf("%d records of 10 submissions", len(list))
		}
		must(t, dev.Close())
	}
}

// TestTraceClockWide: where the device's clock is known to a millisecond only, times are off by no more than is said, and none is missing.
func TestTraceClockWide(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				tracer := newTracer(t, gpu.TracerOptions{})
				d.SetLatency(simdriver.OpRecord, 2*time.Millisecond)
				d.SetLatency(simdriver.OpQuery, time.Millisecond/10)
				dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
				d.SetLatency(simdriver.OpRecord, 0)
				d.SetLatency(simdriver.OpQuery, 0)
				const took = 20 * time.Microsecond
				d.SetLatency(simdriver.OpFill, took)
				b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
				at := time.Since(tracer.Start())
				for i := range uint64(10) {
					must(t, dev.Queue(0).Fill(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, b.All(), []byte{byte(i)}))
				}
				must(t, s.Wait(minute(t), 10))
				must(t, b.Close())
				must(t, dev.Close())
				list := submissions(taken(tracer))
				for _, r := range list {
					if r.Timed != gpu.DeviceTime || (r.Begun-at).Abs() > r.Within || (r.Ended-at-took).Abs() > r.Within || r.Within < time.Millisecond || r.Ended-r.Begun != took {
						t.Errorf("at %v: %+v", at, r)
					}
					at += took
				}
				if len(list) != 10 {
					t.Errorf("%d records of 10 submissions", len(list))
				}
			})
		})
	}
}

// TestTraceClockGivenUp: the device is closed when the clock's stream has passed the event that it was asked about in vain.
func TestTraceClockGivenUp(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				d.SetLatency(simdriver.OpRecord, 100*time.Millisecond)
				must(t, openDevice(t, d, 0, gpu.Options{Tracer: newTracer(t, gpu.TracerOptions{})}).Close())
			})
		})
	}
}

// TestTraceRefused: where the driver refuses work, the event in front of that is not recorded anew while the stream has it, which HIP does not let be done.
func TestTraceRefused(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, gpu.TracerOptions{})
				d, dev, sleep := sleeper(t, caps, gpu.Options{Tracer: tracer})
				s, refused := semaphores(t, 1)[0], semaphores(t, 1)[0]
				submit := func(o gpu.Order) {
					must(t, sleep.Dispatch(dev.Queue(0), o, gpu.GridFor(1, 1), sleepArgs{uint64(time.Millisecond)}))
				}
				submit(gpu.Order{Signal: pts(s, 1)})
				time.Sleep(50 * time.Microsecond)
				d.Inject(simdriver.Fault{Op: simdriver.OpLaunch, Device: simdriver.AnyDevice, N: 1})
				submit(gpu.Order{Signal: pts(refused, 1)})
				if err := refused.Wait(context.Background(), 1); !errors.Is(err, simdriver.ErrInjected) {
					t.Errorf("%v", err)
				}
				const n = 8
				for i := range uint64(n) {
					time.Sleep(50 * time.Microsecond)
					submit(gpu.Order{Wait: pts(s, i+1), Signal: pts(s, i+2)})
					tracer.Take(nil) // which asks whether the stream has passed that event
				}
				must(t, s.Wait(context.Background(), n+1))
				list := submissions(taken(tracer))
				if len(list) != n+2 {
					t.Errorf("%d records of %d submissions", len(list), n+2)
				}
				for _, r := range list {
					if timed := r.Timed == gpu.DeviceTime && r.Ended-r.Begun == time.Millisecond; r.Untimed || timed != (r.Err == nil) {
						t.Errorf("%+v", r)
					}
				}
				if e := dev.Stats().Events; e.Free != e.Held {
					t.Errorf("events are in use for nothing: %+v", e)
				}
				must(t, dev.Close())
			})
		})
	}
}
