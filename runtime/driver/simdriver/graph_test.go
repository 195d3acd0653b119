package simdriver_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func graphs(v driver.Device) driver.Graphs { return v.(driver.Graphs) }

func graph(t testing.TB, v driver.Device) driver.Graph {
	t.Helper()
	return must(graphs(v).NewGraph())(t)
}

func node(t testing.TB, v driver.Device, g driver.Graph, op driver.NodeOp, after ...driver.Node) driver.Node {
	t.Helper()
	return must(graphs(v).AddNode(g, after, &op))(t)
}

func instantiate(t testing.TB, v driver.Device, g driver.Graph) driver.Exec {
	t.Helper()
	return must(graphs(v).Instantiate(g))(t)
}

// kernelOp is a node that launches a kernel with one thread.
func kernelOp(f driver.Function, args ...unsafe.Pointer) driver.NodeOp {
	return driver.NodeOp{Kind: driver.KernelNode,
		Launch: driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: args}}
}

func fillOp(dst driver.Ptr, pattern byte, n uint64) driver.NodeOp {
	return driver.NodeOp{Kind: driver.FillNode, Dst: dst, Pattern: uint32(pattern), Width: 1, Count: n}
}

func copyOp(dst, src driver.Ptr, n uint64) driver.NodeOp {
	return driver.NodeOp{Kind: driver.CopyNode, Dst: dst, Src: src, Count: n}
}

// TestGraph runs a graph with nodes of all kinds except tests and conditional nodes.
func TestGraph(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: kernels(map[string]any{
			"add": func(g *simdriver.Grid, p driver.Ptr, n uint8) error {
				b, err := simdriver.View[byte](g, p, 8)
				for i := range b {
					b[i] += n
				}
				return err
			},
		})})
		v := vs[0]
		s, m, h := stream(t, v), alloc(t, v, driver.DeviceMem, 8), alloc(t, v, driver.HostMem, 32)
		f, from, to := function(t, v, "add"), timer(t, v), timer(t, v)

		child := graph(t, v)
		one := uint8(1)
		a := node(t, v, child, kernelOp(f, unsafe.Pointer(&m.Ptr), unsafe.Pointer(&one)))
		one = 100 // AddNode has read the argument
		a = node(t, v, child, driver.NodeOp{Kind: driver.EmptyNode}, a)
		node(t, v, child, kernelOp(f, unsafe.Pointer(&m.Ptr), ptr(1)), a)

		g := graph(t, v)
		n := node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: from})
		n = node(t, v, g, fillOp(m.Ptr, 'a', 8), n)
		n = node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: child}, n)
		n = node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: graph(t, v)}, n)
		n = node(t, v, g, copyOp(h.Ptr, m.Ptr, 8), n)
		for i, op := range []driver.NodeOp{
			{Dst: h.Ptr + 8, Pattern: 0x4241, Width: 2, Count: 2},
			{Dst: h.Ptr + 12, Pattern: 0x44434241, Width: 4, Count: 1, Stride: 4},
			{Dst: h.Ptr + 16, Pattern: 'x', Width: 1, Count: 3, Stride: 3},
			{Dst: h.Ptr + 24, Pattern: 0x4645, Width: 2, Count: 2, Stride: 6},
		} {
			op.Kind = driver.FillNode
			n = node(t, v, g, op, n)
			if i == 0 { // nodes can be added after Instantiate
				check(t, graphs(v).DestroyExec(instantiate(t, v, g)))
			}
		}
		node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: to}, n)
		x := instantiate(t, v, g)
		if c := d.Counters().Devices[0]; c.Graphs != 3 || c.Execs != 1 || c.Timers != 2 {
			t.Errorf("counters %+v", c)
		}
		for _, g := range []driver.Graph{g, child} {
			check(t, graphs(v).DestroyGraph(g)) // the exec stays valid without its graphs
		}
		for range 3 {
			check(t, v.Fill(s, h.Ptr, '.', 1, 32))
			check(t, graphs(v).LaunchGraph(s, x))
			e := record(t, v, s)
			d.Run()
			check(t, wait(t, v, e))
			if got, want := string(unsafe.Slice((*byte)(h.Host), 32)), "ccccccccABABABCDx..x..x.EF....EF...."; got != want[:32] {
				t.Errorf("%q, want %q", got, want[:32])
			}
			if got := must(timers(v).Elapsed(from, to))(t); got < 0 {
				t.Errorf("elapsed %v", got)
			}
		}
		check(t, graphs(v).DestroyExec(x))
	}
}

