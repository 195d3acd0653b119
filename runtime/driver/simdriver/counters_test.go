package simdriver_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestCounters(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v := vs[1]
	s, e := stream(t, v), event(t, v)
	check(t, d.StallStream(s))
	m := alloc(t, v, driver.DeviceMem, 100)
	h := alloc(t, v, driver.HostMem, 200)
	for range 3 {
		check(t, v.Fill(s, m.Ptr, 0, 1, 1))
	}
	b := make([]byte, 8)
	must(v.Register(unsafe.Pointer(&b[0]), 8))(t)
	must(v.Load(simdriver.Image("k", "x=8")))(t)

	c := d.Counters()
	dc := c.Devices[1]
	if dc.Calls[simdriver.OpFill] != 3 || c.Calls[simdriver.OpFill] != 3 || c.Calls[simdriver.OpOpen] != 2 || c.Calls[simdriver.OpDevices] != 1 {
		t.Errorf("calls %v", c.Calls)
	}
	if _, ok := c.Calls[simdriver.OpLaunch]; ok {
		t.Error("a call that was not made is counted")
	}
	if c.Total != 12 || d.Calls() != 12 || dc.Total != 10 {
		t.Errorf("total %d, %d, %d", c.Total, d.Calls(), dc.Total)
	}
	dc.Calls = nil
	want := simdriver.DeviceCounters{Total: 10, Pending: 3, Streams: 1, Events: 1, Modules: 1, Allocations: 2, Bytes: 108, HostBytes: 200, Registered: 8}
	if !equal(dc, want) {
		t.Errorf("%+v, want %+v", dc, want)
	}
	leaks := strings.Join(d.Leaks(), "\n")
	for _, say := range []string{"stream 0x", "event 0x", "100 bytes of device memory", "200 bytes of host memory", "registration of 8 bytes", "module", "device 0 is open", "of device 1"} {
		if !strings.Contains(leaks, say) {
			t.Errorf("Leaks does not say %q:\n%s", say, leaks)
		}
	}
	if len(d.Leaks()) != 8 {
		t.Errorf("leaks:\n%s", leaks)
	}
	check(t, d.ResumeStream(s))
	check(t, drain(t, v, s))
	check(t, v.DestroyStream(s))
	check(t, v.DestroyEvent(e))
	check(t, v.Free(m))
	check(t, v.Free(h))
	if dc := d.Counters().Devices[1]; dc.Executed < 3 || dc.Pending != 0 || dc.Streams != 0 || dc.Allocations != 0 {
		t.Errorf("%+v", dc)
	}
}

func equal(a, b simdriver.DeviceCounters) bool {
	a.Calls, b.Calls = nil, nil
	return a.Total == b.Total && a.Executed == b.Executed && a.Pending == b.Pending && a.Streams == b.Streams && a.Events == b.Events &&
		a.Modules == b.Modules && a.Allocations == b.Allocations && a.Bytes == b.Bytes && a.HostBytes == b.HostBytes && a.Registered == b.Registered
}

func TestOnExecute(t *testing.T) {
	var mu sync.Mutex
	var got []simdriver.Executed
	_, vs := open(t, simdriver.Config{
		Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}}),
		OnExecute: func(e simdriver.Executed) {
			mu.Lock()
			got = append(got, e)
			mu.Unlock()
		},
	})
	v := vs[0]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 8)
	check(t, v.Fill(s, m.Ptr, 0, 1, 1))
	check(t, launch(v, s, function(t, v, "k")))
	check(t, drain(t, v, s))
	want := []simdriver.Executed{
		{Stream: s, Seq: 1, Op: simdriver.OpFill},
		{Stream: s, Seq: 2, Op: simdriver.OpLaunch, Kernel: "k"},
		{Stream: s, Seq: 3, Op: simdriver.OpRecord},
	}
	mu.Lock()
	if !slices.Equal(got, want) {
		t.Errorf("executed %v", got)
	}
	mu.Unlock()
	e := event(t, v) // must be made before the fill loses the device
	check(t, v.Fill(s, 0, 0, 1, 1))
	v.Record(e, s) // fails if the device is already lost
	refused(t, wait(t, v, e), driver.ErrLost)
	mu.Lock()
	defer mu.Unlock()
	if len(got) < 4 || got[3].Err == nil {
		t.Errorf("executed %v", got)
	}
}

