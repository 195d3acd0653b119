package cudadriver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// TestGPUTraceTimes measures kernels in three ways: by a trace, by a Timing, and by events around
// direct driver calls. For kernels of 5 microseconds to 10 milliseconds the medians agree within 2
// percent or half a microsecond. These kernels are launched behind work in flight, so that none
// waits for the host. The device times of each submission lie within its host times, also for short
// kernels between which the stream may run dry.
func TestGPUTraceTimes(t *testing.T) {
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	tracer, err := trace.NewTracer(trace.TracerOptions{Records: 1 << 16})
	ok(t, err)
	var devs [2]*gpu.Device // one without a tracer, and one with it
	var kernels [2]*gpu.Kernel
	for i, tr := range []*trace.Tracer{nil, tracer} {
		devs[i], err = gpu.Open(drv, 0, gpu.Options{Tracer: tr})
		ok(t, err)
		defer devs[i].Close()
		x, err := devs[i].Load([]byte(gpuPTX))
		ok(t, err)
		kernels[i], err = x.Kernel("spin")
		ok(t, err)
	}
	var e [2]driver.Event
	for i := range e {
		e[i], err = d.NewTimer()
		ok(t, err)
		defer d.DestroyEvent(e[i])
	}
	mod, err := d.Load([]byte(gpuPTX))
	ok(t, err)
	defer d.Unload(mod)
	fn, _, err := d.Function(mod, "spin")
	ok(t, err)
	spin := func(dev int, ns uint64) gpu.Op { return gpu.Launch(kernels[dev], gpu.Grid{}, ns) }
	timing, err := devs[0].NewTiming()
	ok(t, err)
	ctx := context.Background()
	busy := uint64(100_000)
	sem, err := gpu.NewSemaphore(0)
	ok(t, err)
	v := uint64(0)
	behind := func(dev int, op gpu.Op) { // submits op behind work in flight
		q := devs[dev].Queue(0)
		ok(t, q.Submit(gpu.Order{Wait: []gpu.Point{sem.At(v)}, Signal: []gpu.Point{sem.At(v + 1)}}, spin(dev, busy).Label("busy")))
		ok(t, q.Submit(gpu.Order{Wait: []gpu.Point{sem.At(v + 1)}, Signal: []gpu.Point{sem.At(v + 2)}}, op))
		v += 2
		ok(t, sem.Wait(ctx, v))
	}
	for _, took := range []time.Duration{5 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		ns := uint64(took)
		var raw, timed []time.Duration
		label := "spin of " + took.String()
		for range 51 {
			args := []unsafe.Pointer{unsafe.Pointer(&busy)}
			ok(t, devs[0].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{sem.At(v)}, Signal: []gpu.Point{sem.At(v + 1)}}, gpu.Native("", func(n gpu.NativeCall) error {
				l := driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: args}
				if err := n.Device.Launch(n.Stream, &l); err != nil {
					return err
				}
				if err := n.Device.Record(e[0], n.Stream); err != nil {
					return err
				}
				l.Args = []unsafe.Pointer{unsafe.Pointer(&ns)}
				if err := n.Device.Launch(n.Stream, &l); err != nil {
					return err
				}
				return n.Device.Record(e[1], n.Stream)
			})))
			v++
			ok(t, sem.Wait(ctx, v))
			between, err := d.Elapsed(e[0], e[1])
			ok(t, err)
			raw = append(raw, between)
			behind(0, spin(0, ns).Timed(timing))
			between, err = timing.Duration()
			ok(t, err)
			timed = append(timed, between)
			behind(1, spin(1, ns).Label(label))
		}
		var traced, within []time.Duration
		records := make([]trace.Record, 1024)
		for _, r := range records[:tracer.Take(records)] {
			if r.Kind != trace.KindSubmission {
				continue
			}
			if r.Untimed || r.Submitted > r.Issued || r.Issued > r.Begun || r.Begun > r.Ended || r.Ended > r.Done {
				t.Errorf("%s: submitted %v, issued %v, begun %v, ended %v, done %v, without times %v", r.Label, r.Submitted, r.Issued, r.Begun, r.Ended, r.Done, r.Untimed)
			}
			if within = append(within, r.Within); r.Label == label {
				traced = append(traced, r.Ended-r.Begun)
			}
		}
		if len(traced) != 51 {
			t.Fatalf("%d of 51 kernels are in the trace", len(traced))
		}
		for _, list := range [][]time.Duration{raw, timed, traced, within} {
			slices.Sort(list)
		}
		want := raw[25]
		t.Logf("%v: events %v, Timing %v, trace %v, whose times are within %v", took, want, timed[25], traced[25], within[len(within)/2])
		limit := max(want/50, 500*time.Nanosecond)
		for what, got := range map[string]time.Duration{"Timing": timed[25], "the trace": traced[25]} {
			if (got - want).Abs() > limit {
				t.Errorf("%v: %s says %v, and events around the kernel %v", took, what, got, want)
			}
		}
	}
	// Short kernels in sequence, between which the stream may run dry: none begins before the
	// previous one has ended.
	short := uint64(2000)
	for range 1000 {
		ok(t, devs[1].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{sem.At(v)}, Signal: []gpu.Point{sem.At(v + 1)}}, spin(1, short)))
		v++
	}
	ok(t, sem.Wait(ctx, v))
	var took, gaps, within []time.Duration
	records := make([]trace.Record, 2048)
	var last time.Duration
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind != trace.KindSubmission {
			continue
		}
		if r.Untimed || r.Issued > r.Begun || r.Begun > r.Ended || r.Ended > r.Done || r.Begun+r.Within < last {
			t.Errorf("issued %v, begun %v, ended %v, done %v, within %v, without times %v; the previous one ended at %v", r.Issued, r.Begun, r.Ended, r.Done, r.Within, r.Untimed, last)
		}
		took, gaps, within, last = append(took, r.Ended-r.Begun), append(gaps, r.Begun-last), append(within, r.Within), r.Ended
	}
	if len(took) != 1000 {
		t.Fatalf("%d of 1000 kernels are in the trace", len(took))
	}
	for _, list := range [][]time.Duration{took, gaps, within} {
		slices.Sort(list)
	}
	t.Logf("1000 kernels of 2µs one after the other: median %v with %v between them, within %v", took[500], gaps[500], within[500])
	ok(t, timing.Close())
	if stats := tracer.Stats(); stats.Untimed > 0 || stats.Dropped > 0 {
		t.Errorf("%+v", stats)
	}
	t.Logf("%+v", tracer.Stats())
}