// TestGraphSnapshots changes graphs after they were instantiated or added as children.
func TestGraphSnapshots(t *testing.T) {
	_, vs := open(t, simdriver.Config{})
	v := vs[0]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 4)
	g, child := graph(t, v), graph(t, v)
	node(t, v, child, fillOp(m.Ptr, 'a', 1))
	n := node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: child})
	node(t, v, child, fillOp(m.Ptr+1, 'b', 1))
	x := instantiate(t, v, g)
	n = node(t, v, g, fillOp(m.Ptr+2, 'c', 1), n)
	node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: g}, n) // AddNode copies the child, here g itself
	y := instantiate(t, v, g)
	for x, want := range map[driver.Exec]string{x: "a...", y: "a.c."} {
		check(t, v.Fill(s, m.Ptr, '.', 1, 4))
		check(t, graphs(v).LaunchGraph(s, x))
		check(t, drain(t, v, s))
		if got := string(read(t, v, m.Ptr, 4)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestGraphErrors tests invalid calls.
func TestGraphErrors(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{
		"k": func(*simdriver.Grid, int32) {}, "other": func(*simdriver.Grid, int32) {},
	})})
	v, w := vs[0], vs[1]
	s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 64)
	mod := must(v.Load(simdriver.Image("k", "other")))(t)
	k, _, err := v.Function(mod, "k")
	check(t, err)
	other, _, err := v.Function(mod, "other")
	check(t, err)
	g, foreign, gone := graph(t, v), graph(t, v), graph(t, v)
	check(t, graphs(v).DestroyGraph(gone))
	kernel := kernelOp(k, ptr(1))
	kn, fn, en := node(t, v, g, kernel), node(t, v, g, fillOp(m.Ptr, 1, 1)), node(t, v, g, driver.NodeOp{Kind: driver.EmptyNode})
	ff := node(t, v, foreign, fillOp(m.Ptr, 1, 1))
	x := instantiate(t, v, g)
	goneX := instantiate(t, v, g)
	check(t, graphs(v).DestroyExec(goneX))
	add := func(op driver.NodeOp, after ...driver.Node) error {
		_, err := graphs(v).AddNode(g, after, &op)
		return err
	}
	set := func(n driver.Node, op driver.NodeOp) error { return graphs(v).SetNode(x, n, &op) }
	thick, noArgs := kernel, kernel
	thick.Launch.Block, noArgs.Launch.Args = [3]uint32{1, 1, 65}, nil
	fill := func(width int, count, stride uint64) driver.NodeOp {
		return driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Width: width, Count: count, Stride: stride}
	}
	empty := driver.NodeOp{}
	for _, c := range []struct {
		err, want error
		say       string
	}{
		{add(empty, 0), simdriver.ErrInvalidHandle, "not in graph"},
		{add(empty, kn, 12345), simdriver.ErrInvalidHandle, "predecessor 0x3039"},
		{add(empty, ff), simdriver.ErrInvalidHandle, "not in graph"},
		{add(empty, kn, fn, kn), simdriver.ErrInvalidValue, "twice"},
		{add(driver.NodeOp{Kind: 60}), simdriver.ErrInvalidValue, "kind 60"},
		{add(driver.NodeOp{Kind: -1}), simdriver.ErrInvalidValue, "kind -1"},
		{second(graphs(v).AddNode(g, nil, nil)), simdriver.ErrInvalidValue, "nil"},
		{second(graphs(v).AddNode(gone, nil, &empty)), simdriver.ErrInvalidHandle, "was destroyed"},
		{second(graphs(w).AddNode(g, nil, &empty)), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{add(thick), simdriver.ErrInvalidValue, "threads"},
		{add(noArgs), simdriver.ErrInvalidValue, "0 arguments"},
		{add(kernelOp(0)), simdriver.ErrInvalidHandle, "no such function"},
		{add(fill(3, 1, 0)), simdriver.ErrInvalidValue, "3 bytes"},
		{add(fill(4, 0, 0)), simdriver.ErrInvalidValue, "0 elements"},
		{add(fill(4, 2, 6)), simdriver.ErrInvalidValue, "multiple of 4"},
		{add(fill(2, 2, 1)), simdriver.ErrInvalidValue, "multiple of 2"},
		{add(copyOp(m.Ptr, m.Ptr, 0)), simdriver.ErrInvalidValue, "0 bytes"},
		{add(driver.NodeOp{Kind: driver.ChildNode, Child: gone}), simdriver.ErrInvalidHandle, "was destroyed"},
		{add(driver.NodeOp{Kind: driver.ChildNode, Child: graph(t, w)}), simdriver.ErrInvalidHandle, "belongs to device 1"},
		{add(driver.NodeOp{Kind: driver.RecordNode}), simdriver.ErrInvalidHandle, "no such event"},
		{add(driver.NodeOp{Kind: driver.RecordNode, Event: event(t, v)}), simdriver.ErrInvalidHandle, "NewTimer"},
		{second(graphs(v).Instantiate(gone)), simdriver.ErrInvalidHandle, "was destroyed"},
		{graphs(v).DestroyGraph(gone), simdriver.ErrInvalidHandle, "was destroyed"},
		{graphs(w).DestroyGraph(g), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{graphs(v).DestroyExec(goneX), simdriver.ErrInvalidHandle, "was destroyed"},
		{graphs(w).DestroyExec(x), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{graphs(v).LaunchGraph(s, goneX), simdriver.ErrInvalidHandle, "was destroyed"},
		{graphs(v).LaunchGraph(0, x), simdriver.ErrInvalidHandle, "no such stream"},
		{graphs(w).LaunchGraph(stream(t, w), x), simdriver.ErrInvalidHandle, "belongs to device 0"},
		{set(ff, fillOp(m.Ptr, 1, 1)), simdriver.ErrInvalidHandle, "not in the graph"},
		{set(en, empty), simdriver.ErrInvalidValue, "cannot be changed"},
		{set(fn, kernel), simdriver.ErrInvalidValue, "kind is 2 and cannot change to 1"},
		{set(fn, copyOp(m.Ptr, m.Ptr, 1)), simdriver.ErrInvalidValue, "change to 3"},
		{set(fn, fill(4, 0, 0)), simdriver.ErrInvalidValue, "0 elements"},
		{set(kn, kernelOp(other, ptr(1))), simdriver.ErrInvalidValue, "kernel k and cannot change to other"},
		{set(kn, noArgs), simdriver.ErrInvalidValue, "0 arguments"},
		{graphs(v).SetNode(x, fn, nil), simdriver.ErrInvalidValue, "nil"},
		{graphs(v).SetNode(goneX, fn, &kernel), simdriver.ErrInvalidHandle, "was destroyed"},
	} {
		refused(t, c.err, c.want, c.say)
	}
	lone := graph(t, v)
	ln, lx := node(t, v, lone, kernel), instantiate(t, v, lone)
	check(t, graphs(v).SetNode(lx, ln, &kernel))
	check(t, graphs(v).DestroyGraph(lone))
	refused(t, graphs(v).SetNode(lx, ln, &kernel), simdriver.ErrInvalidHandle, "graph 0x", "was destroyed")

	// Nest children until there are too many nodes.
	big := graph(t, v)
	node(t, v, big, empty)
	for i := 0; ; i++ {
		_, err := graphs(v).AddNode(big, nil, &driver.NodeOp{Kind: driver.ChildNode, Child: big})
		if err != nil {
			refused(t, err, simdriver.ErrInvalidValue, "too many")
			break
		}
		if i > 30 {
			t.Fatal("a graph accepts 2³⁰ nodes")
		}
	}
	check(t, graphs(v).LaunchGraph(s, x))
	check(t, drain(t, v, s))
	if c := d.Counters().Devices[0]; c.Calls[simdriver.OpLaunchGraph] != 3 {
		t.Errorf("counters %+v", c)
	}

	hip, none := simdriver.HIPCaps(), driver.Caps{}
	_, vs = open(t, simdriver.Config{Caps: &hip})
	graph(t, vs[0])
	_, vs = open(t, simdriver.Config{Caps: &none})
	v = vs[0]
	for _, err := range []error{
		second(graphs(v).NewGraph()), graphs(v).DestroyGraph(1), second(graphs(v).AddNode(1, nil, &empty)),
		second(graphs(v).Instantiate(1)), graphs(v).DestroyExec(1), graphs(v).SetNode(1, 1, &empty), graphs(v).LaunchGraph(1, 1),
	} {
		refused(t, err, driver.ErrUnsupported)
	}
}

// TestSetNode changes nodes between launches that are pending.
func TestSetNode(t *testing.T) {
	for _, manual := range []bool{false, true} {
		var got []uint32
		d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: kernels(map[string]any{
			"note": func(g *simdriver.Grid, i uint32) { got = append(got, i+1000*g.Blocks[0]) },
		})})
		v := vs[0]
		s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 8)
		f, g := function(t, v, "note"), graph(t, v)
		i := uint32(0)
		kn := node(t, v, g, kernelOp(f, unsafe.Pointer(&i)))
		fn := node(t, v, g, fillOp(m.Ptr, 'a', 8))
		cn := node(t, v, g, copyOp(m.Ptr, m.Ptr+4, 1), fn)
		x, y := instantiate(t, v, g), instantiate(t, v, g)
		check(t, d.StallStream(s))
		var want []uint32
		for i = range 10 {
			if i > 0 {
				op := kernelOp(f, unsafe.Pointer(&i))
				op.Launch.Grid[0] = i + 1
				check(t, graphs(v).SetNode(x, kn, &op))
			}
			want = append(want, i+1000*(i+1))
			if i == 4 {
				op, op2 := fillOp(m.Ptr+4, 'b', 4), copyOp(m.Ptr+1, m.Ptr+4, 1)
				check(t, graphs(v).SetNode(x, fn, &op))
				check(t, graphs(v).SetNode(x, cn, &op2))
			}
			check(t, graphs(v).LaunchGraph(s, x))
		}
		check(t, graphs(v).LaunchGraph(s, y)) // y is of the same graph, and SetNode has not changed y
		want = append(want, 1000)
		run := func() {
			e := record(t, v, s)
			d.Run()
			check(t, wait(t, v, e))
		}
		check(t, d.ResumeStream(s))
		run()
		if !slices.Equal(got, want) {
			t.Errorf("%d, want %d", got, want)
		}
		check(t, v.Fill(s, m.Ptr, '.', 1, 8))
		check(t, graphs(v).LaunchGraph(s, x))
		b := make([]byte, 8)
		check(t, v.Download(s, unsafe.Pointer(&b[0]), m.Ptr, 8))
		run()
		if string(b) != ".b..bbbb" {
			t.Errorf("%q", b)
		}
	}
}

