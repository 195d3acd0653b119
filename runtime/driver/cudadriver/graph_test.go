//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// countOp makes a node whose kernel adds the number at by to a counter.
func countOp(f driver.Function, counter **uint64, by *uint32) *driver.NodeOp {
	return &driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{
		Function: f, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8,
		Args: []unsafe.Pointer{unsafe.Pointer(counter), unsafe.Pointer(by)},
	}}
}

// TestGraphs tests graphs on a driver with each form of the functions for kernel nodes.
func TestGraphs(t *testing.T) {
	for release, suffix := range map[dl.Version]string{13000: "_v2", 11080: ""} {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := newFake(t, release)
			d := f.device()
			if !d.Caps().Graphs {
				t.Fatalf("%+v", d.Caps())
			}
			fn, _ := function(t, d, "count")
			m, err := d.Alloc(driver.HostMem, 64)
			ok(t, err)
			defer d.Free(m)
			out := unsafe.Slice((*byte)(m.Host), 64)
			counter, by := new(uint64), new(uint32)
			*by = 5
			f.Calls()

			child, err := d.NewGraph()
			ok(t, err)
			_, err = d.AddNode(child, nil, &driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr + 60, Pattern: 0x11112222, Width: 2, Count: 2})
			ok(t, err)
			g, err := d.NewGraph()
			ok(t, err)
			f.Want("cuGraphCreate(0)", "cuGraphAddMemsetNode(0x10001,; 0, 0x2222, 2, 2 1, 0xc0)", "cuGraphCreate(0)")
			var nodes []driver.Node
			add := func(op *driver.NodeOp, after ...driver.Node) {
				t.Helper()
				n, err := d.AddNode(g, after, op)
				ok(t, err)
				nodes = append(nodes, n)
			}
			add(&driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Pattern: 0xa1a2a3a4, Width: 1, Count: 8})
			add(&driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr + 8, Pattern: 0xb1b2b3b4, Width: 4, Count: 2, Stride: 4})
			add(&driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr + 2, Pattern: 0xc1c2c3c4, Width: 2, Count: 3, Stride: 4}, nodes...)
			add(&driver.NodeOp{Kind: driver.CopyNode, Dst: m.Ptr + 32, Src: m.Ptr, Count: 16}, nodes[2])
			add(&driver.NodeOp{Kind: driver.EmptyNode}, nodes[3])
			add(countOp(fn, &counter, by), nodes[4], nodes[3])
			add(&driver.NodeOp{Kind: driver.ChildNode, Child: child})
			add(&driver.NodeOp{Kind: driver.RecordNode, Event: event0}, nodes[6])
			f.Want(
				"cuGraphAddMemsetNode(0x10002,; 0, 0xa4, 1, 8 1, 0xc0)",
				"cuGraphAddMemsetNode(0x10002,; 0, 0xb1b2b3b4, 4, 2 1, 0xc0)",
				"cuGraphAddMemsetNode(0x10002, 0x30200 0x30201; 4, 0xc3c4, 2, 1 3, 0xc0)",
				"cuGraphAddMemcpyNode(0x10002, 0x30202; 4 to 4, 16 1 1, 0xc0)",
				"cuGraphAddEmptyNode(0x10002, 0x30203; )",
				"cuGraphAddKernelNode"+suffix+"(0x10002, 0x30204 0x30203; 0xf001, 2 3 4, 5 6 7, 8)",
				"cuGraphAddChildGraphNode(0x10002,; 0x10001)",
				"cuGraphAddEventRecordNode(0x10002, 0x30206; 0xe000)",
			)
			*by = 100 // AddNode has copied the old value
			x, err := d.Instantiate(g)
			ok(t, err)
			ok(t, d.LaunchGraph(stream0, x))
			f.Want("cuGraphInstantiateWithFlags(0x10002, 0)", "cuGraphLaunch(0x20001, 0x5000)")
			want := []byte{
				0xa4, 0xa4, 0xc4, 0xc3, 0xa4, 0xa4, 0xc4, 0xc3, 0xb4, 0xb3, 0xc4, 0xc3, 0xb4, 0xb3, 0xb2, 0xb1,
			}
			if !bytes.Equal(out[:16], want) || !bytes.Equal(out[32:48], want) || !bytes.Equal(out[60:], []byte{0x22, 0x22, 0x22, 0x22}) {
				t.Errorf("%x, want %x twice", out, want)
			}
			if *counter != 5 {
				t.Errorf("the kernel counts %d", *counter)
			}

			// Each exec has its own nodes. Setting a node of one exec changes neither the graph nor
			// other execs.
			other, err := d.Instantiate(g)
			ok(t, err)
			f.Calls()
			ok(t, d.SetNode(x, nodes[0], &driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Pattern: 0xd1d2d3d4, Width: 1, Count: 4}))
			ok(t, d.SetNode(x, nodes[2], &driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr + 16, Pattern: 0xe1e2e3e4, Width: 4, Count: 2, Stride: 12}))
			ok(t, d.SetNode(x, nodes[3], &driver.NodeOp{Kind: driver.CopyNode, Dst: m.Ptr + 48, Src: m.Ptr + 16, Count: 4}))
			ok(t, d.SetNode(x, nodes[5], countOp(fn, &counter, by)))
			f.Want(
				"cuCtxPushCurrent_v2(0xc0)",
				"cuGraphExecMemsetNodeSetParams(0x20001, 0x30200; 0, 0xd4, 1, 4 1, 0xc0)",
				"cuCtxPopCurrent_v2()",
				"cuCtxPushCurrent_v2(0xc0)",
				"cuGraphExecMemsetNodeSetParams(0x20001, 0x30202; 12, 0xe1e2e3e4, 4, 1 2, 0xc0)",
				"cuCtxPopCurrent_v2()",
				"cuCtxPushCurrent_v2(0xc0)",
				"cuGraphExecMemcpyNodeSetParams(0x20001, 0x30203; 4 to 4, 4 1 1, 0xc0)",
				"cuCtxPopCurrent_v2()",
				"cuCtxPushCurrent_v2(0xc0)",
				"cuGraphExecKernelNodeSetParams"+suffix+"(0x20001, 0x30205; 0xf001, 2 3 4, 5 6 7, 8)",
				"cuCtxPopCurrent_v2()",
			)
			clear(out)
			ok(t, d.LaunchGraph(stream0, x))
			want = make([]byte, 64)
			copy(want, "\xd4\xd4\xd4\xd4\x00\x00\x00\x00\xb4\xb3\xb2\xb1\xb4\xb3\xb2\xb1\xe4\xe3\xe2\xe1")
			copy(want[28:], "\xe4\xe3\xe2\xe1")
			copy(want[48:], "\xe4\xe3\xe2\xe1")
			copy(want[60:], "\x22\x22\x22\x22")
			if !bytes.Equal(out, want) || *counter != 105 {
				t.Errorf("%x, want %x; the kernel counts %d", out, want, *counter)
			}
			ok(t, d.LaunchGraph(stream0, other))
			if out[0] != 0xa4 || *counter != 110 {
				t.Errorf("the other exec writes %#x and counts %d", out[0], *counter)
			}
			f.Calls()
			ok(t, d.DestroyGraph(g))
			ok(t, d.DestroyGraph(child))
			ok(t, d.DestroyExec(x))
			ok(t, d.DestroyExec(other))
			f.Want("cuGraphDestroy(0x10002)", "cuGraphDestroy(0x10001)", "cuGraphExecDestroy(0x20001)", "cuGraphExecDestroy(0x20002)")
		})
	}
}

