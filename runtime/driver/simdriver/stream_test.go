package simdriver_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestOrder executes more operations than a chunk of the queue holds, and empties the queue in
// between.
func TestOrder(t *testing.T) {
	var got []uint32
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"note": func(g *simdriver.Grid, i uint32) { got = append(got, i) },
	})})
	v := vs[0]
	s, f := stream(t, v), function(t, v, "note")
	var want []uint32
	for i := range uint32(1000) {
		check(t, launch(v, s, f, unsafe.Pointer(&i)))
		want = append(want, i)
		if i%300 == 7 {
			check(t, drain(t, v, s))
		}
	}
	check(t, drain(t, v, s))
	if !slices.Equal(got, want) {
		t.Errorf("executed %d", got)
	}
}

// TestConcurrent checks that kernels on two devices and three streams run concurrently.
func TestConcurrent(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	_, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
		"meet": func(g *simdriver.Grid) { all.Done(); all.Wait() },
	})})
	for i, v := range []driver.Device{vs[0], vs[0], vs[1]} {
		s := stream(t, v)
		check(t, launch(v, s, function(t, v, "meet")))
		if i == 2 {
			check(t, drain(t, v, s))
		}
	}
}

func TestEventIsAPosition(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	if done, err := v.Query(event(t, v)); !done || err != nil {
		t.Fatalf("an event that was never recorded: %v, %v", done, err)
	}
	before := record(t, v, s)
	check(t, wait(t, v, before)) // now all work is complete
	check(t, d.StallStream(s))
	check(t, v.Fill(s, m.Ptr, 1, 1, 64))
	after := record(t, v, s)
	pending(t, v, after)
	check(t, wait(t, v, before))
	// Query is about the last record.
	check(t, v.Record(before, s))
	pending(t, v, before)
	check(t, d.ResumeStream(s))
	check(t, wait(t, v, after))
	check(t, wait(t, v, before))

	check(t, d.StallStream(s))
	pending(t, v, record(t, v, s)) // the record is pending, although no work is before it
	check(t, d.ResumeStream(s))
}

// TestStreamWait makes a stream of each device wait for a stream of the first device.
func TestStreamWait(t *testing.T) {
	for _, other := range []int{0, 1} {
		d, vs := open(t, simdriver.Config{Devices: 2})
		a, b := vs[0], vs[other]
		sa, sb := stream(t, a), stream(t, b)
		m := alloc(t, a, driver.DeviceMem, 64)

		check(t, b.StreamWait(sb, event(t, a))) // never recorded, so there is nothing to wait for
		check(t, drain(t, b, sb))

		check(t, d.StallStream(sa))
		check(t, a.Fill(sa, m.Ptr, 1, 1, 64))
		e := record(t, a, sa)
		check(t, b.StreamWait(sb, e))
		// The wait is for this record, even if the event is recorded again or destroyed.
		late := stream(t, a)
		check(t, d.StallStream(late))
		check(t, a.Record(e, late))
		after := record(t, b, sb)
		pending(t, b, after)
		check(t, d.ResumeStream(sa))
		check(t, wait(t, b, after))
		pending(t, a, e)
		check(t, d.ResumeStream(late))
		check(t, wait(t, a, e))
	}
}

// TestManyWaiters makes streams wait for several positions of one stream.
func TestManyWaiters(t *testing.T) {
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	src, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	check(t, d.StallStream(src))
	var ends []driver.Event
	for range 50 {
		check(t, v.Fill(src, m.Ptr, 1, 1, 64))
		e := record(t, v, src)
		s := stream(t, v)
		check(t, v.StreamWait(s, e))
		ends = append(ends, record(t, v, s))
	}
	for _, e := range ends {
		if done, err := v.Query(e); done || err != nil {
			t.Fatalf("complete too early: %v", err)
		}
	}
	check(t, d.ResumeStream(src))
	for _, e := range ends {
		check(t, wait(t, v, e))
	}
}