// TestGraphConcurrent checks that unordered nodes run concurrently.
func TestGraphConcurrent(t *testing.T) {
	const rows, width = 3, 4
	var meet [rows]sync.WaitGroup
	var met [rows]atomic.Int32
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"meet": func(g *simdriver.Grid, row uint32) error {
			if row > 0 && met[row-1].Load() != width {
				return errors.New("too early")
			}
			meet[row].Done()
			meet[row].Wait()
			met[row].Add(1)
			return nil
		},
	})})
	v := vs[0]
	s, f, g := stream(t, v), function(t, v, "meet"), graph(t, v)
	var last []driver.Node
	for row := range uint32(rows) {
		var nodes []driver.Node
		for range width {
			nodes = append(nodes, node(t, v, g, kernelOp(f, unsafe.Pointer(&row)), last...))
		}
		last = nodes
		if row == 0 {
			last = []driver.Node{node(t, v, g, driver.NodeOp{}, nodes...)}
		}
	}
	x := instantiate(t, v, g)
	for range 50 {
		for row := range rows {
			meet[row].Add(width)
			met[row].Store(0)
		}
		check(t, graphs(v).LaunchGraph(s, x))
		check(t, drain(t, v, s))
		if met[rows-1].Load() != width {
			t.Fatal("not all nodes were executed")
		}
	}
}

