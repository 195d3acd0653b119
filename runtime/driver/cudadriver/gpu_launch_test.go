package cudadriver

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// tile is a kernel that loads a box of 16 by 16 words, at column 8 and row 4, with the tensor
// memory accelerator, and copies the box to the memory at tile_out with 256 threads.
const tile = `.version 8.0
.target sm_90
.address_size 64

.visible .entry tile(
	.param .u32 tile_first,
	.param .align 64 .b8 tile_map[128],
	.param .u64 tile_out
)
{
	.reg .pred %p<3>;
	.reg .b32 %r<14>;
	.reg .b64 %rd<8>;
	.shared .align 128 .b8 tile_box[1024];
	.shared .align 8 .b64 tile_bar;

	ld.param.u32 %r10, [tile_first];
	ld.param.u64 %rd1, [tile_out];
	cvta.to.global.u64 %rd2, %rd1;
	mov.b64 %rd3, tile_map;
	cvta.param.u64 %rd4, %rd3;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile_box;
	mov.u32 %r3, tile_bar;
	mov.u32 %r11, 1;
	mov.u32 %r12, 0;
	mov.u32 %r13, 1024;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $tile_ready;
	mbarrier.init.shared::cta.b64 [%r3], %r11;
	fence.proxy.async;

$tile_ready:
	bar.sync 0;
	@%p1 bra $tile_wait;
	mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [%r3], %r13;
	mov.u32 %r4, 8;
	mov.u32 %r5, 4;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd4, {%r4, %r5}], [%r3];

$tile_wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r12;
	@!%p2 bra $tile_wait;

	shl.b32 %r6, %r1, 2;
	add.u32 %r7, %r2, %r6;
	ld.shared.u32 %r8, [%r7];
	add.u32 %r8, %r8, %r10;
	mul.wide.u32 %rd6, %r1, 4;
	add.s64 %rd7, %rd2, %rd6;
	st.global.u32 [%rd7], %r8;
	ret;
}
` + "\x00"

// TestGPUTensorMap passes a tensor map by value, in a struct of arguments, in a stream and in a
// recording.
func TestGPUTensorMap(t *testing.T) {
	d := openGPU(t)
	if d.info.Major < 9 || !d.lib.HasSymbol("cuTensorMapEncodeTiled") {
		t.Skip("no tensor memory accelerator")
	}
	drv, err := New(d.lib)
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	x, err := dev.Load([]byte(tile))
	ok(t, err)
	defer x.Close()
	kernel, err := x.Kernel("tile")
	ok(t, err)
	type args struct {
		First uint32
		Map   cuda.TensorMap
		Out   gpu.Slice[uint32]
	}
	k, err := gpu.Typed[args](kernel)
	ok(t, err)
	const width, height, box = 64, 32, 16
	in, err := gpu.AllocSlice[uint32](dev, gpu.DeviceMem, width*height)
	ok(t, err)
	defer in.Close()
	out, err := gpu.AllocSlice[uint32](dev, gpu.DeviceMem, box*box)
	ok(t, err)
	defer out.Close()
	m := cuda.NewTensorMap()
	ok(t, d.lib.TensorMapEncodeTiled(m, cuda.TensorMapDataTypeUint32, cuda.DevicePtr(in.Range().Buffer.Ptr()), []uint64{width, height}, []uint64{4 * width},
		[]uint32{box, box}, []uint32{1, 1}, cuda.TensorMapInterleaveNone, cuda.TensorMapSwizzleNone, cuda.TensorMapL2PromotionNone, cuda.TensorMapFloatOOBFillNone))
	numbers := make([]uint32, width*height)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	s := dev.Queue(0).NewStream()
	ok(t, s.Do(in.UploadCopy(numbers)))
	grid := gpu.Grid{Blocks: [3]uint32{1, 1, 1}, Threads: [3]uint32{box * box}}
	check := func(what string, first uint32) {
		t.Helper()
		got := make([]uint32, box*box)
		ok(t, s.Do(out.Download(got)))
		ok(t, s.Wait(t.Context()))
		for i, v := range got {
			if want := first + uint32((4+i/box)*width+8+i%box); v != want {
				t.Fatalf("%s: element %d is %d, want %d", what, i, v, want)
			}
		}
	}
	for first := range uint32(40) { // each launch copies its arguments to another place, which may be aligned differently
		ok(t, s.Do(k.Launch(grid, args{first, *m, out})))
	}
	check("a stream", 39)
	for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		ok(t, err)
		_, err = c.Add(k.Launch(grid, args{100, *m, out}))
		ok(t, err)
		ok(t, c.End())
		ok(t, s.Do(gpu.Execute(c)))
		check("a recording", 100)
		ok(t, c.Close())
	}
}

