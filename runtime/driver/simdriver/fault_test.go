package simdriver_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

var errTest = errors.New("test's own error")

func TestInject(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]

	i := d.Inject(simdriver.Fault{Op: simdriver.OpNewEvent, N: 2, Err: errTest})
	event(t, v)
	event(t, w) // not counted, because it is on another device
	_, err := v.NewEvent()
	refused(t, err, errTest, "new event")
	if errors.Is(err, driver.ErrLost) || i.Hits() != 1 {
		t.Errorf("%v, %d hits", err, i.Hits())
	}
	event(t, v)

	i = d.Inject(simdriver.Fault{Op: simdriver.OpAlloc, Device: simdriver.AnyDevice, OOM: true})
	for _, v := range vs {
		_, err = v.Alloc(driver.HostMem, 4)
		refused(t, err, driver.ErrOutOfMemory)
	}
	i.Remove()
	i.Remove()
	alloc(t, v, driver.HostMem, 4)
	if i.Hits() != 2 {
		t.Errorf("%d hits", i.Hits())
	}

	// If a call matches several faults, the first fault makes the call fail. A fault with N makes
	// only one call fail.
	d.Inject(simdriver.Fault{Device: 1, N: 1})
	d.Inject(simdriver.Fault{Device: 1, N: 1, Err: errTest})
	refused(t, second(w.NewStream()), simdriver.ErrInjected)
	s := stream(t, w)

	// A call that fails still frees the object.
	d.Inject(simdriver.Fault{Op: simdriver.OpDestroyStream, Device: 1, N: 1})
	refused(t, w.DestroyStream(s), simdriver.ErrInjected)
	refused(t, w.DestroyStream(s), simdriver.ErrInvalidHandle)

	d.Inject(simdriver.Fault{Op: simdriver.OpOpen, Device: 1, N: 1})
	d.Inject(simdriver.Fault{Op: simdriver.OpDevices, Device: simdriver.AnyDevice, N: 1})
	refused(t, second(d.Open(1)), simdriver.ErrInjected)
	refused(t, second(d.Devices()), simdriver.ErrInjected)

	d.Inject(simdriver.Fault{Op: simdriver.OpQuery, Device: 1, N: 1, Lost: true, Err: errTest})
	e := event(t, w)
	refused(t, second(w.Query(e)), driver.ErrLost, "test's own error")
	refused(t, second(w.Query(e)), driver.ErrLost, "test's own error")
	check(t, drain(t, v, stream(t, v)))
}

func TestInjectAtExecution(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Devices: 2, Deterministic: deterministic})
		v := vs[0]
		s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
		i := d.Inject(simdriver.Fault{Op: simdriver.OpFill, N: 2, AtExecution: true, Err: errTest})
		check(t, d.StallStream(s))
		check(t, v.Fill(s, m.Ptr, 1, 1, 64))
		first := record(t, v, s)
		check(t, v.Fill(s, m.Ptr, 2, 1, 64))
		pending(t, v, first)
		if i.Hits() != 1 {
			t.Errorf("%d hits", i.Hits())
		}
		check(t, d.ResumeStream(s))
		if deterministic {
			if n := d.Run(); n != 3 {
				t.Errorf("%d operations", n)
			}
		}
		for err := error(nil); ; _, err = v.Query(first) {
			if err != nil {
				refused(t, err, errTest)
				refused(t, err, driver.ErrLost)
				break
			}
		}
		// A fault makes a wait fail even if the event was never recorded.
		w := vs[1]
		d.Inject(simdriver.Fault{Op: simdriver.OpStreamWait, Device: 1, N: 1, AtExecution: true, Err: errTest})
		check(t, w.StreamWait(stream(t, w), event(t, w)))
		d.Run()
		if !deterministic {
			for err := error(nil); err == nil; _, err = w.NewEvent() {
			}
		}
		refused(t, second(w.NewEvent()), errTest)
	}
}

