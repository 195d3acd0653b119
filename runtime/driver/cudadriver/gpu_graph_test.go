package cudadriver

import (
	"bytes"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// openGraphs opens a device with graphs.
func openGraphs(t testing.TB) *device {
	t.Helper()
	d := openGPU(t)
	if !d.caps.Graphs {
		t.Skip("no graphs")
	}
	return d
}

func newGraph(t testing.TB, d *device) driver.Graph {
	t.Helper()
	g, err := d.NewGraph()
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyGraph(g)) })
	return g
}

func addNode(t testing.TB, d *device, g driver.Graph, op *driver.NodeOp, after ...driver.Node) driver.Node {
	t.Helper()
	n, err := d.AddNode(g, after, op)
	ok(t, err)
	return n
}

// nodesOf returns n in a slice, or nil if n is 0.
func nodesOf(n driver.Node) []driver.Node {
	if n == 0 {
		return nil
	}
	return []driver.Node{n}
}

func instantiate(t testing.TB, d *device, g driver.Graph) driver.Exec {
	t.Helper()
	x, err := d.Instantiate(g)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyExec(x)) })
	return x
}

func newTimer(t testing.TB, d *device) driver.Event {
	t.Helper()
	e, err := d.NewTimer()
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyEvent(e)) })
	return e
}

// arg makes an argument of a kernel.
func arg[T any](v T) unsafe.Pointer { return unsafe.Pointer(&v) }

// kernelOp makes a node that launches a kernel.
func kernelOp(f driver.Function, blocks, threads uint32, args ...unsafe.Pointer) *driver.NodeOp {
	return &driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{
		Function: f, Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}, Args: args,
	}}
}

// TestGPUGraph runs a graph of kernels, fills and copies. The result is right only if each node
// runs after the nodes that it depends on.
func TestGPUGraph(t *testing.T) {
	d := openGraphs(t)
	s := newStream(t, d)
	index, _ := load(t, d, kernels.Basic, "index")
	copyWords, _ := load(t, d, kernels.Basic, "words")
	const n = 4096 // bytes of each of x, y and z
	dev, host := alloc(t, d, driver.DeviceMem, 4*n), alloc(t, d, driver.HostMem, 4*n)
	x, y, z := dev.Ptr, dev.Ptr+n, dev.Ptr+2*n
	g := newGraph(t, d)

	// A kernel numbers the words of x. Fills of each width then overwrite parts of x.
	first := addNode(t, d, g, kernelOp(index, n/4/256, 256, arg(uint64(n/4)), arg(uint32(1000)), arg(uint32(3)), arg(x)))
	w1 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 401, Pattern: 0x123456a1, Width: 1, Count: 99}, first)
	w2 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 802, Pattern: 0x1234b2b1, Width: 2, Count: 99}, first)
	w4 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 1204, Pattern: 0xc4c3c2c1, Width: 4, Count: 99, Stride: 4}, first)
	// Strided fills of each width.
	s1 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 2001, Pattern: 0xd1, Width: 1, Count: 10, Stride: 7}, first)
	s2 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 2200, Pattern: 0xe2e1, Width: 2, Count: 10, Stride: 6}, first)
	s4 := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 2400, Pattern: 0xf4f3f2f1, Width: 4, Count: 10, Stride: 12}, first)
	lone := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: x + 2800, Pattern: 0x77777777, Width: 4, Count: 1, Stride: 64}, first)
	// Then copy x to y, run a kernel from y to z, copy from the host to z, and copy z to the host.
	all := addNode(t, d, g, &driver.NodeOp{Kind: driver.EmptyNode}, w1, w2, w4, s1, s2, s4, lone)
	xy := addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: y, Src: x, Count: n}, all)
	yz := addNode(t, d, g, kernelOp(copyWords, n/4/256, 256, arg(uint64(n/4)), arg(z), arg(y)), xy)
	up := addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: z + 3000, Src: host.Ptr + 3*n, Count: 13}, yz)
	addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr + n, Src: z, Count: n}, up)

	exec := instantiate(t, d, g)
	out := unsafe.Slice((*byte)(host.Host), 4*n)
	copy(out[3*n:], "from the host")
	want := make([]byte, n)
	for i := range n / 4 {
		v := uint32(1000 + 3*i)
		copy(want[4*i:], []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
	}
	copy(want[401:], bytes.Repeat([]byte{0xa1}, 99))
	copy(want[802:], bytes.Repeat([]byte{0xb1, 0xb2}, 99))
	copy(want[1204:], bytes.Repeat([]byte{0xc1, 0xc2, 0xc3, 0xc4}, 99))
	for i := range 10 {
		copy(want[2001+7*i:], "\xd1")
		copy(want[2200+6*i:], "\xe1\xe2")
		copy(want[2400+12*i:], "\xf1\xf2\xf3\xf4")
	}
	copy(want[2800:], "\x77\x77\x77\x77")
	copy(want[3000:], "from the host")
	launch := func() error { return d.LaunchGraph(s, exec) }
	check := func(what string) {
		t.Helper()
		finish(t, d, s)
		for i, got := range out[n : 2*n] {
			if got != want[i] {
				t.Fatalf("%s: byte %d is %#x, want %#x", what, i, got, want[i])
			}
		}
		clear(out[n : 2*n])
	}
	for range 3 {
		ok(t, d.Fill(s, dev.Ptr, 0, 4, n))
		ok(t, launch())
		check("bound")
	}
	ok(t, d.Fill(s, dev.Ptr, 0, 4, n))
	finish(t, d, s)
	elsewhere(t, d, launch)
	check("elsewhere")
	if dl.Fast {
		var sink error
		if n := testing.AllocsPerRun(20, func() { sink = launch() }); n != 0 || sink != nil {
			t.Errorf("LaunchGraph allocates %v times, %v", n, sink)
		}
		check("many")
	}
	// An exec works after its graph is destroyed.
	lonely, err := d.NewGraph()
	ok(t, err)
	addNode(t, d, lonely, &driver.NodeOp{Kind: driver.FillNode, Dst: host.Ptr, Pattern: 42, Width: 4, Count: 1})
	orphan := instantiate(t, d, lonely)
	ok(t, d.DestroyGraph(lonely))
	ok(t, d.LaunchGraph(s, orphan))
	finish(t, d, s)
	if got := words(host)[0]; got != 42 {
		t.Errorf("an exec without graph writes %d", got)
	}
}