// TestGraphHeapFrames makes graph calls while the stack grows. Each call's arguments are in a frame
// on the heap.
func TestGraphHeapFrames(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	d.lib.HeapFrames()
	fn, _ := function(t, d, "count")
	counter, by := new(uint64), new(uint32)
	*by = 3
	g, err := d.NewGraph()
	ok(t, err)
	var nodes []driver.Node
	for i := range 50 {
		n, err := d.AddNode(g, nodes[max(0, i-2):], countOp(fn, &counter, by))
		ok(t, err)
		nodes = append(nodes, n)
		testlib.Deep(100 * i)
	}
	x, err := d.Instantiate(g)
	ok(t, err)
	*by = 4
	ok(t, d.SetNode(x, nodes[49], countOp(fn, &counter, by)))
	ok(t, d.LaunchGraph(stream0, x))
	if *counter != 49*3+4 {
		t.Errorf("the kernels count %d", *counter)
	}
	if calls := f.Calls(); !slices.Contains(calls, "cuGraphAddKernelNode_v2(0x10001, 0x3012f 0x30130; 0xf001, 2 3 4, 5 6 7, 8)") {
		t.Errorf("calls:\n%s", strings.Join(calls, "\n"))
	}
}

func TestGraphErrors(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	add := func(op *driver.NodeOp) error {
		n, err := d.AddNode(graph0+7, []driver.Node{1, 2}, op)
		if n != 0 {
			t.Errorf("node %#x in spite of %v", n, err)
		}
		return err
	}
	for name := range strings.SplitSeq("cuGraphAddEmptyNode cuGraphAddKernelNode_v2 cuGraphAddMemsetNode cuGraphAddMemcpyNode cuGraphAddChildGraphNode cuGraphAddEventRecordNode", " ") {
		f.Set(name, int(cuda.ErrorInvalidValue))
	}
	for says, err := range map[string]error{
		"add node: device 0 (Fake 0): empty node, after 2 others in graph 0x10007: ":           add(&driver.NodeOp{}),
		"function 0x5, grid [1 2 3], block [4 5 6], 7 bytes of dynamic shared memory, after 2": add(&driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{Function: 5, Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}, SharedMem: 7}}),
		"fill of 3 elements of 4 bytes at 0x40, after":                                         add(&driver.NodeOp{Kind: driver.FillNode, Dst: 64, Count: 3, Width: 4}),
		"fill of 3 elements of 4 bytes, 8 bytes apart, at 0x40, after":                         add(&driver.NodeOp{Kind: driver.FillNode, Dst: 64, Count: 3, Width: 4, Stride: 8}),
		"copy of 3 bytes from 0x20 to 0x40, after":                                             add(&driver.NodeOp{Kind: driver.CopyNode, Dst: 64, Src: 32, Count: 3}),
		"child graph 0x12, after":                                                              add(&driver.NodeOp{Kind: driver.ChildNode, Child: 0x12}),
		"record of event 0x13, after":                                                          add(&driver.NodeOp{Kind: driver.RecordNode, Event: 0x13}),
		"node of unknown kind 9, after":                                                        add(&driver.NodeOp{Kind: driver.WhileNode + 1}),
		"node of unknown kind -1, after":                                                       add(&driver.NodeOp{Kind: -1}),
		"set node: device 0 (Fake 0): empty node, node 0x3 of exec 0x20000: only kernels, fills, copies, tests and child nodes can ": d.SetNode(exec0, 3, &driver.NodeOp{}),
		"child graph 0x12, node 0x3 of exec 0x20000: cuda: CUDA_ERROR_INVALID_VALUE":                                                 d.SetNode(exec0, 3, &driver.NodeOp{Kind: driver.ChildNode, Child: 0x12}),
		"record of event 0x13, node 0x3 of exec 0x20000: only":                                                                       d.SetNode(exec0, 3, &driver.NodeOp{Kind: driver.RecordNode, Event: 0x13}),
		// node0 is a fill, so it cannot become a copy.
		"copy of 3 bytes from 0x20 to 0x40, node 0x30000 of exec 0x20000: cuda: CUDA_ERROR_INVALID_VALUE": d.SetNode(exec0, node0, &driver.NodeOp{Kind: driver.CopyNode, Dst: 64, Src: 32, Count: 3}),
	} {
		if !errors.Is(err, cuda.ErrorInvalidValue) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\nshould say %s", err, says)
		}
	}
	for _, s := range []driver.Stream{0, 1, 2} {
		if err := d.LaunchGraph(s, exec0); !errors.Is(err, cuda.ErrorInvalidHandle) {
			t.Errorf("stream %d: %v", s, err)
		}
	}
}

func TestNoGraphs(t *testing.T) {
	f := newFake(t, 11020)
	d := f.device()
	if caps := d.Caps(); !caps.Pools || caps.HostPools || caps.Graphs || !caps.Timers || d.sets {
		t.Errorf("%+v", caps)
	}
	if caps := d.Caps(); !caps.Native || caps.Capture {
		t.Errorf("%+v", caps)
	}
	suite.Unsupported(t, f, d, drivertest.GraphOps, ": graphs: the driver, of CUDA 11.2, has ")
	d.noGraphs = nil
	if x, err := d.Instantiate(graph0); x != 0 || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "cuGraphInstantiateWithFlags") {
		t.Errorf("exec %#x, %v", x, err)
	}
}
