package simdriver_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestLaunchAttrs checks that kernels see the attributes of their launches, in streams and in
// graphs.
func TestLaunchAttrs(t *testing.T) {
	type seen struct {
		cluster [3]uint32
		attrs   driver.LaunchAttrs
	}
	var got []seen
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"k":    func(g *simdriver.Grid) { got = append(got, seen{g.Cluster, g.Attrs}) },
		"pair": func(g *simdriver.Grid) { got = append(got, seen{g.Cluster, g.Attrs}) },
	})})
	v := vs[0]
	s := stream(t, v)
	m := must(v.Load([]byte(".visible .entry k() {}\n.visible .entry pair() .reqnctapercluster 2, 1, 1 {}\n")))(t)
	k, info, err := v.Function(m, "k")
	check(t, err)
	pair, _, err := v.Function(m, "pair")
	check(t, err)
	if info.MaxCluster != 16 {
		t.Errorf("clusters of at most %d blocks", info.MaxCluster)
	}
	alone := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		f     driver.Function
		attrs driver.LaunchAttrs
		want  [3]uint32
	}{
		{k, driver.LaunchAttrs{}, alone},
		{pair, driver.LaunchAttrs{}, [3]uint32{2, 1, 1}},
		{pair, driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, [3]uint32{2, 1, 1}},
		{k, driver.LaunchAttrs{Cluster: [3]uint32{4, 2, 2}}, [3]uint32{4, 2, 2}},
		{k, driver.LaunchAttrs{Cooperative: true}, alone},
		{k, driver.LaunchAttrs{Dependent: true, Priority: -9, Carveout: 100}, alone},
		{k, driver.LaunchAttrs{Carveout: -1}, alone},
	} {
		l := driver.Launch{Function: c.f, Grid: [3]uint32{8, 4, 2}, Block: [3]uint32{32, 1, 1}, Attrs: c.attrs}
		got = nil
		check(t, v.Launch(s, &l))
		check(t, drain(t, v, s))
		g := graph(t, v)
		n := node(t, v, g, driver.NodeOp{Kind: driver.KernelNode, Launch: l})
		x := instantiate(t, v, g)
		l.Grid = [3]uint32{16, 4, 2}
		check(t, graphs(v).SetNode(x, n, &driver.NodeOp{Kind: driver.KernelNode, Launch: l}))
		check(t, graphs(v).LaunchGraph(s, x))
		check(t, drain(t, v, s))
		launched := seen{c.want, c.attrs}
		inGraph := launched
		inGraph.attrs.Priority = 0
		if len(got) != 2 || got[0] != launched || got[1] != inGraph {
			t.Errorf("%+v: the kernel sees %+v", c.attrs, got)
		}
		l.Attrs.Priority++
		refused(t, graphs(v).SetNode(x, n, &driver.NodeOp{Kind: driver.KernelNode, Launch: l}), simdriver.ErrInvalidValue, "attributes")
	}
}