func TestRerecord(t *testing.T) {
	for _, c := range []struct {
		name string
		caps driver.Caps
		ok   bool
	}{{"cuda", simdriver.CUDACaps(), true}, {"hip", simdriver.HIPCaps(), false}} {
		t.Run(c.name, func(t *testing.T) {
			d, vs := open(t, simdriver.Config{Caps: &c.caps})
			v := vs[0]
			a, b := stream(t, v), stream(t, v)
			e := record(t, v, a)
			check(t, v.Record(e, a)) // allowed: the previous record is complete, and nothing waits for that record
			check(t, d.StallStream(a))
			check(t, v.Record(e, a))
			err := v.Record(e, a)
			if c.ok {
				check(t, err)
			} else {
				refused(t, err, simdriver.ErrBusy, "its last record is pending")
			}
			check(t, v.StreamWait(b, e))
			err = v.Record(e, a)
			if c.ok {
				check(t, err)
			} else {
				refused(t, err, simdriver.ErrBusy, "1 waits")
			}
			refused(t, v.DestroyEvent(e), simdriver.ErrBusy)
			check(t, d.ResumeStream(a))
			check(t, drain(t, v, b))
			check(t, v.Record(e, a))
			check(t, wait(t, v, e))
			check(t, v.DestroyEvent(e))
		})
	}
}

func TestHandles(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	s, e, m := stream(t, v), event(t, v), alloc(t, v, driver.DeviceMem, 64)
	for name, err := range map[string]error{
		"record on another device's stream": v.Record(e, stream(t, w)),
		"record another device's event":     v.Record(event(t, w), s),
		"query another device's event":      second(w.Query(e)),
		"another device's stream":           w.Fill(s, m.Ptr, 0, 1, 1),
		"destroy another device's stream":   w.DestroyStream(s),
		"destroy another device's event":    w.DestroyEvent(e),
		"unload nothing":                    v.Unload(0),
		"no stream":                         v.Fill(0, m.Ptr, 0, 1, 1),
		"no event":                          v.StreamWait(s, 12345),
		"no function":                       v.Launch(s, &driver.Launch{}),
	} {
		t.Run(name, func(t *testing.T) { refused(t, err, simdriver.ErrInvalidHandle) })
	}
	check(t, v.DestroyStream(s))
	check(t, v.DestroyEvent(e))
	// New objects must not get the handles of destroyed ones.
	for range 2000 {
		s2, e2 := stream(t, v), event(t, v)
		if s2 == s || e2 == e {
			t.Fatal("a handle was used again")
		}
		check(t, v.DestroyStream(s2))
		check(t, v.DestroyEvent(e2))
	}
	refused(t, v.DestroyStream(s), simdriver.ErrInvalidHandle, "destroyed")
	refused(t, v.Record(e, s), simdriver.ErrInvalidHandle)
	if err := d.StallStream(s); err == nil {
		t.Error("a destroyed stream was stalled")
	}
}

func second[T any](_ T, err error) error { return err }

func TestDestroyBusyStream(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 3})
	v, w := vs[0], vs[1]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	check(t, d.StallStream(s))
	check(t, v.Fill(s, m.Ptr, 0, 1, 1))
	refused(t, v.DestroyStream(s), simdriver.ErrBusy, "1 operations")

	// If a stream waits for work of a lost device, directly or through other streams, the stream's
	// work will not execute, and the stream can be destroyed.
	e := record(t, v, s)
	first, next := stream(t, w), stream(t, w)
	check(t, w.StreamWait(first, e))
	ef := record(t, w, first)
	check(t, w.StreamWait(next, ef))
	pending(t, w, record(t, w, next))
	refused(t, w.DestroyStream(next), simdriver.ErrBusy)

	// Waits of next will not execute, so they do not keep an event from being destroyed. Waits of
	// other streams do.
	x, y := stream(t, vs[2]), stream(t, vs[2])
	check(t, d.StallStream(x))
	ex, ey := record(t, vs[2], x), record(t, vs[2], x)
	check(t, w.StreamWait(next, ex))
	check(t, w.StreamWait(next, ex))
	check(t, w.StreamWait(next, ey))
	check(t, vs[2].StreamWait(y, ey))
	refused(t, vs[2].DestroyEvent(ex), simdriver.ErrBusy, "2 waits")
	check(t, d.LoseDevice(0, nil))
	check(t, vs[2].DestroyEvent(ex))
	refused(t, vs[2].DestroyEvent(ey), simdriver.ErrBusy, "1 waits")
	check(t, d.ResumeStream(x))
	check(t, drain(t, vs[2], y))
	check(t, vs[2].DestroyEvent(ey))
	check(t, w.DestroyStream(first))
	check(t, w.DestroyStream(next))
	check(t, w.DestroyEvent(ef))
	refused(t, v.DestroyStream(s), driver.ErrLost)
	refused(t, v.DestroyEvent(e), driver.ErrLost)
}

