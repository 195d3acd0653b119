package trace_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// TestTraceCalls counts the events that are recorded for a submission and the queries for their
// times. If the stream has earlier work, one event suffices: the event behind the submission, which
// also exists without a tracer. If the stream must wait or was idle, a second event is recorded in
// front of the submission. Each event's time is queried once.
func TestTraceCalls(t *testing.T) {
	const n = 1000
	for _, x := range []struct {
		name                   string
		wait, fill             bool
		queues                 int
		off, on, none, elapsed float64 // for each submission: events recorded without a tracer, with a tracer, and with NoTimes; queries for times
	}{
		{name: "fills ahead", fill: true, queues: 1, off: 1, none: 1, on: 1, elapsed: 1},
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
						o.Tracer = newTracer(t, trace.TracerOptions{Times: trace.NoTimes})
					case "times":
						o.Tracer = newTracer(t, trace.TracerOptions{})
					}
					d, dev, sleep := sleeper(t, bothCaps()["cuda"], o)
					b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
					must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: uint64(time.Second)})))
					calls := func() map[simdriver.Op]uint64 { return d.Counters().Calls }
					before := calls()
					for i := range uint64(n) {
						q, o := dev.Queue(int(i)%x.queues), gpu.Order{Wait: pts(s, i+1), Signal: pts(s, i+2)}
						if x.fill {
							must(t, q.Submit(o, gpu.Fill(b.All(), []byte{1})))
						} else {
							must(t, q.Submit(o, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: 1000})))
						}
						if x.wait {
							must(t, s.Wait(context.Background(), i+2))
						}
					}
					must(t, s.Wait(context.Background(), n+1))
					// The averages may be slightly off: the refiller may be late for one of the
					// first submissions, and comparing the clocks takes some queries.
					within := func(what string, got uint64, want float64) {
						t.Helper()
						if each := float64(got) / n; each < want-0.01 || each > want+0.01 {
							t.Errorf("%v %s a submission, and not %v", each, what, want)
						}
					}
					within("records", calls()[simdriver.OpRecord]-before[simdriver.OpRecord], want)
					if o.Tracer != nil {
						list := submissions(taken(o.Tracer.(*trace.Tracer)))
						if len(list) != n+1 {
							t.Errorf("%d records of %d submissions", len(list), n+1)
						}
						for _, r := range list {
							if timed := r.Timed == trace.DeviceTime; timed != (level == "times") {
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

// TestTraceIdle checks the times of launches that find their stream busy or idle, while the host
// does not poll for the end of the earlier launches. No launch may begin before it was issued.
func TestTraceIdle(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, trace.TracerOptions{})
				d, dev, sleep := sleeper(t, caps, gpu.Options{Tracer: tracer})
				s := semaphores(t, 1)[0]
				records := d.Counters().Calls[simdriver.OpRecord]
				var at []time.Duration
				pauses := []time.Duration{0, time.Microsecond, 5 * time.Microsecond, 9 * time.Microsecond, 50 * time.Microsecond, time.Second}
				for i, pause := range pauses {
					time.Sleep(pause)
					at = append(at, time.Since(tracer.Start()))
					must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s, uint64(i)), Signal: pts(s, uint64(i)+1)}, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: 3000})))
				}
				must(t, s.Wait(context.Background(), uint64(len(pauses))))
				if n := d.Counters().Calls[simdriver.OpRecord] - records; n != uint64(len(pauses))+3 {
					t.Errorf("%d events were recorded; want one behind each submission, and one in front of the first and of each that the stream had to wait for", n)
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
					if r.Timed != trace.DeviceTime || r.Begun < r.Issued || r.Ended > r.Done || r.Within > 10*time.Microsecond {
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

// TestTraceClockLate completes work before the clocks have been compared. The work's records must
// come after the comparison, with device times. If the clocks can never be compared, the records
// must come without device times.
func TestTraceClockLate(t *testing.T) {
	for _, ever := range []bool{true, false} {
		d := newSim(t, simdriver.Config{})
		tracer := newTracer(t, trace.TracerOptions{})
		d.Inject(simdriver.Fault{Op: simdriver.OpNewTimer, Device: simdriver.AnyDevice, N: 1}) // the clock's event
		dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
		// Later attempts fail too.
		no := d.Inject(simdriver.Fault{Op: simdriver.OpNewTimer, Device: simdriver.AnyDevice})
		b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
		for i := range uint64(10) {
			must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{byte(i)})))
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
			if r.Untimed == ever || (r.Timed == trace.DeviceTime) != ever {
				t.Errorf("%+v", r)
			}
		}
		if len(list) != 10 {
			t.Errorf("%d records of 10 submissions", len(list))
		}
		must(t, dev.Close())
	}
}