func TestLoseDevice(t *testing.T) {
	ran := make(chan bool, 10)
	release := make(chan bool)
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
		"block": func(*simdriver.Grid) { ran <- true; <-release },
	})})
	v, w := vs[0], vs[1]
	s, f := stream(t, v), function(t, v, "block")
	check(t, launch(v, s, f))
	check(t, launch(v, s, f))
	e := record(t, v, s)
	ws := stream(t, w)
	check(t, w.StreamWait(ws, e))
	we := record(t, w, ws)
	<-ran
	check(t, d.LoseDevice(0, errTest))
	check(t, d.LoseDevice(0, errors.New("another error"))) // the device keeps its first error
	close(release)
	refused(t, second(v.Query(e)), errTest)
	_, err := v.Query(e)
	refused(t, err, driver.ErrLost)
	refused(t, v.Bind(), driver.ErrLost)
	refused(t, v.Record(e, s), driver.ErrLost)
	refused(t, launch(v, s, f), driver.ErrLost)
	pending(t, w, we) // a wait for work of the lost device never ends
	if len(ran) != 0 {
		t.Error("the second launch was executed")
	}
	check(t, drain(t, w, stream(t, w)))

	refused(t, v.DestroyStream(s), driver.ErrLost)
	refused(t, v.DestroyEvent(e), driver.ErrLost)
	if c := d.Counters().Devices[0]; c.Streams != 0 || c.Events != 0 {
		t.Errorf("%+v", c)
	}
	check(t, second(d.Open(0))) // opens the lost device again
	refused(t, v.Close(), driver.ErrLost)
	refused(t, second(v.NewEvent()), driver.ErrLost)
}

// TestDestroyStreamOfLost checks that DestroyStream waits for the operation that a stream of a lost
// device is executing. If the operation does not end, the wait is short.
func TestDestroyStreamOfLost(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ran, written := make(chan bool, 1), false
			d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
				"write": func(*simdriver.Grid) { ran <- true; time.Sleep(takes); written = true },
			})})
			v := vs[0]
			s := stream(t, v)
			check(t, launch(v, s, function(t, v, "write")))
			<-ran
			check(t, d.LoseDevice(0, errTest))
			start := time.Now()
			refused(t, v.DestroyStream(s), driver.ErrLost)
			if took := time.Since(start); took > time.Second {
				t.Errorf("destroying a stream with a kernel of %v took %v", takes, took)
			}
			if takes == time.Millisecond && !written {
				t.Error("the kernel has yet to write")
			}
			time.Sleep(takes)
		})
	}
}

func TestStallDevice(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v := vs[0]
	check(t, d.StallDevice(0))
	s := stream(t, v) // new streams of a stalled device are stalled too
	e := record(t, v, s)
	pending(t, v, e)
	check(t, drain(t, vs[1], stream(t, vs[1])))
	check(t, d.StallStream(s))
	check(t, d.ResumeDevice(0))
	pending(t, v, e)
	if hs := d.Streams(0); len(hs) != 1 || hs[0] != s {
		t.Errorf("streams %v", hs)
	}
	check(t, d.ResumeStream(s))
	check(t, wait(t, v, e))
}

// TestLatency checks the latency of operations in a bubble, where time is exact.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, vs := open(t, simdriver.Config{Latency: map[simdriver.Op]time.Duration{
			simdriver.OpFill: time.Second, simdriver.OpAlloc: time.Minute, "no such operation": 1,
		}})
		v := vs[0]
		took := func(want time.Duration, f func()) {
			t.Helper()
			start := time.Now()
			f()
			if d := time.Since(start); d != want {
				t.Errorf("took %v, want %v", d, want)
			}
		}
		s := stream(t, v)
		var m driver.Mem
		took(time.Minute, func() { m = alloc(t, v, driver.DeviceMem, 64) })
		var e driver.Event
		took(0, func() {
			for range 3 {
				check(t, v.Fill(s, m.Ptr, 1, 1, 64))
			}
			e = record(t, v, s)
		})
		done := func(want bool) {
			t.Helper()
			synctest.Wait()
			if done, err := v.Query(e); done != want || err != nil {
				t.Errorf("done %v, %v", done, err)
			}
		}
		time.Sleep(3*time.Second - 1)
		done(false)
		time.Sleep(time.Nanosecond)
		done(true)

		// Operations of another stream take their time concurrently. Setting a latency does not
		// affect an operation that has begun.
		s2 := stream(t, v)
		check(t, v.Fill(s, m.Ptr, 1, 1, 32))
		check(t, v.Fill(s2, m.Ptr+32, 1, 1, 32))
		check(t, v.Record(e, s))
		e2 := record(t, v, s2)
		synctest.Wait()
		d.SetLatency(simdriver.OpFill, -1)
		d.SetLatency(simdriver.OpAlloc, 0)
		check(t, v.Fill(s2, m.Ptr+32, 1, 1, 32))
		time.Sleep(time.Second)
		done(true)
		if done, _ := v.Query(e2); !done {
			t.Error("the streams waited for each other")
		}
		took(0, func() { alloc(t, v, driver.HostMem, 8) })

		// If the device is lost, its operations do not wait for their latency.
		d.SetLatency(simdriver.OpRecord, time.Hour)
		check(t, v.Record(e, s))
		synctest.Wait()
		took(0, func() {
			check(t, d.LoseDevice(0, nil))
			synctest.Wait()
		})
		refused(t, v.Close(), driver.ErrLost)
	})
}