func TestCloseDestroysAndSays(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	v := must(d.Open(0))(t)
	again := must(d.Open(0))(t)
	s, e, m := stream(t, v), event(t, again), alloc(t, v, driver.DeviceMem, 100)
	must(v.Load(simdriver.Image("x=64")))(t)
	check(t, d.StallDevice(0))
	check(t, v.Fill(s, m.Ptr, 0, 1, 1))
	check(t, v.Record(e, s))
	check(t, again.Close()) // the device was opened twice, so it stays open
	if len(d.Leaks()) != 5 {
		t.Errorf("leaks %q", d.Leaks())
	}
	refused(t, v.Close(), simdriver.ErrBusy, "stream", "event", "module", "100 bytes of device memory")
	refused(t, v.Close(), simdriver.ErrClosed)
	refused(t, v.Fill(s, m.Ptr, 0, 1, 1), simdriver.ErrClosed)
	if len(d.Leaks()) != 4 { // the four objects that Close destroyed; the closed device is no leak
		t.Errorf("leaks %q", d.Leaks())
	}
	c := d.Counters().Devices[0]
	if c.Streams+c.Events+c.Modules+c.Allocations != 0 || c.Bytes != 0 {
		t.Errorf("counters %+v", c)
	}
	v = must(d.Open(0))(t)
	check(t, d.ResumeDevice(0))
	s = stream(t, v)
	check(t, drain(t, v, s))
	check(t, v.DestroyStream(s))
}

func TestOpen(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: -1})
	if infos, err := d.Devices(); len(infos) != 0 || err != nil {
		t.Errorf("devices %v, %v", infos, err)
	}
	if d.Name() != "sim" {
		t.Errorf("name %q", d.Name())
	}
	d = simdriver.New(simdriver.Config{Devices: 3, Memory: 1 << 20})
	infos, _ := d.Devices()
	for i, info := range infos {
		if info.Index != i || info.Memory != 1<<20 || info.Arch != "sim" || info.UUID == infos[(i+1)%3].UUID {
			t.Errorf("device %d: %+v", i, info)
		}
	}
	for _, i := range []int{-1, 3} {
		_, err := d.Open(i)
		refused(t, err, simdriver.ErrInvalidValue)
		if d.LoseDevice(i, nil) == nil || d.StallDevice(i) == nil || d.ResumeDevice(i) == nil {
			t.Errorf("device %d exists", i)
		}
	}
}

// TestManySubmitters submits from several goroutines to the same streams and events, while other
// goroutines query the driver.
func TestManySubmitters(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	a, b, ea, eb := stream(t, v), stream(t, w), event(t, v), event(t, w)
	m := alloc(t, v, driver.DeviceMem, 64)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 500 {
				err := errors.Join(
					v.Fill(a, m.Ptr, 1, 4, 8),
					v.Record(ea, a),
					w.StreamWait(b, ea),
					w.Copy(b, m.Ptr+32, m.Ptr+32, 0),
					w.Record(eb, b),
					v.StreamWait(a, eb),
					second(v.Query(ea)),
				)
				if j%50 == i {
					d.Counters()
					d.Leaks()
					d.StallStream(a)
					d.Streams(0)
					d.ResumeStream(a)
					d.Inject(simdriver.Fault{Op: simdriver.OpLoad}).Remove()
				}
				if j%100 == i {
					s, err2 := v.NewStream()
					err = errors.Join(err, err2, v.StreamWait(s, eb), drain(t, v, s), v.DestroyStream(s))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	check(t, drain(t, v, a))
	check(t, drain(t, w, b))
	if n := d.Counters().Devices[0].Calls[simdriver.OpFill]; n != 2000 {
		t.Errorf("%d fills", n)
	}
}
