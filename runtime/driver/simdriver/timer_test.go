package simdriver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func timers(v driver.Device) driver.Timers { return v.(driver.Timers) }

func timer(t testing.TB, v driver.Device) driver.Event {
	t.Helper()
	return must(timers(v).NewTimer())(t)
}

// TestTimer measures in a synctest bubble, where times are exact.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, vs := open(t, simdriver.Config{Latency: map[simdriver.Op]time.Duration{simdriver.OpFill: time.Second}})
		v := vs[0]
		a, b, m := stream(t, v), stream(t, v), alloc(t, v, driver.DeviceMem, 64)
		from, to := timer(t, v), timer(t, v)
		elapsed := func(want time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := must(timers(v).Elapsed(from, to))(t); got != want {
				t.Errorf("elapsed %v, want %v", got, want)
			}
			if got := must(timers(v).Elapsed(to, from))(t); got != -want {
				t.Errorf("backwards it is %v", got)
			}
		}
		check(t, v.Record(from, a))
		for range 3 {
			check(t, v.Fill(a, m.Ptr, 1, 1, 64))
		}
		check(t, v.Record(to, a))
		refused(t, second(timers(v).Elapsed(from, to)), simdriver.ErrNotReady)
		time.Sleep(10 * time.Second)
		elapsed(3 * time.Second)

		// The record that was submitted last counts, even if an earlier one executes later in
		// another stream.
		check(t, d.StallStream(b))
		check(t, v.Fill(b, m.Ptr, 1, 1, 64))
		check(t, v.Record(to, b))
		time.Sleep(5 * time.Second)
		refused(t, second(timers(v).Elapsed(from, to)), simdriver.ErrNotReady)
		check(t, v.Record(to, a))
		elapsed(15 * time.Second)
		check(t, d.ResumeStream(b))
		time.Sleep(5 * time.Second)
		elapsed(15 * time.Second) // the record in b was not submitted last

		// A timer can be waited for and queried like any event.
		check(t, v.Fill(a, m.Ptr, 1, 1, 64))
		check(t, v.Record(from, a))
		check(t, v.StreamWait(b, from))
		check(t, v.Record(to, b))
		for _, e := range []driver.Event{from, to} {
			if done, err := v.Query(e); done || err != nil {
				t.Errorf("done %v, %v", done, err)
			}
		}
		refused(t, v.DestroyEvent(from), simdriver.ErrBusy)
		time.Sleep(2 * time.Second)
		elapsed(0)
		for _, e := range []driver.Event{from, to} {
			if done, err := v.Query(e); !done || err != nil {
				t.Errorf("done %v, %v", done, err)
			}
		}
		if c := d.Counters().Devices[0]; c.Timers != 2 || c.Events != 0 {
			t.Errorf("counters %+v", c)
		}
		check(t, v.DestroyEvent(from))
		refused(t, second(timers(v).Elapsed(from, to)), simdriver.ErrInvalidHandle, "was destroyed")
		v.Close()
	})
}

func TestTimerErrors(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	s := stream(t, v)
	good, never, plain, other := timer(t, v), timer(t, v), record(t, v, s), timer(t, w)
	check(t, v.Record(good, s))
	check(t, w.Record(other, stream(t, w)))
	check(t, wait(t, v, good))
	check(t, wait(t, w, other))
	for say, e := range map[string]driver.Event{
		"never recorded":      never,
		"has no time":         plain,
		"belongs to device 1": other,
		"no such event":       0,
	} {
		refused(t, second(timers(v).Elapsed(good, e)), simdriver.ErrInvalidHandle, say)
		refused(t, second(timers(v).Elapsed(e, good)), simdriver.ErrInvalidHandle, say)
	}
	if got := must(timers(v).Elapsed(good, good))(t); got != 0 {
		t.Errorf("elapsed %v", got)
	}
	d.Inject(simdriver.Fault{Op: simdriver.OpNewTimer, N: 1, OOM: true})
	d.Inject(simdriver.Fault{Op: simdriver.OpElapsed, N: 1, Err: errTest})
	refused(t, second(timers(v).NewTimer()), driver.ErrOutOfMemory)
	refused(t, second(timers(v).Elapsed(good, good)), errTest)
	check(t, d.LoseDevice(0, nil))
	refused(t, second(timers(v).Elapsed(good, good)), driver.ErrLost)
	refused(t, second(timers(v).NewTimer()), driver.ErrLost)
	refused(t, v.DestroyEvent(good), driver.ErrLost)
	refused(t, v.DestroyEvent(good), simdriver.ErrInvalidHandle)

	_, vs = open(t, simdriver.Config{Caps: &driver.Caps{}})
	refused(t, second(timers(vs[0]).NewTimer()), driver.ErrUnsupported)
	refused(t, second(timers(vs[0]).Elapsed(0, 0)), driver.ErrUnsupported)
}