// TestSynctest checks that blocked streams are durably blocked in a synctest bubble. Otherwise
// synctest.Wait would not return.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, vs := open(t, simdriver.Config{Devices: 2})
		v, w := vs[0], vs[1]
		a, b := stream(t, v), stream(t, w)
		m := alloc(t, v, driver.DeviceMem, 64)
		check(t, v.Fill(a, m.Ptr, 1, 1, 64))
		synctest.Wait() // now stream a is idle
		check(t, d.StallStream(a))
		check(t, v.Fill(a, m.Ptr, 2, 1, 64))
		e := record(t, v, a)
		check(t, w.StreamWait(b, e))
		check(t, w.Fill(b, m.Ptr, 3, 1, 32))
		last := record(t, w, b)
		synctest.Wait() // now a is stalled, and b waits for a
		if done, _ := w.Query(last); done {
			t.Error("too early")
		}
		check(t, d.ResumeStream(a))
		synctest.Wait()
		if done, _ := w.Query(last); !done {
			t.Error("not done")
		}
		time.Sleep(time.Hour)
		check(t, w.DestroyStream(b))
		v.Close()
		w.Close()
	})
}

// TestSweep repeats a scenario with a fault in its first call, its second call, and so on. It
// checks that everything can be freed.
func TestSweep(t *testing.T) {
	scenario := func(d *simdriver.Driver) error {
		v, err := d.Open(0)
		if err != nil {
			return err
		}
		var errs []error
		note := func(err error) { errs = append(errs, err) }
		s, err := v.NewStream()
		if note(err); err == nil {
			defer func() { note(v.DestroyStream(s)) }()
		}
		e, err := v.NewEvent()
		if note(err); err == nil {
			defer func() { note(v.DestroyEvent(e)) }()
		}
		m, err := v.Alloc(driver.DeviceMem, 64)
		if note(err); err == nil {
			defer func() { note(v.Free(m)) }()
		}
		p, err := pools(v).NewPool(driver.PoolDesc{})
		if note(err); err == nil {
			defer func() { note(pools(v).DestroyPool(p)) }()
		}
		g, err := graphs(v).NewGraph()
		if note(err); err == nil {
			defer func() { note(graphs(v).DestroyGraph(g)) }()
		}
		x, err := graphs(v).Instantiate(g)
		if note(err); err == nil {
			defer func() { note(graphs(v).DestroyExec(x)) }()
		}
		timer, err := timers(v).NewTimer()
		if note(err); err == nil {
			defer func() { note(v.DestroyEvent(timer)) }()
		}
		if s == 0 || e == 0 || m.Size == 0 || p == 0 || g == 0 || x == 0 || timer == 0 {
			return errors.Join(errs...)
		}
		note(v.Fill(s, m.Ptr, 1, 1, 64))
		async, err := pools(v).AllocAsync(s, p, 64)
		if note(err); err == nil {
			note(pools(v).FreeAsync(s, async))
		}
		note(v.Record(timer, s))
		note(graphs(v).LaunchGraph(s, x))
		note(pools(v).TrimPool(p, 0))
		// If the fault hits Record or Query, the work may not be complete, so call the method again.
		for {
			if err := v.Record(e, s); err == nil || errors.Is(err, driver.ErrLost) {
				break
			}
		}
		for {
			if done, err := v.Query(e); done || errors.Is(err, driver.ErrLost) {
				break
			}
			time.Sleep(10 * time.Microsecond)
		}
		return errors.Join(errs...)
	}
	for _, f := range []simdriver.Fault{{}, {Lost: true}, {AtExecution: true}} {
		for n := uint64(1); ; n++ {
			f.N = n
			d := simdriver.New(simdriver.Config{})
			i := d.Inject(f)
			err := scenario(d)
			i.Remove()
			left := d.Leaks()
			if n == 1 { // the failing call is Open
				if err == nil || len(left) != 0 {
					t.Errorf("call 1 fails: %v, leaks %q", err, left)
				}
				continue
			}
			if len(left) != 1 || left[0] != "device 0 is open" {
				t.Errorf("%+v: leaks %q", f, left)
			}
			v := must(d.Open(0))(t)
			v.Close()
			v.Close()
			if i.Hits() == 0 {
				break
			}
		}
	}
}