// TestLeaks checks that Leaks names pools, graphs and timers too.
func TestLeaks(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	v := must(d.Open(0))(t)
	s, p, g := stream(t, v), pool(t, v, 0), graph(t, v)
	basic := must(pools(v).DefaultPool())(t)
	x, e := instantiate(t, v, g), timer(t, v)
	a, b := allocAsync(t, v, s, p, 100), allocAsync(t, v, s, basic, 200)
	gone := allocAsync(t, v, s, basic, 300)
	check(t, pools(v).FreeAsync(s, gone))
	c := d.Counters().Devices[0]
	if c.Pools != 1 || c.PoolAllocations != 2 || c.Graphs != 1 || c.Execs != 1 || c.Timers != 1 || c.Events != 0 || c.Reserved != 128*kib ||
		c.Calls[simdriver.OpAllocAsync] != 3 || c.Calls[simdriver.OpInstantiate] != 1 {
		t.Errorf("counters %+v", c)
	}
	say := []string{"pool 0x", "100 bytes of pool memory", "200 bytes of pool memory", "graph 0x", "exec 0x", "timer 0x", "stream 0x"}
	leaks := strings.Join(d.Leaks(), ", ")
	for _, s := range say {
		if strings.Count(leaks, s) != 1 {
			t.Errorf("Leaks does not say %q once: %s", s, leaks)
		}
	}
	refused(t, v.Close(), simdriver.ErrBusy, say...)
	if leaks := d.Leaks(); len(leaks) != len(say) {
		t.Errorf("leaks %q", leaks)
	}
	c = d.Counters().Devices[0]
	if c.Pools+c.PoolAllocations+c.Graphs+c.Execs+c.Timers+c.Streams != 0 || c.Reserved+c.Used != 0 {
		t.Errorf("counters %+v", c)
	}
	v = must(d.Open(0))(t)
	for _, err := range []error{
		pools(v).FreeAsync(s, a), graphs(v).DestroyExec(x), v.DestroyEvent(e), pools(v).DestroyPool(p), graphs(v).DestroyGraph(g),
	} {
		refused(t, err, simdriver.ErrInvalidHandle)
	}
	refused(t, pools(v).FreeAsync(stream(t, v), b), simdriver.ErrInvalidValue)
	v.Close()
}

// TestNoGarbage checks that submitting, executing and waiting do not allocate after the first
// rounds.
func TestNoGarbage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
		"add": func(g *simdriver.Grid, p driver.Ptr, n int32) {
			if x, err := simdriver.View[int32](g, p, 4); err == nil {
				x[0] += n
			}
		},
	})})
	v, w := vs[0], vs[1]
	a, b := stream(t, v), stream(t, w)
	ea, eb := event(t, v), event(t, w)
	m, h := alloc(t, v, driver.DeviceMem, 1024), alloc(t, v, driver.HostMem, 1024)
	n := int32(1)
	l := driver.Launch{Function: function(t, v, "add"), Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1},
		Args: []unsafe.Pointer{unsafe.Pointer(&m.Ptr), unsafe.Pointer(&n)}}
	burst := func() {
		for range 300 {
			v.Fill(a, m.Ptr, 1, 4, 16)
			v.Launch(a, &l)
			v.Record(ea, a)
			w.StreamWait(b, ea)
			w.Upload(b, m.Ptr, h.Host, 64)
			w.Copy(b, m.Ptr+64, m.Ptr, 64)
			w.Download(b, h.Host, m.Ptr, 64)
			w.Record(eb, b)
			v.StreamWait(a, eb)
		}
		if wait(t, w, eb) != nil {
			t.Error("lost")
		}
	}
	check(t, d.StallStream(a)) // the queues of stalled streams grow to their final size
	for range 300 {
		v.Launch(a, &l)
		for range 9 {
			v.Fill(a, m.Ptr, 1, 4, 16)
			w.Fill(b, m.Ptr, 1, 4, 0)
		}
	}
	check(t, d.ResumeStream(a))
	check(t, drain(t, v, a))
	check(t, drain(t, w, b))
	burst()
	if n := testing.AllocsPerRun(20, burst); n >= 1 {
		t.Errorf("%v allocations for 2,700 calls", n)
	}
}