// TestGPUTraceHost checks that device times contain no host time. A native function that sleeps
// does not count as work of the device. A command of a recording takes at most twice the time of
// its kernel, plus the reported margin. Rarely the device begins a command late, although it
// already has the command. That delay counts as time of the command.
func TestGPUTraceHost(t *testing.T) {
	d := openGPU(t)
	drv, err := New(d.lib)
	ok(t, err)
	tracer, err := trace.NewTracer(trace.TracerOptions{Records: 1 << 16, Times: trace.CommandTimes})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{Tracer: tracer})
	ok(t, err)
	defer dev.Close()
	x, err := dev.Load([]byte(gpuPTX))
	ok(t, err)
	k, err := x.Kernel("spin")
	ok(t, err)
	mod, err := d.Load([]byte(gpuPTX))
	ok(t, err)
	defer d.Unload(mod)
	fn, _, err := d.Function(mod, "spin")
	ok(t, err)
	ctx, q, v := context.Background(), dev.Queue(0), uint64(0)
	sem, err := gpu.NewSemaphore(0)
	ok(t, err)
	records := make([]trace.Record, 1<<14)
	next := func() gpu.Order {
		v++
		return gpu.Order{Signal: []gpu.Point{sem.At(v)}}
	}

	ns := uint64(time.Millisecond)
	for range 3 { // the first launch also loads the kernel, which must not count as time of the device
		ok(t, q.Submit(next(), gpu.Native("native", func(n gpu.NativeCall) error {
			time.Sleep(50 * time.Millisecond)
			return n.Device.Launch(n.Stream, &driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&ns)}})
		})))
		ok(t, sem.Wait(ctx, v))
	}
	for _, r := range records[:tracer.Take(records)] {
		if took := r.Ended - r.Begun; r.Label == "native" && (r.Timed != trace.DeviceTime || took > 2*time.Millisecond || r.Early < 49*time.Millisecond) {
			t.Errorf("a kernel of 1 ms took %v, and may have begun %v earlier", took, r.Early)
		}
	}

	const steps, n, spin = 60, 16, 10 * time.Microsecond
	ns = uint64(spin)
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	ok(t, err)
	for range n {
		_, err := c.Add(gpu.Launch(k, gpu.Grid{}, ns))
		ok(t, err)
	}
	ok(t, c.End())
	defer c.Close()
	for range steps {
		ok(t, q.Submit(next(), gpu.Execute(c).Label("step")))
		ok(t, sem.Wait(ctx, v))
	}
	var took []time.Duration
	marked, late := 0, 0
	got := records[:tracer.Take(records)]
	for i, r := range got {
		if r.Kind != trace.KindCommand || r.Timed != trace.DeviceTime {
			continue
		}
		is := r.Ended - r.Begun
		took = append(took, is)
		if is <= 2*spin {
			continue
		}
		switch {
		case is-2*spin <= r.Within:
			marked++
		case i+1 < len(got) && got[i+1].Kind == trace.KindCommand && got[i+1].ID == r.ID && got[i+1].Issued < r.Begun-r.Within:
			// The stream already had the kernel, both events and the next command, so the device
			// itself was late.
			late++
		default:
			t.Errorf("a kernel of %v took %v within %v, and may have begun %v earlier", spin, is, r.Within, r.Early)
		}
	}
	if len(took) < steps*n*9/10 {
		t.Fatalf("%d of %d commands have times", len(took), steps*n)
	}
	if late > steps*n/100 {
		t.Errorf("the device was late with %d of %d commands", late, len(took))
	}
	slices.Sort(took)
	t.Logf("%d commands of %v: median %v, longest %v, %d above twice the time within their margins, %d by the device", len(took), spin, took[len(took)/2], took[len(took)-1], marked, late)

	// The same measurement with direct driver calls. The first kernel keeps the device busy until
	// all calls have been made.
	var events [n + 1]driver.Event
	for i := range events {
		events[i], err = d.NewTimer()
		ok(t, err)
		defer d.DestroyEvent(events[i])
	}
	busy := uint64(time.Millisecond)
	own, longest := 0, time.Duration(0)
	for range steps {
		ok(t, q.Submit(next(), gpu.Native("raw", func(n gpu.NativeCall) error {
			for i := range events {
				arg := &ns
				if i == 0 {
					arg = &busy
				}
				l := driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(arg)}}
				if err := errors.Join(n.Device.Launch(n.Stream, &l), n.Device.Record(events[i], n.Stream)); err != nil {
					return err
				}
			}
			return nil
		})))
		ok(t, sem.Wait(ctx, v))
		for i := range n {
			is, err := d.Elapsed(events[i], events[i+1])
			ok(t, err)
			if longest = max(longest, is); is > 2*spin {
				own++
			}
		}
	}
	t.Logf("by events alone, behind work in flight: longest %v, %d above twice the time", longest, own)
}