// TestTraceClockWide compares the clocks with an error of about a millisecond. All work must have
// device times, which must be right within their margin.
func TestTraceClockWide(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				tracer := newTracer(t, trace.TracerOptions{})
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
					must(t, dev.Queue(0).Submit(gpu.Order{Wait: pts(s, i), Signal: pts(s, i+1)}, gpu.Fill(b.All(), []byte{byte(i)})))
				}
				must(t, s.Wait(minute(t), 10))
				must(t, b.Close())
				must(t, dev.Close())
				list := submissions(taken(tracer))
				for _, r := range list {
					if r.Timed != trace.DeviceTime || (r.Begun-at).Abs() > r.Within || (r.Ended-at-took).Abs() > r.Within || r.Within < time.Millisecond || r.Ended-r.Begun != took {
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

// TestTraceClockGivenUp checks that Close of a device succeeds after a comparison of the clocks was
// given up while the comparison's event was pending.
func TestTraceClockGivenUp(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newSim(t, simdriver.Config{Caps: &caps})
				d.SetLatency(simdriver.OpRecord, 100*time.Millisecond)
				must(t, openDevice(t, d, 0, gpu.Options{Tracer: newTracer(t, trace.TracerOptions{})}).Close())
			})
		})
	}
}

// TestTraceRefused makes the driver refuse work. The event in front of that work must not be
// recorded again until the stream has passed the event, because HIP does not allow a pending event
// to be recorded again.
func TestTraceRefused(t *testing.T) {
	for kind, caps := range bothCaps() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, trace.TracerOptions{})
				d, dev, sleep := sleeper(t, caps, gpu.Options{Tracer: tracer})
				s, refused := semaphores(t, 1)[0], semaphores(t, 1)[0]
				submit := func(o gpu.Order) {
					must(t, dev.Queue(0).Submit(o, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: uint64(time.Millisecond)})))
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
					tracer.Take(nil) // queries the event in front of the refused work
				}
				must(t, s.Wait(context.Background(), n+1))
				list := submissions(taken(tracer))
				if len(list) != n+2 {
					t.Errorf("%d records of %d submissions", len(list), n+2)
				}
				for _, r := range list {
					if timed := r.Timed == trace.DeviceTime && r.Ended-r.Begun == time.Millisecond; r.Untimed || timed != (r.Err == nil) {
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

// fillAfter returns a function for gpu.Native that sleeps, fills a byte, and sleeps again.
func fillAfter(before, after time.Duration) func(gpu.NativeCall) error {
	return func(n gpu.NativeCall) error {
		time.Sleep(before)
		defer time.Sleep(after)
		return n.Device.Fill(n.Stream, n.Ptrs[0], 1, 1, 1)
	}
}

// TestTraceNativeTimes checks the times of native functions. While such a function runs and the
// stream has no other work, it is unknown whether the device works. That time is in Early, not
// between Begun and Ended. While the stream has other work, the times are exact.
func TestTraceNativeTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, times := range []trace.Times{trace.SubmissionTimes, trace.CommandTimes} {
		for _, x := range []struct {
			name                 string
			front, before, after time.Duration // front: the earlier work; before, after: sleeps around the fill of 1 ms
			took, early          time.Duration
		}{
			{"before", 0, 50 * ms, 0, ms, 50 * ms},
			{"behind", 0, 0, 50 * ms, 0, 50 * ms},
			{"both", 0, 50 * ms, 50 * ms, 0, 100 * ms},
			{"work in front", 200 * ms, 50 * ms, 50 * ms, ms, 0},
			{"some work in front", 20 * ms, 50 * ms, 0, ms, 30 * ms},
		} {
			t.Run(x.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tracer := newTracer(t, trace.TracerOptions{Times: times})
					d, dev, sleep := sleeper(t, bothCaps()["cuda"], gpu.Options{Tracer: tracer})
					d.SetLatency(simdriver.OpFill, ms)
					b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
					c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.StreamMode})
					must(t, err)
					_, err = c.Add(gpu.Native("", fillAfter(x.before, x.after), b.All()))
					must(t, err)
					must(t, c.End())
					value := uint64(0)
					for _, submit := range []func(o gpu.Order) error{
						func(o gpu.Order) error {
							return dev.Queue(0).Submit(o, gpu.Native("", fillAfter(x.before, x.after), b.All()))
						},
						func(o gpu.Order) error { return dev.Queue(0).Submit(o, gpu.Execute(c)) },
					} {
						if x.front > 0 {
							must(t, dev.Queue(0).Submit(gpu.Order{}, sleep.Launch(gpu.GridFor(1, 1), sleepArgs{Nanoseconds: uint64(x.front)})))
						}
						value++
						must(t, submit(gpu.Order{Signal: pts(s, value)}))
						must(t, s.Wait(context.Background(), value))
					}
					must(t, c.Close())
					must(t, dev.Close())
					n := 0
					for _, r := range taken(tracer) {
						if r.Kind != trace.KindCommand && (r.Kind != trace.KindSubmission || r.Kernel != "") {
							continue
						}
						n++
						if took := r.Ended - r.Begun; r.Timed != trace.DeviceTime || (took-x.took).Abs() > r.Within || (r.Early-x.early).Abs() > r.Within || r.Within > ms/2 {
							t.Errorf("%v %s: it took %v, and began up to %v earlier, within %v; want %v and %v", r.Kind, r.Op, took, r.Early, r.Within, x.took, x.early)
						}
						if r.Begun-r.Early < r.Issued-r.Within {
							t.Errorf("%v %s: it may have begun at %v, before it was issued at %v", r.Kind, r.Op, r.Begun-r.Early, r.Issued)
						}
					}
					if want := 2 + int(times); n != want { // CommandTimes is 1
						t.Errorf("%d records, and not %d", n, want)
					}
				})
			})
		}
	}
}