// TestGraphSerial launches one exec in several streams. The launches run one after another.
func TestGraphSerial(t *testing.T) {
	for _, manual := range []bool{false, true} {
		var got []driver.Stream // not protected, so that the race detector checks the order of launches
		d, vs := open(t, simdriver.Config{Deterministic: manual, Kernels: kernels(map[string]any{
			"note": func(g *simdriver.Grid) { got = append(got, g.Stream) },
		})})
		v := vs[0]
		f, g := function(t, v, "note"), graph(t, v)
		node(t, v, g, kernelOp(f), node(t, v, g, kernelOp(f), node(t, v, g, driver.NodeOp{})))
		x := instantiate(t, v, g)
		var ss []driver.Stream
		for range 4 {
			ss = append(ss, stream(t, v))
		}
		var want []driver.Stream
		check(t, d.StallStream(ss[0]))
		for i := range 100 {
			s := ss[i*i%7%4]
			check(t, graphs(v).LaunchGraph(s, x))
			want = append(want, s, s)
			refused(t, graphs(v).DestroyExec(x), simdriver.ErrBusy, "in flight")
		}
		check(t, d.ResumeStream(ss[0]))
		d.Run()
		check(t, destroyed(graphs(v).DestroyExec, x))
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestGraphOtherStreamGone launches an exec whose previous launch was dropped with its stream.
func TestGraphOtherStreamGone(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	v, w := vs[0], vs[1]
	s, o, ws, g := stream(t, v), stream(t, v), stream(t, w), graph(t, v)
	check(t, d.StallStream(ws))
	check(t, v.StreamWait(s, record(t, w, ws)))
	x := instantiate(t, v, g)
	check(t, graphs(v).LaunchGraph(s, x))
	check(t, d.LoseDevice(1, nil))
	check(t, destroyed(v.DestroyStream, s)) // the stream waits for an event that never completes
	check(t, graphs(v).LaunchGraph(o, x))
	check(t, drain(t, v, o))
	check(t, destroyed(graphs(v).DestroyExec, x))
}

// TestGraphFails tests ways in which a node can fail. The error names the node, and later nodes do
// not begin.
func TestGraphFails(t *testing.T) {
	type env struct {
		t   *testing.T
		v   driver.Device
		m   driver.Mem // 64 bytes
		mod driver.Module
		f   func(name string) driver.Function
	}
	for _, c := range []struct {
		name   string
		op     func(e env) driver.NodeOp
		before func(e env) // called before the launch executes
		want   error
		access *simdriver.AccessError
		say    string
	}{
		{name: "fill too long", op: func(e env) driver.NodeOp { return fillOp(e.m.Ptr+1, 0, 64) },
			access: &simdriver.AccessError{Op: simdriver.OpFill, Addr: 1, Size: 64, Length: 64}, say: "fill in graph node"},
		{name: "strided fill too long", op: func(e env) driver.NodeOp {
			return driver.NodeOp{Kind: driver.FillNode, Dst: e.m.Ptr, Width: 2, Count: 8, Stride: 10}
		}, access: &simdriver.AccessError{Op: simdriver.OpFill, Size: 72, Length: 64}, say: "only 64 bytes"},
		{name: "fill not aligned", op: func(e env) driver.NodeOp {
			return driver.NodeOp{Kind: driver.FillNode, Dst: e.m.Ptr + 1, Width: 2, Count: 8}
		}, access: &simdriver.AccessError{Op: simdriver.OpFill, Addr: 1, Size: 16, Align: 2, Length: 64}, say: "not a multiple of 2"},
		{name: "copy from freed", op: func(e env) driver.NodeOp { return copyOp(e.m.Ptr, e.m.Ptr+8, 8) }, before: func(e env) { check(e.t, e.v.Free(e.m)) },
			access: &simdriver.AccessError{Op: simdriver.OpCopy, Addr: 8, Size: 8, Length: 64, Freed: true}, say: "copy in graph node"},
		{name: "view", op: func(e env) driver.NodeOp { return kernelOp(e.f("view"), unsafe.Pointer(&e.m.Ptr)) },
			access: &simdriver.AccessError{Op: simdriver.OpLaunch, Kernel: "view", Size: 65, Length: 64}, say: "kernel view in graph node"},
		{name: "error", op: func(e env) driver.NodeOp { return kernelOp(e.f("error")) }, want: errTest, say: "kernel error in graph node"},
		{name: "panic", op: func(e env) driver.NodeOp { return kernelOp(e.f("panic")) }, want: driver.ErrLost, say: "panic: out of luck"},
		{name: "goexit", op: func(e env) driver.NodeOp { return kernelOp(e.f("goexit")) }, want: driver.ErrLost, say: "runtime.Goexit"},
		{name: "unloaded", op: func(e env) driver.NodeOp { return kernelOp(e.f("error")) }, before: func(e env) { check(e.t, e.v.Unload(e.mod)) },
			want: driver.ErrLost, say: "unloaded before it ran"},
	} {
		for _, shape := range []string{"alone", "first", "second root", "heir", "child", "stepwise"} {
			t.Run(c.name+"/"+shape, func(t *testing.T) {
				ran := make(chan string, 100)
				d, vs := open(t, simdriver.Config{Deterministic: shape == "stepwise", Kernels: kernels(map[string]any{
					"view":   func(g *simdriver.Grid, p driver.Ptr) { simdriver.View[byte](g, p, 65) },
					"error":  func(g *simdriver.Grid) error { return errTest },
					"panic":  func(g *simdriver.Grid) { panic("out of luck") },
					"goexit": func(g *simdriver.Grid) { runtime.Goexit() },
					"before": func(g *simdriver.Grid) { ran <- "before" },
					"after":  func(g *simdriver.Grid) { ran <- "after" },
				})})
				v := vs[0]
				mod := must(v.Load(simdriver.Image("view", "error", "panic", "goexit", "before", "after")))(t)
				e := env{t, v, alloc(t, v, driver.DeviceMem, 64), mod, func(name string) driver.Function {
					f, _, err := v.Function(mod, name)
					check(t, err)
					return f
				}}
				s, g := stream(t, v), graph(t, v)
				before, after := kernelOp(e.f("before")), kernelOp(e.f("after"))
				op := c.op(e)
				var bad driver.Node
				switch shape {
				case "alone":
					bad = node(t, v, g, op)
				case "first", "stepwise":
					bad = node(t, v, g, op)
					a, b := node(t, v, g, after, bad), node(t, v, g, after, bad)
					node(t, v, g, after, a, b)
				case "second root":
					first := node(t, v, g, before)
					bad = node(t, v, g, op)
					node(t, v, g, after, node(t, v, g, driver.NodeOp{}, first, bad))
				case "heir":
					a, b := node(t, v, g, before), node(t, v, g, before)
					bad = node(t, v, g, op, a, b)
					node(t, v, g, after, a, bad)
					node(t, v, g, after, bad, b)
				case "child":
					child := graph(t, v)
					bad = node(t, v, child, op, node(t, v, child, before))
					node(t, v, g, after, node(t, v, g, driver.NodeOp{Kind: driver.ChildNode, Child: child}))
				}
				x := instantiate(t, v, g)
				check(t, d.StallStream(s))
				check(t, graphs(v).LaunchGraph(s, x))
				done := record(t, v, s)
				if c.before != nil {
					c.before(e)
					if c.name == "unloaded" {
						// The memory of the other nodes is freed too, so any of these nodes may
						// fail first.
						bad = 0
					}
				}
				check(t, d.ResumeStream(s))
				if shape == "stepwise" && c.name == "goexit" {
					stopped := make(chan bool)
					go func() {
						defer close(stopped)
						d.Step()
					}()
					<-stopped
				}
				d.Run()
				err := wait(t, v, done)
				refused(t, err, driver.ErrLost, c.say)
				if c.want != nil {
					refused(t, err, c.want)
				}
				if name := "graph node " + hex(bad); bad != 0 && !strings.Contains(err.Error(), name) {
					t.Errorf("%v does not say %q", err, name)
				}
				if c.access != nil {
					var got *simdriver.AccessError
					if !errors.As(err, &got) {
						t.Fatalf("%v", err)
					}
					x, want := *got, *c.access
					x.Addr, x.Base, want.Node, want.Stream = x.Addr-x.Base, 0, bad, s
					if x != want {
						t.Errorf("%+v, want %+v", x, want)
					}
				}
				refused(t, destroyed(v.DestroyStream, s), driver.ErrLost)
				refused(t, graphs(v).DestroyExec(x), driver.ErrLost)
				refused(t, graphs(v).DestroyExec(x), simdriver.ErrInvalidHandle)
				refused(t, graphs(v).DestroyGraph(g), driver.ErrLost)
				refused(t, graphs(v).DestroyGraph(g), simdriver.ErrInvalidHandle)
				for len(ran) > 0 {
					if <-ran == "after" {
						t.Error("a later node was executed")
					}
				}
			})
		}
	}
}

// TestGraphLost loses the device during a launch.
func TestGraphLost(t *testing.T) {
	ran, release := make(chan bool, 10), make(chan bool)
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{
		"block": func(*simdriver.Grid) { ran <- true; <-release },
	})})
	v := vs[0]
	s, f, g := stream(t, v), function(t, v, "block"), graph(t, v)
	a, b := node(t, v, g, kernelOp(f)), node(t, v, g, kernelOp(f))
	node(t, v, g, kernelOp(f), a, b)
	x := instantiate(t, v, g)
	check(t, graphs(v).LaunchGraph(s, x))
	e := record(t, v, s)
	<-ran
	<-ran
	refused(t, graphs(v).DestroyExec(x), simdriver.ErrBusy)
	check(t, d.LoseDevice(0, errTest))
	close(release)
	refused(t, second(v.Query(e)), errTest)
	refused(t, graphs(v).LaunchGraph(s, x), driver.ErrLost)
	refused(t, second(graphs(v).Instantiate(g)), driver.ErrLost)
	refused(t, graphs(v).DestroyExec(x), driver.ErrLost)
	refused(t, v.DestroyStream(s), driver.ErrLost)
	if c := d.Counters().Devices[0]; c.Execs != 0 || c.Graphs != 1 {
		t.Errorf("counters %+v", c)
	}
	if len(ran) != 0 {
		t.Error("the third node was executed")
	}
}