func TestGPUGraphSetNode(t *testing.T) {
	d := openGraphs(t)
	s := newStream(t, d)
	const n = 4096
	dev, host := alloc(t, d, driver.DeviceMem, 8*n), alloc(t, d, driver.HostMem, 8*n)
	clear(words(host))
	index, _ := load(t, d, kernels.Basic, "index")
	spin, _ := load(t, d, []byte(gpuPTX), "spin")
	indexOp := func(first uint32, count int, to driver.Ptr) *driver.NodeOp {
		return kernelOp(index, 8, 128, arg(uint64(count)), arg(first), arg(uint32(1)), arg(to))
	}
	g := newGraph(t, d)
	wait := addNode(t, d, g, kernelOp(spin, 1, 1, arg(uint64(20e6))))
	kernel := addNode(t, d, g, indexOp(100, n/4, dev.Ptr), wait)
	fill := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr + n, Pattern: 1, Width: 4, Count: n / 4}, wait)
	column := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr + n, Pattern: 2, Width: 4, Count: 10, Stride: 16}, fill)
	down := addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr, Src: dev.Ptr, Count: 2 * n}, kernel, column)
	x := instantiate(t, d, g)
	other := instantiate(t, d, g)

	// The first launch is still in flight when SetNode changes the exec.
	ok(t, d.LaunchGraph(s, x))
	ok(t, d.SetNode(x, wait, kernelOp(spin, 1, 1, arg(uint64(1000)))))
	ok(t, d.SetNode(x, kernel, indexOp(200, n/8, dev.Ptr+4*n)))
	ok(t, d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr + 5*n, Pattern: 3, Width: 4, Count: n / 4}))
	ok(t, d.SetNode(x, column, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr + 5*n + 4, Pattern: 4, Width: 4, Count: 10, Stride: 16}))
	ok(t, d.SetNode(x, down, &driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr + 4*n, Src: dev.Ptr + 4*n, Count: 2 * n}))
	done := newEvent(t, d)
	ok(t, d.Record(done, s))
	if done, err := d.Query(done); done || err != nil {
		t.Logf("the first launch was done before its nodes were set: %t, %v", done, err)
	}
	finish(t, d, s)
	w := words(host)
	if w[0] != 100 || w[n/4-1] != 100+n/4-1 || w[n/4] != 2 || w[n/4+1] != 1 || w[n/4+4] != 2 || w[n/2-1] != 1 || w[n] != 0 {
		t.Errorf("the first launch writes %d … %d, %d %d %d … %d", w[0], w[n/4-1], w[n/4], w[n/4+1], w[n/4+4], w[n/2-1])
	}
	clear(w)
	ok(t, d.Fill(s, dev.Ptr, 0, 4, 2*n))
	ok(t, d.LaunchGraph(s, x))
	finish(t, d, s)
	if v := w[n:]; v[0] != 200 || v[n/8-1] != 200+n/8-1 || v[n/8] != 0 || v[n/4] != 3 || v[n/4+1] != 4 || v[n/4+4] != 3 || v[n/4+5] != 4 || w[0] != 0 {
		t.Errorf("the second launch writes %d … %d %d, %d %d; before them %d", v[0], v[n/8-1], v[n/8], v[n/4], v[n/4+1], w[0])
	}
	// The other exec of the graph is unchanged.
	ok(t, d.LaunchGraph(s, other))
	finish(t, d, s)
	if w[0] != 100 || w[n/4] != 2 {
		t.Errorf("the other exec writes %d, %d", w[0], w[n/4])
	}
	if dl.Fast {
		op := indexOp(1, n/4, dev.Ptr)
		var sink error
		if n := testing.AllocsPerRun(100, func() { sink = d.SetNode(x, kernel, op) }); n != 0 || sink != nil {
			t.Errorf("SetNode allocates %v times, %v", n, sink)
		}
	}
	// The driver may refuse to change a node's size or kinds of memory.
	for name, err := range map[string]error{
		"a longer fill":        d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 4, Count: 2 * n}),
		"a shorter fill":       d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 4, Count: 4}),
		"a fill of width 1":    d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 1, Count: n}),
		"a fill of the host":   d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: host.Ptr, Pattern: 3, Width: 4, Count: n / 4}),
		"a column for a fill":  d.SetNode(x, fill, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 4, Count: 4, Stride: 8}),
		"a longer column":      d.SetNode(x, column, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 4, Count: 11, Stride: 16}),
		"a wider column":       d.SetNode(x, column, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 3, Width: 4, Count: 10, Stride: 20}),
		"a shorter copy":       d.SetNode(x, down, &driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr, Src: dev.Ptr, Count: 4}),
		"a longer copy":        d.SetNode(x, down, &driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr, Src: dev.Ptr, Count: 8 * n}),
		"a copy the other way": d.SetNode(x, down, &driver.NodeOp{Kind: driver.CopyNode, Dst: dev.Ptr, Src: host.Ptr, Count: 2 * n}),
		"a copy in the device": d.SetNode(x, down, &driver.NodeOp{Kind: driver.CopyNode, Dst: dev.Ptr, Src: dev.Ptr + 4*n, Count: 2 * n}),
	} {
		t.Logf("%s: %v", name, err)
		if errors.Is(err, driver.ErrLost) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := d.SetNode(x, kernel, &driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Width: 4, Count: 1}); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("a fill for a kernel: %v", err)
	}
}

