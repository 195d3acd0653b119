package cudadriver

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	runtimecontrol "github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// decodePTX has the kernels of the tests in this file.
const decodePTX = `.version 6.4
.target sm_52
.address_size 64

// bump adds to a number.
.visible .entry bump(.param .u64 bump_p, .param .u32 bump_by)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [bump_p];
	ld.param.u32 %r1, [bump_by];
	ld.global.u32 %r2, [%rd1];
	add.s32 %r3, %r2, %r1;
	st.global.u32 [%rd1], %r3;
	ret;
}

// decode adds 1 to the length of each sequence that is shorter than its end. It adds to more the
// number of sequences that are still shorter then. Thread i has sequence i, and one block has all
// of them. more was set to 0 before.
.visible .entry decode(.param .u64 decode_lengths, .param .u64 decode_ends, .param .u64 decode_more)
{
	.reg .pred %p<3>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [decode_lengths];
	ld.param.u64 %rd2, [decode_ends];
	ld.param.u64 %rd3, [decode_more];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd4, %r1, 4;
	add.u64 %rd1, %rd1, %rd4;
	add.u64 %rd2, %rd2, %rd4;
	ld.global.u32 %r2, [%rd1];
	ld.global.u32 %r3, [%rd2];
	setp.ge.u32 %p1, %r2, %r3;
	@%p1 bra $end;
	add.u32 %r2, %r2, 1;
	st.global.u32 [%rd1], %r2;
	setp.ge.u32 %p2, %r2, %r3;
	@%p2 bra $end;
	mov.u32 %r4, 1;
	red.global.add.u32 [%rd3], %r4;
$end:
	ret;
}
`

// TestGPUConditionalLoading loads the kernel of test nodes in each possible way and logs which ways
// work. The kernel calls cudaGraphSetConditional, which the CUDA driver must provide.
func TestGPUConditionalLoading(t *testing.T) {
	d := openGPU(t)
	if !d.caps.Conditionals {
		t.Skip("no conditional nodes")
	}
	ptx := func(version, target string) []byte {
		text := strings.Replace(testKernel, ".version 6.4", ".version "+version, 1)
		return append([]byte(strings.Replace(text, "sm_52", target, 1)), 0)
	}
	own := fmt.Sprintf("sm_%d%d", d.info.Major, d.info.Minor)
	var lines []string
	for _, x := range []struct {
		name string
		load func() error
	}{
		{"as the driver does (Load)", d.ReadyConditionals},
		{"module, PTX 6.4, sm_52", func() error { return loadModule(d, ptx("6.4", "sm_52")) }},
		{"module, PTX 8.0, " + own, func() error { return loadModule(d, ptx("8.0", own)) }},
		{"library, PTX 6.4, sm_52", func() error { return loadLibrary(d, ptx("6.4", "sm_52")) }},
		{"library, PTX 8.0, " + own, func() error { return loadLibrary(d, ptx("8.0", own)) }},
	} {
		result := "works"
		if err := x.load(); err != nil {
			result = err.Error()
		}
		lines = append(lines, fmt.Sprintf("%-30s %s", x.name, result))
	}
	t.Logf("loading the kernel of test nodes:\n%s", strings.Join(lines, "\n"))
	ok(t, d.ReadyConditionals())
}

func loadModule(d *device, image []byte) error {
	m, err := d.lib.ModuleLoadData(unsafe.Pointer(&image[0]))
	if err != nil {
		return err
	}
	defer d.lib.ModuleUnload(m)
	_, err = d.lib.ModuleGetFunction(m, "puregpu_test")
	return err
}

func loadLibrary(d *device, image []byte) error {
	if !d.lib.HasSymbol("cuLibraryLoadData") {
		return driver.ErrUnsupported
	}
	l, err := d.lib.LibraryLoadData(unsafe.Pointer(&image[0]), nil, nil, nil, nil)
	if err != nil {
		return err
	}
	defer d.lib.LibraryUnload(l)
	m, err := d.lib.LibraryGetModule(l)
	if err == nil {
		_, err = d.lib.ModuleGetFunction(m, "puregpu_test")
	}
	return err
}