// TestGPULaunchAttrs launches with each attribute alone, in a stream and as a node, and logs the
// driver's errors.
func TestGPULaunchAttrs(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	fn, info := load(t, d, []byte(emptyPTX), "empty")
	t.Logf("%+v, priorities from %d to %d; clusters of at most %d blocks", d.caps, d.caps.PriorityRange[0], d.caps.PriorityRange[1], info.MaxCluster)
	launch := func(a driver.LaunchAttrs, blocks uint32) (err, node error) {
		l := driver.Launch{Function: fn, Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{32, 1, 1}, Attrs: a}
		err = d.Launch(s, &l)
		g, made := d.NewGraph()
		ok(t, made)
		defer d.DestroyGraph(g)
		first, made := d.AddNode(g, nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{Function: fn, Grid: l.Grid, Block: l.Block}})
		ok(t, made)
		n, node := d.AddNode(g, []driver.Node{first}, &driver.NodeOp{Kind: driver.KernelNode, Launch: l})
		if node != nil {
			return err, node
		}
		exec, node := d.Instantiate(g)
		if node != nil {
			return err, node
		}
		defer d.DestroyExec(exec)
		l.Grid[0] *= 2
		if node = d.SetNode(exec, n, &driver.NodeOp{Kind: driver.KernelNode, Launch: l}); node == nil {
			node = d.LaunchGraph(s, exec)
		}
		finish(t, d, s)
		return err, node
	}
	for _, c := range []struct {
		attrs driver.LaunchAttrs
		has   bool
	}{
		{driver.LaunchAttrs{Cooperative: true}, d.caps.Cooperative},
		{driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}}, d.caps.Clusters},
		{driver.LaunchAttrs{Cluster: [3]uint32{8, 1, 1}}, d.caps.Clusters},
		{driver.LaunchAttrs{Dependent: true}, d.caps.DependentLaunch},
		{driver.LaunchAttrs{Dependent: true, Cluster: [3]uint32{4, 1, 1}}, d.caps.DependentLaunch && d.caps.Clusters},
		{driver.LaunchAttrs{Priority: d.caps.PriorityRange[1]}, true},
		{driver.LaunchAttrs{Carveout: -1}, true},
		{driver.LaunchAttrs{Carveout: 100}, true},
	} {
		err, node := launch(c.attrs, 8)
		if c.has && (err != nil || node != nil) || !c.has && (!errors.Is(err, driver.ErrUnsupported) || !errors.Is(node, driver.ErrUnsupported)) {
			t.Errorf("%+v: a launch: %v; a node: %v", c.attrs, err, node)
		}
	}
	if d.caps.Clusters {
		err, node := launch(driver.LaunchAttrs{Cluster: [3]uint32{2, 1, 1}, Cooperative: d.caps.Cooperative}, 8)
		t.Logf("cooperative, in clusters: %v; a node: %v", err, node)
		err, node = launch(driver.LaunchAttrs{Cluster: [3]uint32{3, 1, 1}}, 8)
		t.Logf("clusters that do not divide the grid: %v; a node: %v", err, node)
		if err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("clusters that do not divide the grid: %v", err)
		}
		err, node = launch(driver.LaunchAttrs{Cluster: [3]uint32{64, 1, 1}}, 64)
		t.Logf("clusters of 64 blocks: %v; a node: %v", err, node)
		if err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("clusters of 64 blocks: %v", err)
		}
	}
	if d.caps.Cooperative {
		held, err := d.Occupancy(fn, 32, 0)
		ok(t, err)
		err, node := launch(driver.LaunchAttrs{Cooperative: true}, uint32(held*d.info.Processors+1))
		t.Logf("a cooperative grid of one block more than %d: %v; a node: %v", held*d.info.Processors, err, node)
		if err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("a cooperative grid too large: %v", err)
		}
	}
}