func TestGraphFaults(t *testing.T) {
	for _, manual := range []bool{false, true} {
		d, vs := open(t, simdriver.Config{Deterministic: manual})
		v := vs[0]
		s, m, g := stream(t, v), alloc(t, v, driver.HostMem, 8), graph(t, v)
		d.Inject(simdriver.Fault{Op: simdriver.OpAddNode, N: 2, OOM: true})
		d.Inject(simdriver.Fault{Op: simdriver.OpInstantiate, N: 1, Err: errTest})
		d.Inject(simdriver.Fault{Op: simdriver.OpSetNode, N: 1, Err: errTest})
		d.Inject(simdriver.Fault{Op: simdriver.OpLaunchGraph, N: 2, Err: errTest})
		d.Inject(simdriver.Fault{Op: simdriver.OpLaunchGraph, N: 4, Err: errTest, AtExecution: true})
		d.Inject(simdriver.Fault{Op: simdriver.OpFill, Err: errTest}) // no node counts as a call of Fill
		fill := fillOp(m.Ptr, 1, 1)
		n := node(t, v, g, fill)
		refused(t, second(graphs(v).AddNode(g, nil, &fill)), driver.ErrOutOfMemory)
		refused(t, second(graphs(v).Instantiate(g)), errTest, "instantiate")
		x := instantiate(t, v, g)
		refused(t, graphs(v).SetNode(x, n, &fill), errTest, "set node")
		check(t, graphs(v).LaunchGraph(s, x))
		refused(t, graphs(v).LaunchGraph(s, x), errTest, "launch graph")
		check(t, graphs(v).LaunchGraph(s, x))
		e := record(t, v, s)
		d.Run()
		check(t, wait(t, v, e))
		check(t, d.StallStream(s))
		check(t, graphs(v).LaunchGraph(s, x))
		e = record(t, v, s)
		check(t, d.ResumeStream(s))
		d.Run()
		refused(t, wait(t, v, e), errTest, "launch graph on device 0")
	}
	d, vs := open(t, simdriver.Config{})
	v := vs[0]
	x, g := driver.Exec(0), graph(t, v)
	x = instantiate(t, v, g)
	d.Inject(simdriver.Fault{Op: simdriver.OpDestroyExec, N: 1})
	d.Inject(simdriver.Fault{Op: simdriver.OpDestroyGraph, N: 1})
	refused(t, graphs(v).DestroyExec(x), simdriver.ErrInjected)
	refused(t, graphs(v).DestroyGraph(g), simdriver.ErrInjected)
	if c := d.Counters().Devices[0]; c.Execs+c.Graphs != 0 {
		t.Errorf("counters %+v", c)
	}
}