// TestGPUConditional runs nested conditional nodes, and sets nodes of bodies: kernels, copies, fills
// and tests.
func TestGPUConditional(t *testing.T) {
	d := openGraphs(t)
	if !d.caps.Conditionals {
		t.Skip("no conditional nodes")
	}
	ok(t, d.ReadyConditionals())
	s := newStream(t, d)
	bump, _ := load(t, d, []byte(decodePTX), "bump")
	mem, host := alloc(t, d, driver.DeviceMem, 4096), alloc(t, d, driver.HostMem, 4096)
	w := unsafe.Slice((*uint32)(host.Host), 16)
	at := func(i int) driver.Ptr { return mem.Ptr + driver.Ptr(4*i) }
	g := newGraph(t, d)
	test := func(in driver.Graph, c driver.Condition, i int, after ...driver.Node) (driver.Node, *driver.NodeOp) {
		op := &driver.NodeOp{Kind: driver.TestNode, Src: at(i), Test: driver.Test{Condition: c, Low: 1, High: 0xffffffff}}
		return addNode(t, d, in, op, after...), op
	}
	conditional := func(in driver.Graph, kind driver.NodeKind, i int, after ...driver.Node) (c driver.Condition, n driver.Node, body driver.Graph) {
		c, err := d.NewCondition(in)
		ok(t, err)
		first, _ := test(in, c, i, after...)
		n, body, err = d.AddConditional(in, []driver.Node{first}, &driver.NodeOp{Kind: kind, Test: driver.Test{Condition: c}})
		ok(t, err)
		return c, n, body
	}
	// while w[0] { w[1] = w[2]; w[3]++; w[0]--; if w[4] { w[5]++ }; while w[1] { w[1]--; w[6]++ } }; w[7] = 9
	c, n, outer := conditional(g, driver.WhileNode, 0)
	a := addNode(t, d, outer, &driver.NodeOp{Kind: driver.CopyNode, Dst: at(1), Src: at(2), Count: 4})
	plus := addNode(t, d, outer, kernelOp(bump, 1, 1, arg(at(3)), arg(uint32(1))), a)
	b := addNode(t, d, outer, kernelOp(bump, 1, 1, arg(at(0)), arg(^uint32(0))), plus)
	_, yes, then := conditional(outer, driver.IfNode, 4, b)
	addNode(t, d, then, kernelOp(bump, 1, 1, arg(at(5)), arg(uint32(1))))
	c2, inner, loop := conditional(outer, driver.WhileNode, 1, yes)
	e := addNode(t, d, loop, kernelOp(bump, 1, 1, arg(at(1)), arg(^uint32(0))))
	e = addNode(t, d, loop, kernelOp(bump, 1, 1, arg(at(6)), arg(uint32(1))), e)
	test(loop, c2, 1, e)
	last, lastOp := test(outer, c, 0, inner)
	addNode(t, d, g, &driver.NodeOp{Kind: driver.FillNode, Dst: at(7), Pattern: 9, Width: 4, Count: 1}, n)
	x := instantiate(t, d, g)
	run := func(want ...uint32) {
		t.Helper()
		ok(t, d.Upload(s, mem.Ptr, host.Host, 64))
		ok(t, d.LaunchGraph(s, x))
		ok(t, d.Download(s, host.Host, mem.Ptr, 64))
		finish(t, d, s)
		if !slices.Equal(w[:len(want)], want) {
			t.Errorf("%v, want %v", w[:len(want)], want)
		}
	}
	copy(w, []uint32{5, 0, 3, 0, 1, 0, 0, 0})
	run(0, 0, 3, 5, 1, 5, 15, 9)
	copy(w, []uint32{0, 7, 3, 0, 1, 0, 0, 0})
	run(0, 7, 3, 0, 1, 0, 0, 9)
	copy(w, []uint32{2, 0, 4, 0, 0, 0, 0, 0})
	run(0, 0, 4, 2, 0, 0, 8, 9)
	// From here on the body counts in w[8] and copies from w[9], and the body's last test reads
	// w[10].
	lastOp.Src = at(10)
	ok(t, d.SetNodes(x, []driver.Node{a, plus, last}, []driver.NodeOp{
		{Kind: driver.CopyNode, Dst: at(1), Src: at(9), Count: 4}, *kernelOp(bump, 1, 1, arg(at(8)), arg(uint32(2))), *lastOp}))
	copy(w, []uint32{5, 0, 3, 0, 1, 0, 0, 0, 0, 2, 0})
	run(4, 0, 3, 0, 1, 1, 2, 9, 2, 2, 0)
}