// await is a kernel that waits until a word is not 0, for some tens of milliseconds at most. It
// writes the value that it has read to the next word.
const await = `.version 6.4
.target sm_52
.address_size 64

.visible .entry await(.param .u64 await_p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;

	ld.param.u64 %rd1, [await_p];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r1, 0;
$await_again:
	ld.volatile.global.u32 %r2, [%rd2];
	setp.ne.u32 %p1, %r2, 0;
	@%p1 bra $await_end;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p2, %r1, 100000;
	@%p2 bra $await_again;
$await_end:
	st.global.u32 [%rd2+4], %r2;
	ret;
}
` + "\x00"

// TestGPULaunchEvents records an event when a launch begins. A fill in another stream waits for the
// event, and the kernel waits for the fill. The kernel must see the fill. A fill that waits for an
// event recorded after the launch comes too late for the kernel.
func TestGPULaunchEvents(t *testing.T) {
	d := openGPU(t)
	if !d.caps.LaunchEvents {
		t.Skip("launches record no events")
	}
	fn, _ := load(t, d, []byte(await), "await")
	s, other, e := newStream(t, d), newStream(t, d), newEvent(t, d)
	mem, host := alloc(t, d, driver.DeviceMem, 8), alloc(t, d, driver.HostMem, 8)
	words := unsafe.Slice((*uint32)(host.Host), 2)
	found := func(begun driver.Event) bool {
		t.Helper()
		l := driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{arg(mem.Ptr)}, Begun: begun}
		ok(t, d.Fill(s, mem.Ptr, 0, 4, 2))
		ok(t, d.Launch(s, &l))
		if begun == 0 {
			ok(t, d.Record(e, s))
		}
		ok(t, d.StreamWait(other, e))
		ok(t, d.Fill(other, mem.Ptr, 1, 4, 1))
		finish(t, d, other)
		finish(t, d, s)
		ok(t, d.Copy(s, host.Ptr, mem.Ptr, 8))
		finish(t, d, s)
		if done, err := d.Query(e); !done || err != nil || words[0] != 1 {
			t.Fatalf("the event is complete: %v, %v; the fill has written %d", done, err, words[0])
		}
		return words[1] != 0
	}
	const rounds = 10
	beside := 0
	for range rounds {
		if found(e) {
			beside++
		}
	}
	t.Logf("in %d of %d rounds the fill came beside the kernel", beside, rounds)
	// Concurrency is allowed but not guaranteed. Tools that watch kernels may prevent it. With such
	// a tool the tests run with -short.
	if beside == 0 && !testing.Short() {
		t.Error("work after the beginning of a kernel never ran concurrently with it")
	}
	if found(0) {
		t.Error("work after the end of a kernel ran concurrently with it")
	}
	for what, flags := range map[string]cuda.EventFlags{"notes times": cuda.EventDefault, "is one of several processes": cuda.EventDisableTiming | cuda.EventInterprocess} {
		event, err := d.lib.EventCreate(flags)
		ok(t, err)
		l := driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{arg(mem.Ptr)}, Begun: driver.Event(event)}
		err = d.Launch(s, &l)
		t.Logf("an event that %s: %v", what, err)
		if errors.Is(err, driver.ErrLost) {
			t.Errorf("an event that %s: %v", what, err)
		}
		finish(t, d, s)
		ok(t, d.lib.EventDestroy(event))
	}
}

// TestGPUPriorities makes streams of each priority, and of one priority beyond each end of the
// range. It submits work to all the streams. It measures launches with and without attributes.
func TestGPUPriorities(t *testing.T) {
	d := openGPU(t)
	fn, _ := load(t, d, []byte(emptyPTX), "empty")
	l := driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}
	least, most := d.caps.PriorityRange[0], d.caps.PriorityRange[1]
	if least == most {
		t.Skip("no priorities")
	}
	for p := most - 1; p <= least+1; p++ {
		s, err := d.NewPriorityStream(p)
		ok(t, err)
		got, err := d.lib.StreamGetPriority(cuda.Stream(s))
		if want := min(max(p, most), least); int(got) != want || err != nil {
			t.Errorf("a stream of priority %d has %d, %v", p, got, err)
		}
		ok(t, d.Launch(s, &l))
		finish(t, d, s)
		ok(t, d.DestroyStream(s))
	}
	s := newStream(t, d)
	for name, a := range map[string]driver.LaunchAttrs{"plain": {}, "with attributes": {Priority: most, Carveout: 50}} {
		l.Attrs = a
		const n = 2000
		start := time.Now()
		for range n {
			ok(t, d.Launch(s, &l))
		}
		took := time.Since(start)
		finish(t, d, s)
		t.Logf("a launch, %s: %v", name, took/n)
	}
}