// TestGraphTimers reads timers that nodes record, while the launch of their graph still executes.
func TestGraphTimers(t *testing.T) {
	for _, rerecord := range []bool{true, false} {
		ran, release := make(chan bool), make(chan bool)
		caps := simdriver.CUDACaps()
		caps.RerecordEvents = rerecord
		d, vs := open(t, simdriver.Config{Caps: &caps, Kernels: kernels(map[string]any{
			"block": func(*simdriver.Grid) { ran <- true; <-release },
		})})
		v := vs[0]
		s, o, f, g := stream(t, v), stream(t, v), function(t, v, "block"), graph(t, v)
		first, twice, last := timer(t, v), timer(t, v), timer(t, v)
		n := node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: first})
		n = node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: twice}, n)
		n = node(t, v, g, kernelOp(f), n)
		n = node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: twice}, n)
		n = node(t, v, g, kernelOp(f), n)
		node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: last}, n)
		x := instantiate(t, v, g)
		check(t, d.StallStream(s))
		check(t, graphs(v).LaunchGraph(s, x))
		pending(t, v, first)
		check(t, v.StreamWait(o, first))
		e := record(t, v, o)
		pending(t, v, e)
		refused(t, v.DestroyEvent(first), simdriver.ErrBusy)
		err := graphs(v).LaunchGraph(s, x)
		if rerecord {
			check(t, err)
		} else {
			refused(t, err, simdriver.ErrBusy, "1 waits")
			check(t, d.StallStream(o)) // so that e stays pending
		}
		check(t, d.ResumeStream(s))
		<-ran
		// The launch has recorded the timer that o waits for. If there is a second launch in s, the
		// timer is pending again until that launch records it.
		if rerecord {
			check(t, wait(t, v, e))
			pending(t, v, first)
			pending(t, v, twice)
			release <- true
			<-ran
			release <- true
			<-ran
		} else {
			check(t, wait(t, v, first))
			pending(t, v, e)
			check(t, d.ResumeStream(o))
			check(t, wait(t, v, e))
		}
		check(t, wait(t, v, first))
		pending(t, v, twice)
		refused(t, second(timers(v).Elapsed(first, twice)), simdriver.ErrNotReady)
		release <- true
		<-ran
		check(t, wait(t, v, twice))
		must(timers(v).Elapsed(first, twice))(t)
		pending(t, v, last)
		check(t, v.StreamWait(o, last))
		e = record(t, v, o)
		pending(t, v, e)
		release <- true
		check(t, wait(t, v, e))
		if a := must(timers(v).Elapsed(first, last))(t); a < must(timers(v).Elapsed(first, twice))(t) {
			t.Errorf("elapsed %v", a)
		}
		check(t, drain(t, v, s))
		check(t, v.DestroyEvent(twice))
		refused(t, graphs(v).LaunchGraph(s, x), simdriver.ErrInvalidHandle, "a node records")
	}
}