// TestLostAgain opens a lost device again after its last Close. The device then works, unless
// StaysLost is set.
func TestLostAgain(t *testing.T) {
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprintf("stays lost %v", stays), func(t *testing.T) {
			d, vs := open(t, simdriver.Config{StaysLost: stays})
			for range 3 {
				v := vs[0]
				other, err := d.Open(0)
				check(t, err)
				m, s := alloc(t, v, driver.DeviceMem, 64), stream(t, v)
				d.Inject(simdriver.Fault{Op: simdriver.OpFill, Device: 0, N: 1, AtExecution: true, Err: errTest})
				check(t, v.Fill(s, m.Ptr, 1, 1, 64))
				for err = nil; err == nil; err = v.Bind() {
					runtime.Gosched()
				}
				refused(t, err, errTest)
				refused(t, v.DestroyStream(s), driver.ErrLost)
				refused(t, v.Free(m), driver.ErrLost)
				refused(t, v.Close(), driver.ErrLost)
				refused(t, second(other.NewEvent()), driver.ErrLost)
				refused(t, other.Close(), driver.ErrLost)
				v, err = d.Open(0)
				check(t, err)
				if stays {
					refused(t, v.Bind(), errTest)
					refused(t, v.Close(), driver.ErrLost)
					return
				}
				check(t, v.Bind())
				s = stream(t, v)
				m = alloc(t, v, driver.DeviceMem, 64)
				check(t, v.Fill(s, m.Ptr, 1, 1, 64))
				e := record(t, v, s)
				check(t, wait(t, v, e))
				check(t, v.DestroyEvent(e))
				check(t, v.DestroyStream(s))
				check(t, v.Free(m))
				vs[0] = v
			}
			check(t, vs[0].Close())
			if left := d.Leaks(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestLeaksOpenedAgain opens a device again that was lost while one of its streams waited for a
// value. Leaks does not look for objects of the lost device, but does after the device was opened
// again.
func TestLeaksOpenedAgain(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	m, s := alloc(t, v, driver.DeviceMem, 64), stream(t, v)
	check(t, v.(driver.Values).WaitValue(s, m.Ptr, 1))
	check(t, d.LoseDevice(0, nil))
	refused(t, v.DestroyStream(s), driver.ErrLost)
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("lost: %q", left)
	}
	refused(t, v.Free(m), driver.ErrLost)
	refused(t, v.Close(), driver.ErrLost)
	v = must(d.Open(0))(t)
	m = alloc(t, v, driver.DeviceMem, 64)
	if left := d.Leaks(); len(left) != 2 || left[0] != "device 0 is open" || !strings.HasPrefix(left[1], "64 bytes of device memory") {
		t.Errorf("open again: %q", left)
	}
	check(t, v.Free(m))
	check(t, v.Close())
	if left := d.Leaks(); len(left) > 0 {
		t.Errorf("closed: %q", left)
	}
}