// TestGPUGraphOverlap checks that eight independent kernels of a graph run at the same time.
func TestGPUGraphOverlap(t *testing.T) {
	d := openGraphs(t)
	s := newStream(t, d)
	spin, _ := load(t, d, []byte(gpuPTX), "spin")
	const each = 10 * time.Millisecond
	measure := func(kernels int) time.Duration {
		t.Helper()
		from, to := newTimer(t, d), newTimer(t, d)
		g := newGraph(t, d)
		start := addNode(t, d, g, &driver.NodeOp{Kind: driver.RecordNode, Event: from})
		var all []driver.Node
		for range kernels {
			all = append(all, addNode(t, d, g, kernelOp(spin, 1, 1, arg(uint64(each))), start))
		}
		addNode(t, d, g, &driver.NodeOp{Kind: driver.RecordNode, Event: to}, all...)
		x := instantiate(t, d, g)
		for range 2 { // the first launch is slower
			ok(t, d.LaunchGraph(s, x))
			finish(t, d, s)
		}
		took, err := d.Elapsed(from, to)
		ok(t, err)
		return took
	}
	overlap(t, each, measure)
}

// overlap checks that eight long kernels do not take much longer together than one.
func overlap(t *testing.T, each time.Duration, measure func(kernels int) time.Duration) {
	t.Helper()
	one, eight := measure(1), measure(8)
	t.Logf("one kernel takes %v, eight %v", one, eight)
	if one < each-each/10 || eight > 2*one {
		t.Errorf("eight kernels take %v, where one takes %v", eight, one)
	}
}