// TestGraphLatency checks the latency of nodes, in a synctest bubble.
func TestGraphLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, vs := open(t, simdriver.Config{
			Latency: map[simdriver.Op]time.Duration{simdriver.OpFill: time.Second, simdriver.OpCopy: 5 * time.Second, simdriver.OpLaunchGraph: time.Minute},
		})
		v := vs[0]
		s, m, g := stream(t, v), alloc(t, v, driver.HostMem, 8), graph(t, v)
		from, to := timer(t, v), timer(t, v)
		n := node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: from})
		a, b := node(t, v, g, fillOp(m.Ptr, 1, 1), n), node(t, v, g, copyOp(m.Ptr+1, m.Ptr+2, 1), n)
		a = node(t, v, g, fillOp(m.Ptr, 1, 1), a)
		n = node(t, v, g, driver.NodeOp{}, a, b)
		n = node(t, v, g, fillOp(m.Ptr, 1, 1), n)
		node(t, v, g, driver.NodeOp{Kind: driver.RecordNode, Event: to}, n)
		x := instantiate(t, v, g)
		for range 3 {
			start := time.Now()
			check(t, graphs(v).LaunchGraph(s, x))
			e := record(t, v, s)
			time.Sleep(66*time.Second - 1)
			synctest.Wait()
			if done, err := v.Query(e); done || err != nil {
				t.Errorf("done %v, %v", done, err)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if done, err := v.Query(e); !done || err != nil {
				t.Errorf("done %v, %v after %v", done, err, time.Since(start))
			}
			if got := must(timers(v).Elapsed(from, to))(t); got != 6*time.Second {
				t.Errorf("elapsed %v", got)
			}
		}
		// If the device is lost, its nodes do not wait for their latency.
		d.SetLatency(simdriver.OpFill, 1000*time.Hour)
		check(t, graphs(v).LaunchGraph(s, x))
		time.Sleep(time.Hour)
		start := time.Now()
		check(t, d.LoseDevice(0, nil))
		synctest.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
		refused(t, v.Close(), driver.ErrLost)
	})
}

func hex(n driver.Node) string { return fmt.Sprintf("%#x", uint64(n)) }