// TestLaunchAttrsRefused tests invalid attributes, and devices that lack attributes.
func TestLaunchAttrsRefused(t *testing.T) {
	config := func(off func(*driver.Caps)) simdriver.Config {
		caps := simdriver.CUDACaps()
		off(&caps)
		return simdriver.Config{Caps: &caps, Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}, "pair": func(*simdriver.Grid) {}})}
	}
	const code = ".visible .entry k() {}\n.visible .entry pair() .reqnctapercluster 2, 1, 1 {}\n"
	for _, c := range []struct {
		off    func(*driver.Caps)
		kernel string
		attrs  driver.LaunchAttrs
		err    error
		says   string
		inNode bool // only a graph node is refused
	}{
		{off: func(c *driver.Caps) { c.Cooperative = false }, attrs: driver.LaunchAttrs{Cooperative: true}, err: driver.ErrUnsupported, says: "a cooperative launch"},
		{off: func(c *driver.Caps) { c.Clusters = false }, attrs: driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, err: driver.ErrUnsupported, says: "clusters of [2 1 1] blocks"},
		{off: func(c *driver.Caps) { c.DependentLaunch = false }, attrs: driver.LaunchAttrs{Dependent: true}, err: driver.ErrUnsupported, says: "a dependent launch"},
		{off: func(c *driver.Caps) { c.NodeAttrs = false }, attrs: driver.LaunchAttrs{Cooperative: true}, err: driver.ErrUnsupported, says: "a node with", inNode: true},
		{off: func(c *driver.Caps) { c.NodeAttrs = false }, attrs: driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, err: driver.ErrUnsupported, says: "a node with", inNode: true},
		{attrs: driver.LaunchAttrs{Cluster: [3]uint32{3, 1, 1}}, err: simdriver.ErrInvalidValue, says: "a grid of [32 16 1] blocks is no multiple of clusters of [3 1 1]"},
		{attrs: driver.LaunchAttrs{Cluster: [3]uint32{3, 0, 0}}, err: simdriver.ErrInvalidValue, says: "a grid of [32 16 1] blocks is no multiple of clusters of [3 0 0]"},
		{attrs: driver.LaunchAttrs{Cluster: [3]uint32{8, 4, 1}}, err: simdriver.ErrInvalidValue, says: "more than 16"},
		{attrs: driver.LaunchAttrs{Cluster: [3]uint32{4, 1, 1}}, kernel: "pair", err: simdriver.ErrInvalidValue, says: "the kernel has clusters of [2 1 1]"},
		{attrs: driver.LaunchAttrs{Carveout: 101}, err: simdriver.ErrInvalidValue, says: "101 percent"},
		{attrs: driver.LaunchAttrs{Cooperative: true}, err: simdriver.ErrInvalidValue, says: "a cooperative grid of 512 blocks, but only 128 can run concurrently"},
	} {
		if c.off == nil {
			c.off = func(*driver.Caps) {}
		}
		if c.kernel == "" {
			c.kernel = "k"
		}
		d, vs := open(t, config(c.off))
		v := vs[0]
		f, _, err := v.Function(must(v.Load([]byte(code)))(t), c.kernel)
		check(t, err)
		l := driver.Launch{Function: f, Grid: [3]uint32{32, 16, 1}, Block: [3]uint32{256, 1, 1}, Attrs: c.attrs}
		if c.inNode {
			l.Grid[1] = 1
		}
		err = v.Launch(stream(t, v), &l)
		if c.inNode {
			check(t, err)
		} else {
			refused(t, err, c.err, c.says)
		}
		_, err = graphs(v).AddNode(graph(t, v), nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: l})
		refused(t, err, c.err, c.says)
		if d.Counters().Devices[0].Calls[simdriver.OpLaunch] != 1 {
			t.Errorf("%+v: the launch is not counted", c.attrs)
		}
	}
}