// TestGPURecordedOverlap checks that eight independent kernels of a command buffer run at the same
// time.
func TestGPURecordedOverlap(t *testing.T) {
	openGraphs(t)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	code, err := dev.Load([]byte(gpuPTX))
	ok(t, err)
	spin, err := code.Kernel("spin")
	ok(t, err)
	const each = 10 * time.Millisecond
	measure := func(kernels int) time.Duration {
		t.Helper()
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
		ok(t, err)
		defer c.Close()
		from, err := c.Timestamp()
		ok(t, err)
		var all []gpu.Command
		for range kernels {
			at, err := c.Add(gpu.Launch(spin, gpu.Grid{}, uint64(each)), from)
			ok(t, err)
			all = append(all, at)
		}
		to, err := c.Timestamp(all...)
		ok(t, err)
		ok(t, c.End())
		s, err := gpu.NewSemaphore(0)
		ok(t, err)
		for i := range uint64(2) { // the first execution is slower
			ok(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: i + 1}}}, gpu.Execute(c)))
			ok(t, s.Wait(t.Context(), i+1))
		}
		took, err := c.Elapsed(from, to)
		ok(t, err)
		return took
	}
	overlap(t, each, measure)
}

// TestGPUGraphMany runs a long chain of nodes, a wide graph, and graphs with one node or none.
func TestGPUGraphMany(t *testing.T) {
	d := openGraphs(t)
	a, b := newStream(t, d), newStream(t, d)
	bump, _ := load(t, d, []byte(gpuPTX), "bump")
	m := alloc(t, d, driver.HostMem, 256)
	clear(words(m))
	bumpOp := func(i int) *driver.NodeOp { return kernelOp(bump, 1, 1, arg(m.Ptr+driver.Ptr(4*i)), arg(uint32(i+1))) }

	const nodes = 200
	g := newGraph(t, d)
	var last driver.Node
	for range nodes {
		last = addNode(t, d, g, bumpOp(0), nodesOf(last)...)
	}
	start := time.Now()
	x := instantiate(t, d, g)
	t.Logf("a graph of %d nodes is ready after %v", nodes, time.Since(start))
	const launches = 20
	for range launches { // launches run one after another in any streams
		ok(t, d.LaunchGraph(a, x))
		ok(t, d.LaunchGraph(b, x))
	}
	finish(t, d, a)
	finish(t, d, b)
	if got := words(m)[0]; got != 2*launches*nodes {
		t.Errorf("%d launches of %d kernels count %d", 2*launches, nodes, got)
	}

	// A wide graph: 32 nodes, an empty node that waits for all of them, and 32 nodes that wait for
	// the empty node.
	g = newGraph(t, d)
	var layer []driver.Node
	for i := range 32 {
		layer = append(layer, addNode(t, d, g, bumpOp(i)))
	}
	middle := addNode(t, d, g, &driver.NodeOp{Kind: driver.EmptyNode}, layer...)
	for i := range 32 {
		addNode(t, d, g, bumpOp(31-i), middle)
	}
	x = instantiate(t, d, g)
	clear(words(m))
	ok(t, d.LaunchGraph(a, x))
	finish(t, d, a)
	for i, got := range words(m)[:32] {
		if got != 2*uint32(i+1) {
			t.Errorf("number %d is %d", i, got)
		}
	}
	// A graph with one kernel without parameters, and a graph without nodes.
	empty, _ := load(t, d, []byte(emptyPTX), "empty")
	g = newGraph(t, d)
	addNode(t, d, g, kernelOp(empty, 1, 1))
	for _, g := range []driver.Graph{g, newGraph(t, d)} {
		ok(t, d.LaunchGraph(a, instantiate(t, d, g)))
	}
	finish(t, d, a)
}

func TestGPUGraphChild(t *testing.T) {
	d := openGraphs(t)
	s := newStream(t, d)
	bump, _ := load(t, d, []byte(gpuPTX), "bump")
	m := alloc(t, d, driver.HostMem, 64)
	clear(words(m))
	op := kernelOp(bump, 1, 1, arg(m.Ptr), arg(uint32(1)))
	child := newGraph(t, d)
	n := addNode(t, d, child, op)
	g := newGraph(t, d)
	first := addNode(t, d, g, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
	addNode(t, d, child, op, n) // the first child node has a copy of the graph without this node
	second := addNode(t, d, g, &driver.NodeOp{Kind: driver.ChildNode, Child: child}, first)
	addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: m.Ptr + 4, Src: m.Ptr, Count: 4}, second)
	x := instantiate(t, d, g)
	for range 5 {
		ok(t, d.LaunchGraph(s, x))
	}
	finish(t, d, s)
	if w := words(m); w[0] != 15 || w[1] != 15 {
		t.Errorf("the children count %d, seen as %d", w[0], w[1])
	}
	if _, err := d.AddNode(g, nil, &driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Width: 3, Count: 1}); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("a fill of width 3: %v", err)
	}
}