// TestGPUControl runs a decode loop until all sequences have ended: controlled by the device, if it
// can, and controlled by the host. The test logs the average time of a repetition in the fastest of
// five runs.
func TestGPUControl(t *testing.T) {
	d := openGPU(t)
	drv, err := Open(cuda.Options{})
	ok(t, err)
	dev, err := gpu.Open(drv, 0, gpu.Options{})
	ok(t, err)
	defer func() { ok(t, dev.Close()) }()
	code, err := dev.Load([]byte(decodePTX))
	ok(t, err)
	decode, err := code.Kernel("decode")
	ok(t, err)
	const sequences, longest, works = 64, 500, 8
	numbers := func(n int) gpu.Slice[uint32] {
		s, err := gpu.AllocSlice[uint32](dev, gpu.DeviceMem, n)
		ok(t, err)
		return s
	}
	lengths, ends, more, extra := numbers(sequences), numbers(sequences), numbers(1), numbers(1)
	want := make([]uint32, sequences)
	for i := range want {
		want[i] = uint32(1 + i*(longest-1)/(sequences-1))
	}
	bytes := func(all ...uint32) (b []byte) {
		for _, n := range all {
			b = binary.NativeEndian.AppendUint32(b, n)
		}
		return b
	}
	bump, err := code.Kernel("bump")
	ok(t, err)
	lines := []string{fmt.Sprintf("conditional nodes: %v", d.caps.Conditionals)}
	for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.StreamMode} {
		record := func(ops ...gpu.Op) (*gpu.CommandBuffer, gpu.Command) {
			c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode, InOrder: true})
			ok(t, err)
			var at gpu.Command
			for _, op := range ops {
				at, err = c.Add(op)
				ok(t, err)
			}
			ok(t, c.End())
			return c, at
		}
		all := []gpu.Op{gpu.Fill(more.Range(), []byte{0}), gpu.Launch(decode, gpu.Grid{Threads: [3]uint32{sequences}}, lengths, ends, more)}
		for range works { // stand for the layers of a network
			all = append(all, gpu.Launch(bump, gpu.Grid{}, extra, uint32(1)))
		}
		step, _ := record(all...)
		loop, at := record(gpu.Fill(lengths.Range(), []byte{0}), gpu.Fill(extra.Range(), []byte{0}), gpu.Fill(more.Range(), bytes(1)),
			runtimecontrol.While(more, gpu.Execute(step)))
		why, err := runtimecontrol.Host(loop, at)
		ok(t, err)
		if mode == gpu.AutoMode && d.caps.Conditionals && why != "" {
			t.Errorf("the host runs the loop because %s", why)
		}
		s := dev.Queue(0).NewStream()
		got, count := make([]byte, 4*sequences), make([]byte, 4)
		best := time.Hour
		ok(t, s.Upload(ends.Range(), bytes(want...)))
		for range 5 {
			ok(t, s.Wait(context.Background()))
			began := time.Now()
			ok(t, s.Do(gpu.Execute(loop)))
			ok(t, s.Wait(context.Background()))
			best = min(best, time.Since(began))
		}
		ok(t, s.Do(gpu.Download(got, lengths.Range()), gpu.Download(count, extra.Range())))
		ok(t, s.Wait(context.Background()))
		if !slices.Equal(got, bytes(want...)) || binary.NativeEndian.Uint32(count) != works*longest {
			t.Errorf("mode %d: %d steps, lengths %v", mode, binary.NativeEndian.Uint32(count)/works, got)
		}
		if why == "" {
			why = "by the device"
		} else {
			why = "by the host: " + why
		}
		lines = append(lines, fmt.Sprintf("%d repetitions of %d kernels and a fill: %.2f µs each, %s", longest, works+1, float64(best.Nanoseconds())/1000/longest, why))
	}
	t.Logf("decode loop:\n%s", strings.Join(lines, "\n"))
}