// TestTraceNativeCommand checks the times of a recording with a copy and a native function. While
// the function runs on the host, only the copy's own times show how long the device was busy.
func TestTraceNativeCommand(t *testing.T) {
	const ms = time.Millisecond
	for _, front := range []time.Duration{ms, 20 * ms, 200 * ms} {
		for _, times := range []trace.Times{trace.SubmissionTimes, trace.CommandTimes} {
			t.Run(front.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tracer := newTracer(t, trace.TracerOptions{Times: times})
					d, dev, _ := sleeper(t, bothCaps()["cuda"], gpu.Options{Tracer: tracer})
					d.SetLatency(simdriver.OpFill, ms)
					d.SetLatency(simdriver.OpCopy, front)
					b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
					c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.StreamMode})
					must(t, err)
					first, err := c.Add(gpu.Copy(b.Range(0, 8), b.Range(8, 8)))
					must(t, err)
					_, err = c.Add(gpu.Native("", fillAfter(50*ms, 0), b.All()), first)
					must(t, err)
					must(t, c.End())
					must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
					must(t, s.Wait(context.Background(), 1))
					must(t, c.Close())
					must(t, dev.Close())
					records := taken(tracer)
					r := submissions(records)[0]
					known := 0 * ms // time before Begun in which the device certainly ran commands
					for _, x := range records {
						if x.Kind == trace.KindCommand {
							if x.Begun < r.Begun && x.Ended > r.Begun || x.Begun < r.Begun-r.Early || x.Ended > r.Ended {
								t.Errorf("a command from %v to %v of an execution from %v, or %v earlier, to %v", x.Begun, x.Ended, r.Begun, r.Early, r.Ended)
							}
							if x.Ended <= r.Begun {
								known += x.Ended - x.Begun
							}
						}
					}
					want := ms + max(front-50*ms, 0)
					if times == trace.CommandTimes {
						want = front + ms
					}
					if got := known + r.Ended - r.Begun; (got-want).Abs() > 3*r.Within || (r.Ended-(r.Begun-r.Early)-max(50*ms, front)-ms).Abs() > 3*r.Within || r.Within > ms/10 {
						t.Errorf("the device was at it for %v, want %v: %+v", got, want, r)
					}
				})
			})
		}
	}
}