// TestGPUGraphBig fills and copies more than 4 GiB.
func TestGPUGraphBig(t *testing.T) {
	d := openGraphs(t)
	const n = 1<<32 + 1<<20 + 5
	if d.info.Memory < 6*n {
		t.Skipf("two times %d bytes are much for a device of %d", uint64(n), d.info.Memory)
	}
	s := newStream(t, d)
	src, err := d.Alloc(driver.DeviceMem, n)
	if errors.Is(err, driver.ErrOutOfMemory) {
		t.Skip(err)
	}
	ok(t, err)
	defer func() { ok(t, d.Free(src)) }()
	dst, err := d.Alloc(driver.DeviceMem, n)
	if errors.Is(err, driver.ErrOutOfMemory) {
		t.Skip(err)
	}
	ok(t, err)
	defer func() { ok(t, d.Free(dst)) }()
	ok(t, d.Fill(s, dst.Ptr, 0, 1, n))
	g := newGraph(t, d)
	fill := addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: src.Ptr, Pattern: 0x5a, Width: 1, Count: n})
	addNode(t, d, g, &driver.NodeOp{Kind: driver.CopyNode, Dst: dst.Ptr, Src: src.Ptr, Count: n}, fill)
	x := instantiate(t, d, g)
	ok(t, d.LaunchGraph(s, x))
	finish(t, d, s)
	host := alloc(t, d, driver.HostMem, 64)
	out := unsafe.Slice((*byte)(host.Host), 64)
	for _, at := range []uint64{0, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, n - 1} {
		ok(t, d.Download(s, host.Host, dst.Ptr+driver.Ptr(at), 1))
		finish(t, d, s)
		if out[0] != 0x5a {
			t.Errorf("byte %d is %#x", at, out[0])
		}
		out[0] = 0
	}
}

func TestGPUTimers(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	from, to := newTimer(t, d), newTimer(t, d)
	spin, _ := load(t, d, []byte(gpuPTX), "spin")
	one := [3]uint32{1, 1, 1}
	busy := &driver.Launch{Function: spin, Grid: one, Block: one, Args: []unsafe.Pointer{arg(uint64(20e6))}}
	if took, err := d.Elapsed(from, to); !errors.Is(err, cuda.ErrorInvalidHandle) || errors.Is(err, driver.ErrLost) {
		t.Errorf("timers never recorded: %v, %v", took, err)
	}
	ok(t, d.Launch(s, busy)) // the first launch is slower
	ok(t, d.Record(from, s))
	ok(t, d.Launch(s, busy))
	ok(t, d.Record(to, s))
	if took, err := d.Elapsed(from, to); !errors.Is(err, cuda.ErrorNotReady) || errors.Is(err, driver.ErrLost) {
		t.Errorf("timers not reached: %v, %v", took, err)
	}
	finish(t, d, s)
	var took time.Duration
	ask := func() (err error) {
		took, err = d.Elapsed(from, to)
		return err
	}
	ok(t, ask())
	if took < 19*time.Millisecond || took > 100*time.Millisecond {
		t.Errorf("a kernel of 20 ms takes %v", took)
	}
	want := took
	if elsewhere(t, d, ask); took != want {
		t.Errorf("elsewhere it takes %v, not %v", took, want)
	}
	back, err := d.Elapsed(to, from)
	if ok(t, err); back != -took {
		t.Errorf("backwards it takes %v, forwards %v", back, took)
	}
	none, err := d.Elapsed(from, from)
	if ok(t, err); none != 0 {
		t.Errorf("from a timer to itself it takes %v", none)
	}
	if dl.Fast {
		var sink error
		if n := testing.AllocsPerRun(100, func() { sink = ask() }); n != 0 || sink != nil {
			t.Errorf("Elapsed allocates %v times, %v", n, sink)
		}
	}
	e := newEvent(t, d)
	ok(t, d.Record(e, s))
	finish(t, d, s)
	if took, err := d.Elapsed(from, e); !errors.Is(err, cuda.ErrorInvalidHandle) || errors.Is(err, driver.ErrLost) {
		t.Errorf("an event without times: %v, %v", took, err)
	}
}