// TestNoGarbageCollect checks that collectives do not allocate after the first rounds.
func TestNoGarbageCollect(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	x := newCluster(t, 2, simdriver.Config{})
	ms := x.numbers(t, 16)
	var ends [2]driver.Event
	var ops [2][]driver.CommOp
	for i, v := range x.vs {
		ends[i] = event(t, v)
		ops[i] = []driver.CommOp{sum(ms[i]), transfer(driver.Send, ms[i], 1, 1-i), transfer(driver.Recv, ms[i], 2, 1-i)}
	}
	end := func() {
		for i, v := range x.vs {
			v.Record(ends[i], x.ss[i])
			if wait(t, v, ends[i]) != nil {
				t.Error("lost")
			}
		}
	}
	run := func() {
		for range 50 {
			for i := range x.vs {
				x.collect(i, ops[i]...)
				x.collect(i, ops[i][:1]...)
			}
		}
		end()
	}
	check(t, x.d.StallDevice(0)) // queues and groups grow to their final size while the device is stalled
	for range 4 * 50 {
		for i := range x.vs {
			x.collect(i, ops[i]...)
		}
	}
	check(t, x.d.ResumeDevice(0))
	end() // wait until all groups are free, so that the next rounds reuse them
	run()
	if n := testing.AllocsPerRun(20, run); n >= 1 {
		t.Errorf("%v allocations for 200 groups", n)
	}
}

// TestNoGarbageAsync checks that allocations in stream order and graph launches do not allocate
// after the first rounds.
func TestNoGarbageAsync(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"add": func(g *simdriver.Grid, p driver.Ptr, n int32) {
			if x, err := simdriver.View[int32](g, p, 4); err == nil {
				x[0] += n
			}
		},
	})})
	v := vs[0]
	a, b, p := stream(t, v), stream(t, v), pool(t, v, 0)
	ea, eb := event(t, v), event(t, v)
	m, m2 := alloc(t, v, driver.DeviceMem, 64), alloc(t, v, driver.DeviceMem, 64)
	f, g := function(t, v, "add"), graph(t, v)
	from, to := timer(t, v), timer(t, v)
	first := node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: from})
	var row []driver.Node
	for _, m := range []driver.Mem{m, m2} {
		row = append(row, node(t, v, g, kernelOp(f, unsafe.Pointer(&m.Ptr), ptr(1)), node(t, v, g, fillOp(m.Ptr, 1, 64), first)))
	}
	op := kernelOp(f, unsafe.Pointer(&m.Ptr), ptr(2))
	last := node(t, v, g, copyOp(m.Ptr, m2.Ptr, 64), row...)
	node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: to}, last)
	x := instantiate(t, v, g)
	bursts := map[string]func(){
		"pool": func() {
			for range 50 {
				one, _ := pools(v).AllocAsync(a, p, 1000)
				two, _ := pools(v).AllocAsync(a, p, 5000)
				v.Fill(a, one.Ptr, 1, 4, 16)
				pools(v).FreeAsync(a, two)
				v.Record(ea, a)
				v.StreamWait(b, ea)
				v.Fill(b, one.Ptr, 1, 4, 16)
				three, _ := pools(v).AllocAsync(b, p, 2000)
				pools(v).FreeAsync(b, one)
				pools(v).FreeAsync(b, three)
				v.Record(eb, b)
				v.StreamWait(a, eb)
			}
		},
		"graph": func() {
			for i := range 50 {
				if graphs(v).SetNode(x, row[0], &op) != nil {
					t.Error("the node was not set")
				}
				graphs(v).LaunchGraph([]driver.Stream{a, b}[i%2], x)
			}
			v.Record(ea, a)
			v.StreamWait(b, ea)
			v.Record(eb, b)
		},
	}
	for name, burst := range bursts {
		run := func() {
			burst()
			if wait(t, v, eb) != nil {
				t.Error("lost")
			}
		}
		check(t, d.StallDevice(0)) // queues and pools grow to their final size while the device is stalled
		for range 4 {
			burst()
		}
		check(t, d.ResumeDevice(0))
		check(t, wait(t, v, eb))
		run()
		if n := testing.AllocsPerRun(20, run); n >= 1 {
			t.Errorf("%s: %v allocations for a burst", name, n)
		}
	}
	// Windows' clock may not have advanced between the two timers.
	if got := must(timers(v).Elapsed(from, to))(t); got < 0 || got == 0 && runtime.GOOS != "windows" {
		t.Errorf("elapsed %v", got)
	}
}