// A slowCalls is a driver whose Fill and Record take the host some time, as if another thread held
// a lock in the driver.
type slowCalls struct {
	driver.Driver
	fill, record atomic.Int64 // nanoseconds
}

func (d *slowCalls) Open(i int) (driver.Device, error) {
	dev, err := d.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return &slowDevice{dev, dev.(driver.Timers), d}, nil
}

type slowDevice struct {
	driver.Device
	driver.Timers
	d *slowCalls
}

func (v *slowDevice) Fill(s driver.Stream, dst driver.Ptr, pattern uint32, width int, count uint64) error {
	time.Sleep(time.Duration(v.d.fill.Load()))
	return v.Device.Fill(s, dst, pattern, width, count)
}

func (v *slowDevice) Record(e driver.Event, s driver.Stream) error {
	time.Sleep(time.Duration(v.d.record.Load()))
	return v.Device.Record(e, s)
}

// TestTraceSlowHost checks the durations of fills that a slow host issues. All durations must be
// right within their margins. In the cases whose field exact is true, the durations must be exact.
func TestTraceSlowHost(t *testing.T) {
	const n, us, slow, took = 16, time.Microsecond, 30 * time.Microsecond, 10 * time.Microsecond
	for _, x := range []struct {
		name         string
		fill, record time.Duration // duration of host calls
		front        time.Duration // duration of the earlier work
		early        time.Duration // upper limit of Early; the lower limit is early - took
		exact        bool
	}{
		{name: "a fast host", exact: true},
		{name: "slow fills", fill: slow, early: slow, exact: true},
		{name: "fills that are a little slow", fill: 5 * us},
		{name: "slow events", record: slow},
		{name: "a slow host and work in front", fill: slow, record: slow, front: 100 * time.Millisecond, exact: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer := newTracer(t, trace.TracerOptions{Times: trace.CommandTimes})
				sim := newSim(t, simdriver.Config{Latency: map[simdriver.Op]time.Duration{simdriver.OpFill: took, simdriver.OpCopy: x.front}})
				d := &slowCalls{Driver: sim}
				dev := openDevice(t, d, 0, gpu.Options{Tracer: tracer})
				b, s := allocate(t, dev, 64), semaphores(t, 1)[0]
				c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.StreamMode})
				must(t, err)
				for range n {
					_, err := c.Add(gpu.Fill(b.All(), []byte{1}))
					must(t, err)
				}
				must(t, c.End())
				tracer.Take(nil) // compares the clocks
				d.fill.Store(int64(x.fill))
				d.record.Store(int64(x.record))
				q := dev.Queue(0)
				front := func() {
					if x.front > 0 {
						must(t, q.Submit(gpu.Order{}, gpu.Copy(b.Range(0, 8), b.Range(8, 8))))
					}
				}
				front()
				must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
				must(t, s.Wait(context.Background(), 1))
				front()
				must(t, q.Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{2})))
				must(t, s.Wait(context.Background(), 2))
				d.fill.Store(0)
				d.record.Store(0)
				must(t, c.Close())
				must(t, dev.Close())
				count := 0
				for _, r := range taken(tracer) {
					if r.Op != "fill" {
						continue
					}
					count++
					is := r.Ended - r.Begun
					if r.Timed != trace.DeviceTime || (is-took).Abs() > r.Within || x.exact && (is-took).Abs() > 10 {
						t.Errorf("%v: it took %v within %v, and not %v", r.Kind, is, r.Within, took)
					}
					if r.Early < x.early-took-10 || r.Early > x.early+10 {
						t.Errorf("%v: it may have begun %v earlier, and not up to %v", r.Kind, r.Early, x.early)
					}
				}
				if count != n+1 {
					t.Errorf("%d records of %d fills", count, n+1)
				}
			})
		})
	}
}