// TestLaunchEvents checks that the event of a launch is complete when the stream reaches the
// kernel. Work that waits for the event runs concurrently with the kernel.
func TestLaunchEvents(t *testing.T) {
	begun, end := make(chan bool), make(chan bool)
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) { begun <- true; <-end }})})
	v := vs[0]
	f, s, other, e, mem := function(t, v, "k"), stream(t, v), stream(t, v), event(t, v), alloc(t, v, driver.DeviceMem, 4)
	l := &driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Begun: e}
	reached := func() bool { t.Helper(); return must(v.Query(e))(t) }
	for range 3 {
		d.StallDevice(0)
		check(t, v.Launch(s, l))
		check(t, v.StreamWait(other, e))
		if reached() {
			t.Error("the event is complete though nothing begins")
		}
		d.ResumeDevice(0)
		check(t, v.Fill(other, mem.Ptr, 1, 4, 1))
		check(t, drain(t, v, other))
		if <-begun; !reached() {
			t.Error("the kernel has begun, and the event is not complete")
		}
		check(t, v.Record(e, s)) // Record works with the event too
		if reached() {
			t.Error("an event after the kernel is complete while the kernel runs")
		}
		end <- true
		check(t, drain(t, v, s))
	}

	timer := must(v.(driver.Timers).NewTimer())(t)
	shared := must(v.(driver.IPCEvents).NewIPCEvent())(t)
	for what, c := range map[string]struct {
		e   driver.Event
		err error
	}{
		"none that there is":       {5, simdriver.ErrInvalidHandle},
		"one of another device":    {event(t, vs[1]), simdriver.ErrInvalidHandle},
		"one that notes times":     {timer, simdriver.ErrInvalidValue},
		"one of several processes": {shared, simdriver.ErrInvalidValue},
	} {
		l.Begun = c.e
		if err := v.Launch(s, l); !errors.Is(err, c.err) {
			t.Errorf("event %s: %v", what, err)
		}
	}
	check(t, v.DestroyEvent(timer))
	check(t, v.DestroyEvent(shared))
	l.Begun = e
	_, err := graphs(v).AddNode(graph(t, v), nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: *l})
	refused(t, err, driver.ErrUnsupported, "a node with an event")
	check(t, v.(driver.Capturer).BeginCapture(other))
	if err := v.Launch(other, l); err == nil {
		t.Error("a launch with an event is captured")
	}
	if g, err := v.(driver.Capturer).EndCapture(other); g != 0 || err == nil {
		t.Errorf("graph %#x, %v, though an operation cannot be captured", g, err)
	}

	caps := simdriver.CUDACaps()
	caps.LaunchEvents = false
	_, none := open(t, simdriver.Config{Caps: &caps, Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}})})
	l.Function, l.Begun = function(t, none[0], "k"), event(t, none[0])
	refused(t, none[0].Launch(stream(t, none[0]), l), driver.ErrUnsupported, "an event when it has begun")
}

func TestPriorities(t *testing.T) {
	var got []int
	d, vs := open(t, simdriver.Config{OnExecute: func(x simdriver.Executed) { got = append(got, x.Priority) }})
	v := vs[0].(driver.Priorities)
	m := alloc(t, vs[0], driver.DeviceMem, 4)
	for _, priority := range []int{0, -1, -5, -6, 3} {
		s, err := v.NewPriorityStream(priority)
		check(t, err)
		check(t, vs[0].Fill(s, m.Ptr, 0, 4, 1))
		check(t, drain(t, vs[0], s))
		want := min(max(priority, -5), 0)
		if len(got) == 0 || got[0] != want {
			t.Errorf("work in a stream of priority %d: %v", priority, got)
		}
		check(t, vs[0].DestroyStream(s))
		got = nil
	}
	d.Inject(simdriver.Fault{Op: simdriver.OpNewStream, N: 1, Err: errTest})
	_, err := v.NewPriorityStream(0)
	refused(t, err, errTest)
	_, none := open(t, simdriver.Config{Caps: &driver.Caps{}})
	_, err = none[0].(driver.Priorities).NewPriorityStream(0)
	refused(t, err, driver.ErrUnsupported)
}

// TestManyParams tests kernels with the maximum number of parameter bytes, and kernels with more.
func TestManyParams(t *testing.T) {
	var got [4095]uint64
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"most": func(_ *simdriver.Grid, a [4095]uint64, _ uint32) { got = a },
		"more": func(_ *simdriver.Grid, a [4095]uint64, _ uint32, _ uint8) {},
	})})
	v := vs[0]
	f, s := function(t, v, "most"), stream(t, v)
	var a [4095]uint64
	for i := range a {
		a[i] = uint64(i) << 32
	}
	var last uint32
	check(t, v.Launch(s, &driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&a), unsafe.Pointer(&last)}}))
	check(t, drain(t, v, s))
	if got != a {
		t.Error("the kernel sees another argument of 32,760 bytes")
	}
	_, _, err := v.Function(must(v.Load(simdriver.Image("more")))(t), "more")
	refused(t, err, simdriver.ErrInvalidValue, "parameters of 32765 bytes")
	if !strings.Contains(err.Error(), "more than 32764") {
		t.Error(err)
	}
}
