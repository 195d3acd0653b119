//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"bytes"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

func TestDevices(t *testing.T) {
	f := newFake(t, 13000)
	f.set("MIG", 1)
	d := f.driver()
	infos, err := d.Devices()
	if err != nil || len(infos) != 2 || d.Name() != "cuda" {
		t.Fatalf("driver %q, devices %v, %v", d.Name(), infos, err)
	}
	want := driver.Info{
		Index: 1, Name: "Fake 1", PCI: "0000:3b:01.0", Arch: "sm_90", Memory: 80 << 30, Processors: 160, WarpSize: 100, MaxThreads: 10,
		MaxBlock: [3]int{20, 30, 40}, MaxGrid: [3]int{50, 60, 70}, SharedMem: 48 << 10, SharedOptIn: 227 << 10,
		Version: 13000, DriverVersion: sysfs.ModuleVersion("nvidia"), Major: 9, MIG: true, NUMANode: 1, Clock: 130, MemoryClock: 360, MemoryBus: 370,
		L2: 380, CopyEngines: 400, Registers: 120, ProcessorThreads: 390, ProcessorBlocks: 1060, ProcessorRegisters: 820, ProcessorSharedMem: 810,
		Cooperative: true, Clusters: true,
	}
	for i := range want.UUID {
		want.UUID[i] = byte(i) | 0x80
	}
	if infos[1] != want {
		t.Errorf("device 1 is\n%+v, want\n%+v", infos[1], want)
	}
	infos[1].Name = "mine"
	if again, _ := d.Devices(); again[1] != want {
		t.Error("what Devices returned is the driver's own")
	}
	f.calls()
	if d.Devices(); len(f.calls()[0]) != 0 {
		t.Error("Devices calls the driver")
	}

	f.set("cuDeviceGetPCIBusId", int(cuda.ErrorNotSupported))
	f.set("attr 97", 1)
	f.set("attr 18", 2)
	f.set("attr 95", 1)
	f.set("attr 120", 1)
	f.set("MIG", 0)
	infos, err = f.driver().Devices()
	if i := infos[0]; i.MIG || i.UUID[1] != 1 || i.Cooperative || i.Clusters {
		t.Errorf("device 0 is %+v", i)
	}
	if err != nil || infos[0].PCI != "" || infos[0].SharedOptIn != 48<<10 || !infos[0].Integrated {
		t.Errorf("device 0 is %+v, %v", infos[0], err)
	}
}

func TestOldDriver(t *testing.T) {
	f := newFake(t, 11020)
	d := f.device()
	if u := d.Info().UUID; u[1] != 1 {
		t.Errorf("UUID %x", u)
	}
	if i := d.Info(); i.MIG || i.Clusters || i.NUMANode != sysfs.NUMANode(i.PCI) {
		t.Errorf("%+v", i)
	}
	if d.Caps().KernelParams {
		t.Error("this driver tells nothing of parameters")
	}
	if _, info := function(t, d, "count"); info.Params != nil || info.MaxThreads != 100 {
		t.Errorf("%+v", info)
	}
}

func TestOpenErrors(t *testing.T) {
	if d, err := Open(cuda.Options{Path: filepath.Join(t.TempDir(), "libcuda.so.1")}); d != nil || !errors.Is(err, dl.ErrNotFound) {
		t.Errorf("an absent library: %v, %v", d, err)
	}

	none := newFake(t, 13000, "DEVICES=0")
	for _, code := range []cuda.Result{cuda.Success, cuda.ErrorNoDevice} {
		none.set("cuInit", int(code))
		d := none.driver()
		if infos, err := d.Devices(); len(infos) != 0 || err != nil {
			t.Errorf("no device: %v, %v", infos, err)
		}
		if dev, err := d.Open(0); dev != nil || !errors.Is(err, cuda.ErrorInvalidDevice) || !strings.HasPrefix(err.Error(), "cuda: open: no device 0: the driver has 0: ") {
			t.Errorf("no device: %v, %v", dev, err)
		}
	}

	f := newFake(t, 13000)
	for name, c := range map[string]struct {
		code cuda.Result
		op   string
		says string
	}{
		"cuInit":               {cuda.ErrorSystemDriverMismatch, "init", "reboot"},
		"cuDeviceGetName":      {cuda.ErrorUnknown, "describe", "device 0: name"},
		"cuDeviceGetAttribute": {cuda.ErrorInvalidValue, "describe", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"},
	} {
		f.set(name, int(c.code))
		d, err := Open(cuda.Options{Path: f.path})
		if e, ok := errors.AsType[*driver.Error](err); d != nil || !ok || e.Op != c.op || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s fails: %v, %v", name, d, err)
		}
		f.set(name, 0)
	}
	d := f.driver()
	for _, index := range []int{-1, 2} {
		if dev, err := d.Open(index); dev != nil || !errors.Is(err, cuda.ErrorInvalidDevice) {
			t.Errorf("device %d: %v, %v", index, dev, err)
		}
	}
	// Whatever fails, nothing is left behind.
	for _, name := range []string{
		"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate", "cuEventCreate", "cuMemAlloc_v2", "cuMemHostAlloc",
		"cuMemHostGetDevicePointer_v2", "cuDeviceGetAttribute", "cuStreamSynchronize", "cuCtxGetStreamPriorityRange",
	} {
		f.set(name, int(cuda.ErrorOutOfMemory))
		dev, err := d.Open(1)
		if dev != nil || !errors.Is(err, driver.ErrOutOfMemory) || !errors.Is(err, cuda.ErrorOutOfMemory) || !strings.Contains(err.Error(), "device 1 (Fake 1)") {
			t.Errorf("%s fails: %v, %v", name, dev, err)
		}
		if f.live() != 0 || f.retained(1) != 0 {
			t.Fatalf("%s fails: %d objects and %d references are left", name, f.live(), f.retained(1))
		}
		f.set(name, 0)
	}
	f.set("cuMemsetD8Async", int(cuda.ErrorIllegalAddress))
	if dev, err := d.Open(1); dev != nil || !errors.Is(err, driver.ErrLost) {
		t.Errorf("a device that is lost at once: %v, %v", dev, err)
	}
}

// TestContextUntouched has a thread with contexts of others', one above the other, and checks after every call that they are
// as they were.
func TestContextUntouched(t *testing.T) {
	f := newFake(t, 13000)
	lib, err := cuda.Open(cuda.Options{Path: f.path})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const theirs = 0x111<<12 | 0x222
	for _, ctx := range []cuda.Context{0x111, 0x222} {
		if err := lib.CtxPushCurrent(ctx); err != nil {
			t.Fatal(err)
		}
	}
	defer lib.CtxPopCurrent()
	defer lib.CtxPopCurrent()
	same := func(what string, want uint64) {
		t.Helper()
		if got := f.stack(); got != want {
			t.Fatalf("after %s the thread's contexts are %#x, want %#x", what, got, want)
		}
	}
	drv, err := New(lib)
	if err != nil {
		t.Fatal(err)
	}
	same("New", theirs)
	open, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	same("Open", theirs)
	for _, fails := range []string{"cuStreamCreate", "cuMemcpyAsync", "cuStreamSynchronize"} {
		f.set(fails, int(cuda.ErrorInvalidContext))
		drv.Open(1)
		same("Open without "+fails, theirs)
		f.set(fails, 0)
	}
	d := open.(*device)
	for _, bound := range []bool{false, true} {
		want := uint64(theirs)
		if bound {
			if err := d.Bind(); err != nil {
				t.Fatal(err)
			}
			want = 0x111<<12 | context0
		}
		same("Bind", want)
		for what, call := range all(d) {
			if err := call(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			same(what, want)
		}
	}
	// Close takes its own context away, and only that.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	same("Close", 0x111)
	if err := d.Close(); err == nil || f.retained(0) != 0 {
		t.Errorf("a second Close: %v, %d references", err, f.retained(0))
	}
}

// enter makes the device current on the thread, and what was before again.
func enter(d *device) error {
	was, err := d.Enter()
	if err != nil {
		return err
	}
	return d.Leave(was)
}

// all are calls of every method but Bind and Close.
func all(d *device) map[string]func() error {
	buf := make([]uint64, 8)
	p, ptr := unsafe.Pointer(&buf[0]), driver.Ptr(uintptr(unsafe.Pointer(&buf[0])))
	two := func(_ driver.Stream, err error) error { return err }
	pooled, _ := d.AllocAsync(stream0, pool0, 64)
	attrs := driver.LaunchAttrs{Cooperative: d.caps.Cooperative, Carveout: 1}
	ops := nodeOps(ptr, attrs)
	var graph, oldGraph driver.Graph
	var exec, oldExec driver.Exec
	nodes := make([]driver.Node, len(ops))
	if d.noGraphs == nil {
		child, _ := d.NewGraph()
		ops[4].Child = child
		graph, _ = d.NewGraph()
		for i := range ops {
			nodes[i], _ = d.AddNode(graph, nil, &ops[i])
		}
		exec, _ = d.Instantiate(graph)
		oldGraph, _ = d.NewGraph()
		oldExec, _ = d.Instantiate(oldGraph)
	}
	return map[string]func() error{
		"new stream": func() error {
			if d.caps.PriorityRange[0] != d.caps.PriorityRange[1] {
				if err := two(d.NewPriorityStream(-1)); err != nil {
					return err
				}
				if err := d.lib.StreamDestroy(stream0); err != nil { // which it is to the fake
					return err
				}
			}
			return two(d.NewStream())
		},
		"destroy stream": func() error { return d.DestroyStream(stream0) },
		"new event":      func() error { _, err := d.NewEvent(); return err },
		"destroy event":  func() error { return d.DestroyEvent(event0) },
		"record":         func() error { return d.Record(event0, stream0) },
		"query":          func() error { _, err := d.Query(event0); return err },
		"wait":           func() error { return d.StreamWait(stream0, event0) },
		"alloc": func() error {
			for kind := driver.DeviceMem; kind <= driver.ManagedMem; kind++ {
				m, err := d.Alloc(kind, 64)
				if err != nil {
					return err
				}
				if err := d.Free(m); err != nil {
					return err
				}
			}
			return nil
		},
		"free":       func() error { return d.Free(driver.Mem{}) },
		"register":   func() error { _, err := d.Register(p, 64); return err },
		"unregister": func() error { return d.Unregister(p) },
		"prefetch":   func() error { return d.Prefetch(stream0, ptr, 64, driver.DeviceMem) },
		"fill": func() error {
			if err := d.Fill(stream0, ptr, 1, 4, 4); err != nil {
				return err
			}
			return d.FillStrided(stream0, ptr, 1, 8, 4)
		},
		"copy": func() error {
			if err := d.Copy(stream0, ptr+32, ptr, 32); err != nil {
				return err
			}
			return d.CopyPeer(stream0, ptr+32, d, ptr, d, 32)
		},
		"upload":   func() error { return d.Upload(stream0, ptr, unsafe.Add(p, 32), 32) },
		"download": func() error { return d.Download(stream0, unsafe.Add(p, 32), ptr, 32) },
		"load":     func() error { _, err := d.Load([]byte(emptyPTX)); return err },
		"unload":   func() error { return d.Unload(module0) },
		"function": func() error { _, _, err := d.Function(module0, "count"); return err },
		"global":   func() error { _, _, err := d.Global(module0, "variable"); return err },
		"launch": func() error {
			if err := d.Launch(stream0, &driver.Launch{Function: 0xf000}); err != nil {
				return err
			}
			return d.Launch(stream0, &driver.Launch{Function: 0xf000, Attrs: attrs})
		},

		"memory info": func() error { _, _, err := d.MemInfo(); return err },
		"link":        func() error { _, err := d.Link(&device{lib: d.lib, id: d.id + 1}); return err },
		"occupancy":   func() error { _, err := d.Occupancy(0xf000, 64, 0); return err },

		"default pool":       func() error { _, err := d.DefaultPool(); return err },
		"current pool":       func() error { _, err := d.CurrentPool(); return err },
		"set current pool":   func() error { return d.SetCurrentPool(pool0) },
		"new pool":           func() error { _, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem}); return err },
		"destroy pool":       func() error { return d.DestroyPool(pool1) },
		"pool attribute":     func() error { _, err := d.PoolAttr(pool0, driver.PoolThreshold); return err },
		"set pool attribute": func() error { return d.SetPoolAttr(pool0, driver.PoolReuseEvents, 1) },
		"trim pool":          func() error { return d.TrimPool(pool0, 0) },
		"access pool":        func() error { return d.AccessPool(pool0, d, true) },
		"alloc async":        func() error { _, err := d.AllocAsync(stream0, pool0, 64); return err },
		"free async":         func() error { return d.FreeAsync(stream0, pooled) },

		"new graph":     func() error { _, err := d.NewGraph(); return err },
		"destroy graph": func() error { return d.DestroyGraph(oldGraph) },
		"add node": func() error {
			for i := range ops {
				if _, err := d.AddNode(graph, nodes[:i], &ops[i]); err != nil {
					return err
				}
			}
			return nil
		},
		"instantiate":  func() error { _, err := d.Instantiate(graph); return err },
		"destroy exec": func() error { return d.DestroyExec(oldExec) },
		"set node": func() error {
			for i, op := range ops {
				if op.Kind != driver.EmptyNode && op.Kind != driver.RecordNode {
					if err := d.SetNode(exec, nodes[i], &op); err != nil {
						return err
					}
				}
			}
			return nil
		},
		"launch graph": func() error { return d.LaunchGraph(stream0, exec) },

		"export memory": func() error { _, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64}); return err },
		"open memory": func() error {
			h, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64})
			if err == nil {
				_, err = d.OpenMem(h)
			}
			return err
		},
		"close memory":     func() error { return d.CloseMem(driver.Mem{Ptr: ptr}) },
		"new shared event": func() error { _, err := d.NewIPCEvent(); return err },
		"export event":     func() error { _, err := d.ExportEvent(event0); return err },
		"open event": func() error {
			h, err := d.ExportEvent(event0)
			if err == nil {
				_, err = d.OpenEvent(h)
			}
			return err
		},
		"adopt stream": func() error { _, err := d.AdoptStream(stream0); return err },
		"capturing":    func() error { _, err := d.Capturing(stream0); return err },
		"write value":  func() error { return d.WriteValue(stream0, ptr, 5) },
		"wait value": func() error {
			buf[0] = 5
			return d.WaitValue(stream0, ptr, 5)
		},
		"enter": func() error { return enter(d) },
		"leave": func() error { return enter(d) },
		"begin capture": func() error {
			err := d.BeginCapture(stream0)
			d.EndCapture(stream0)
			return err
		},
		"end capture": func() error {
			d.BeginCapture(stream0)
			_, err := d.EndCapture(stream0)
			return err
		},

		"new timer": func() error { _, err := d.NewTimer(); return err },
		"elapsed":   func() error { _, err := d.Elapsed(event0, event0); return err },
	}
}

// nodeOps are ops of every kind, on 64 bytes at p, one of them a launch with attributes.
func nodeOps(p driver.Ptr, attrs driver.LaunchAttrs) []driver.NodeOp {
	return []driver.NodeOp{
		{Kind: driver.EmptyNode},
		{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf000}},
		{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf000, Attrs: attrs}},
		{Kind: driver.FillNode, Dst: p, Pattern: 1, Width: 4, Count: 4},
		{Kind: driver.CopyNode, Dst: p + 32, Src: p, Count: 32},
		{Kind: driver.ChildNode, Child: graph0},
		{Kind: driver.RecordNode, Event: event0},
	}
}

func TestProbe(t *testing.T) {
	f := newFake(t, 13000)
	drv := f.driver()
	f.calls()
	open := func() *device {
		t.Helper()
		d, err := drv.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.(*device)
	}
	want := driver.Caps{
		RerecordEvents: true, Managed: true, HostRegister: true, KernelParams: true,
		Pools: true, HostPools: true, Graphs: true, Timers: true, Peers: true, Comms: true, Native: true, Capture: true,
		Prefetch: true, ReadOnlyRegister: true, ResizeNodes: true, ManagedPools: true,
		IPCMem: true, IPCEvents: true, MemSharing: true, PoolSharing: true, Adopt: true, Values: true,
		MemInfo: true, Links: true, Occupancy: true, PriorityRange: [2]int{0, -5},
		Cooperative: true, Clusters: true, DependentLaunch: true, LaunchEvents: true, NodeAttrs: true,
		Compile: true,
	}
	if caps := open().caps; caps != want {
		t.Errorf("caps %+v, want %+v", caps, want)
	}
	f.want(
		"cuDevicePrimaryCtxRetain(40)",
		"cuMemGetAllocationGranularity(1 1, 1 0, 1, 0)",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuCtxGetStreamPriorityRange()",
		"cuCtxPopCurrent_v2()",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuStreamCreate(1)",
		"cuEventCreate(2)",
		"cuMemAlloc_v2(64)",
		"cuMemHostAlloc(64, 3)",
		"cuMemHostGetDevicePointer_v2(0)",
		"cuLibraryLoadData(4: 3 4 5 6, 0)", "cuLibraryGetModule(0x3100)",
		"cuModuleGetFunction(empty)",
		"cuFuncLoad(0xf000)",
		"cuFuncGetAttribute(0)",
		"cuFuncGetAttribute(1)",
		"cuFuncGetAttribute(4)",
		"cuFuncGetAttribute(3)",
		"cuFuncGetAttribute(11)",
		"cuFuncGetAttribute(12)",
		"cuFuncGetAttribute(13)",
		"cuFuncSetAttribute(14, 1)",
		"cuOccupancyMaxPotentialClusterSize(0xf000, 1 1 1, 1 1 1, 0)",
		"cuFuncSetAttribute(8, 231424)",
		"cuDeviceGetDefaultMemPool(40)",
		"cuMemAllocFromPoolAsync(64, 0x9000, 0x5000)",
		"cuMemFreeAsync(0x5000)",
		"cuGraphCreate(0)",
		"cuGraphAddMemsetNode(0x10000,; 0, 0, 4, 16 1, 0xc0)",
		"cuGraphAddMemcpyNode(0x10000, 0x30000; 4 to 4, 32 1 1, 0xc0)",
		"cuGraphAddKernelNode_v2(0x10000, 0x30001; 0xf000, 1 1 1, 1 1 1, 0)",
		"cuGraphInstantiateWithFlags(0x10000, 0)",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuGraphExecMemsetNodeSetParams(0x20000, 0x30000; 0, 0x1020304, 4, 16 1, 0xc0)",
		"cuCtxPopCurrent_v2()",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuGraphExecMemsetNodeSetParams(0x20000, 0x30000; 0, 0x1020304, 4, 16 1, 0xc0)",
		"cuGraphExecMemcpyNodeSetParams(0x20000, 0x30001; 4 to 4, 32 1 1, 0xc0)",
		"cuGraphExecKernelNodeSetParams_v2(0x20000, 0x30002; 0xf000, 1 1 1, 1 1 1, 0)",
		"cuCtxPopCurrent_v2()",
		"cuEventCreate(0)",
		"cuCtxGetCurrent()", // of the other thread
		"cuMemsetD8Async(0x4, 32, 0x5000)",
		"cuMemsetD16Async(0x304, 16, 0x5000)",
		"cuMemsetD32Async(0x1020304, 8, 0x5000)",
		"cuMemsetD2D32Async(8, 0x1020305, 1, 4, 0x5000)",
		"cuMemcpyAsync(32, 0x5000)",
		"cuMemcpyPeerAsync(0xc0, 0xc0, 32, 0x5000)",
		"cuMemcpyDtoHAsync_v2(32, 0x5000)",
		"cuMemcpyHtoDAsync_v2(32, 0x5000)",
		"cuEventRecord(0xe000, 0x5000)",
		"cuStreamWaitEvent(0x5000, 0xe000, 0)",
		"cuEventQuery(0xe000)",
		"cuLaunchKernel(0xf000, 1 1 1, 1 1 1, 0, 0x5000)",
		"cuMemAllocFromPoolAsync(64, 0x9000, 0x5000)",
		"cuMemFreeAsync(0x5000)",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuGraphExecMemsetNodeSetParams(0x20000, 0x30000; 0, 0, 4, 16 1, 0xc0)",
		"cuCtxPopCurrent_v2()",
		"cuCtxPushCurrent_v2(0xc0)",
		"cuGraphExecMemsetNodeSetParams(0x20000, 0x30000; 0, 0, 4, 16 1, 0xc0)",
		"cuGraphExecMemcpyNodeSetParams(0x20000, 0x30001; 4 to 4, 32 1 1, 0xc0)",
		"cuGraphExecKernelNodeSetParams_v2(0x20000, 0x30002; 0xf000, 1 1 1, 1 1 1, 0)",
		"cuCtxPopCurrent_v2()",
		"cuGraphLaunch(0x20000, 0x5000)",
		"cuEventRecord(0xe000, 0x5000)",
		"cuStreamSynchronize(0x5000)",
		"cuCtxGetCurrent()", // of another thread again
		"cuEventElapsedTime_v2(0xe000, 0xe000)",
		"cuEventDestroy_v2(0xe000)",
		"cuGraphExecDestroy(0x20000)",
		"cuGraphDestroy(0x10000)",
		"cuLibraryUnload(0x3100)",
		"cuMemFreeHost()",
		"cuMemFree_v2()",
		"cuEventDestroy_v2(0xe000)",
		"cuStreamDestroy_v2(0x5000)",
		"cuCtxPopCurrent_v2()",
		"cuCtxGetCurrent()", // of Close
		"cuDevicePrimaryCtxRelease_v2(40)",
	)
	if f.live() != 0 || f.retained(0) != 0 {
		t.Errorf("%d objects and %d references are left", f.live(), f.retained(0))
	}

	for _, name := range []string{
		"cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD2D32Async", "cuMemcpyAsync", "cuMemcpyPeerAsync", "cuMemcpyDtoHAsync_v2",
		"cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery", "cuLaunchKernel", "cuMemAllocFromPoolAsync",
		"cuMemFreeAsync", "cuGraphLaunch", "cuEventElapsedTime_v2",
	} {
		f.set("bound "+name, 1)
		if !open().sets {
			t.Errorf("%s needs a context, but submitting sets none", name)
		}
		if f.live() != 0 || f.retained(0) != 0 {
			t.Fatalf("%s needs a context: %d objects and %d references are left", name, f.live(), f.retained(0))
		}
		f.set("bound "+name, 0)
	}
	f.set("bound", 1)
	if !open().sets {
		t.Error("the driver wants a context, but submitting sets none")
	}
	f.set("bound", 0)
	f.set("cuEventQuery", int(cuda.ErrorNotReady))
	if open().sets {
		t.Error("an event that is not ready is taken for a failure")
	}
	f.set("cuEventQuery", 0)

	// Without a compiler a launch cannot be tried.
	f.calls()
	f.set("cuLibraryLoadData", int(cuda.ErrorJITCompilerNotFound))
	if open().sets {
		t.Error("no compiler: submitting sets a context")
	}
	if calls := f.calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "cuLaunchKernel") }) {
		t.Errorf("no compiler, but a launch:\n%s", strings.Join(calls, "\n"))
	}
	f.set("cuLibraryLoadData", 0)

	// What cannot be made goes untried, and is not left behind.
	for name, untried := range map[string]string{
		"cuDeviceGetDefaultMemPool": "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync": "cuMemFreeAsync",
		"cuGraphCreate": "cuGraphLaunch", "cuGraphAddMemsetNode": "cuGraphLaunch", "cuGraphAddMemcpyNode": "cuGraphExec", "cuGraphInstantiateWithFlags": "cuGraphLaunch",
	} {
		f.set(name, int(cuda.ErrorOutOfMemory))
		f.calls()
		if caps := open().caps; caps != want {
			t.Errorf("%s fails: caps %+v, want %+v", name, caps, want)
		}
		calls := f.calls()
		if slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, untried) }) {
			t.Errorf("%s fails, but %s is tried:\n%s", name, untried, strings.Join(calls, "\n"))
		}
		f.set(name, 0)
		if f.live() != 0 || f.retained(0) != 0 {
			t.Fatalf("%s fails: %d objects and %d references are left", name, f.live(), f.retained(0))
		}
	}

	for attr, off := range map[string]func(*driver.Caps){
		"attr 83":  func(c *driver.Caps) { c.Managed, c.Prefetch, c.ManagedPools = false, false, false },
		"attr 89":  func(c *driver.Caps) { c.Managed, c.Prefetch, c.ManagedPools = false, false, false },
		"attr 99":  func(c *driver.Caps) { c.HostRegister, c.ReadOnlyRegister = false, false },
		"attr 102": func(c *driver.Caps) { c.MemSharing = false },
		"attr 103": func(c *driver.Caps) { c.MemSharing = false },
		"attr 113": func(c *driver.Caps) { c.ReadOnlyRegister = false },
		"attr 115": func(c *driver.Caps) {
			c.Pools, c.HostPools, c.ManagedPools, c.PoolSharing = false, false, false, false
		},
		"attr 119": func(c *driver.Caps) { c.PoolSharing = false },
		"attr 122": func(c *driver.Caps) { c.Values = false },
		"attr 144": func(c *driver.Caps) { c.HostPools = false },
	} {
		f.set(attr, 1)
		less := want
		off(&less)
		if caps := open().caps; caps != less {
			t.Errorf("%s is 0: caps %+v, want %+v", attr, caps, less)
		}
		f.set(attr, 0)
	}
}

func TestCalls(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := d.NewStream()
	ok(err)
	e, err := d.NewEvent()
	ok(err)
	ok(d.Record(e, s))
	done, err := d.Query(e)
	if ok(err); !done {
		t.Error("the event is not done")
	}
	f.set("cuEventQuery", int(cuda.ErrorNotReady))
	done, err = d.Query(e)
	if ok(err); done {
		t.Error("the event is done")
	}
	ok(d.StreamWait(s, e))
	f.want("cuStreamCreate(1)", "cuEventCreate(2)", "cuEventRecord(0xe000, 0x5000)", "cuEventQuery(0xe000)", "cuEventQuery(0xe000)",
		"cuStreamWaitEvent(0x5000, 0xe000, 0)")

	dev, err := d.Alloc(driver.DeviceMem, 32)
	if ok(err); dev.Host != nil || dev.Ptr == 0 || dev.Size != 32 || dev.Kind != driver.DeviceMem {
		t.Errorf("%+v", dev)
	}
	host, err := d.Alloc(driver.HostMem, 32)
	if ok(err); host.Host == nil || uint64(host.Ptr) != uint64(uintptr(host.Host))|1<<62 || host.Kind != driver.HostMem {
		t.Errorf("%+v", host)
	}
	managed, err := d.Alloc(driver.ManagedMem, 32)
	if ok(err); uint64(managed.Ptr) != uint64(uintptr(managed.Host)) || managed.Ptr == 0 || managed.Kind != driver.ManagedMem {
		t.Errorf("%+v", managed)
	}
	out := unsafe.Slice((*byte)(host.Host), 32)
	ok(d.Fill(s, dev.Ptr, 0xa1a2a3a4, 4, 8))
	ok(d.Fill(s, dev.Ptr, 0xb1b2b3b4, 2, 4))
	ok(d.Fill(s, dev.Ptr, 0xc1c2c3c4, 1, 2))
	ok(d.Copy(s, managed.Ptr, dev.Ptr, 32))
	ok(d.Download(s, host.Host, managed.Ptr, 32))
	want := append([]byte{0xc4, 0xc4, 0xb4, 0xb3, 0xb4, 0xb3, 0xb4, 0xb3}, bytes.Repeat([]byte{0xa4, 0xa3, 0xa2, 0xa1}, 6)...)
	if !bytes.Equal(out, want) {
		t.Errorf("%x, want %x", out, want)
	}
	out[0] = 1
	ok(d.Upload(s, dev.Ptr, host.Host, 32))
	ok(d.Fill(s, dev.Ptr, 0, 1, 0))
	ok(d.FillStrided(s, dev.Ptr, 0, 8, 0))
	ok(d.Copy(s, dev.Ptr, host.Ptr, 0))
	ok(d.Upload(s, dev.Ptr, nil, 0))
	ok(d.Download(s, nil, dev.Ptr, 0))
	ok(d.Free(dev))
	ok(d.Free(host))
	ok(d.Free(managed))
	f.want("cuMemAlloc_v2(32)", "cuMemHostAlloc(32, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemAllocManaged(32, 1)",
		"cuMemsetD32Async(0xa1a2a3a4, 8, 0x5000)", "cuMemsetD16Async(0xb3b4, 4, 0x5000)", "cuMemsetD8Async(0xc4, 2, 0x5000)",
		"cuMemcpyAsync(32, 0x5000)", "cuMemcpyDtoHAsync_v2(32, 0x5000)", "cuMemcpyHtoDAsync_v2(32, 0x5000)",
		"cuMemFree_v2()", "cuMemFreeHost()", "cuMemFree_v2()")

	mine := make([]uint64, 8)
	p, err := d.Register(unsafe.Pointer(&mine[0]), 64)
	if ok(err); uint64(p) != uint64(uintptr(unsafe.Pointer(&mine[0])))|1<<62 {
		t.Errorf("registered memory is at %#x", p)
	}
	ok(d.Unregister(unsafe.Pointer(&mine[0])))
	f.want("cuMemHostRegister_v2(64, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemHostUnregister()")

	p, err = d.RegisterReadOnly(unsafe.Pointer(&mine[0]), 64)
	ok(err)
	ok(d.Unregister(unsafe.Pointer(&mine[0])))
	combined, err := d.Alloc(driver.WriteCombinedMem, 32)
	if ok(err); combined.Host == nil || combined.Ptr == 0 || combined.Kind != driver.WriteCombinedMem {
		t.Errorf("%+v", combined)
	}
	ok(d.Free(combined))
	f.want("cuMemHostRegister_v2(64, 11)", "cuMemHostGetDevicePointer_v2(0)", "cuMemHostUnregister()",
		"cuMemHostAlloc(32, 7)", "cuMemHostGetDevicePointer_v2(0)", "cuMemFreeHost()")
	ok(d.Prefetch(s, p, 100, driver.DeviceMem))
	ok(d.Prefetch(s, p, 100, driver.HostMem))
	ok(d.Prefetch(s, p, 0, driver.HostMem))
	f.want("cuCtxPushCurrent_v2(0xc0)", "cuMemPrefetchAsync_v2(100, 1 0, 0, 0x5000)", "cuCtxPopCurrent_v2()",
		"cuCtxPushCurrent_v2(0xc0)", "cuMemPrefetchAsync_v2(100, 2 0, 0, 0x5000)", "cuCtxPopCurrent_v2()")

	fn, info := function(t, d, "count")
	if !slices.Equal(info.Params, []int{8, 4}) || info.MaxThreads != 100 || info.SharedMem != 1024 || info.Registers != 104 || info.LocalMem != 103 || info.MaxCluster != 16 {
		t.Errorf("%+v", info)
	}
	f.want("cuLibraryLoadData(4: 3 4 5 6, 0)", "cuLibraryGetModule(0x3100)", "cuModuleGetFunction(count)", "cuFuncLoad(0xf001)", "cuFuncGetAttribute(0)", "cuFuncGetAttribute(1)",
		"cuFuncGetAttribute(4)", "cuFuncGetAttribute(3)", "cuFuncGetAttribute(11)", "cuFuncGetAttribute(12)", "cuFuncGetAttribute(13)",
		"cuFuncSetAttribute(14, 1)", "cuOccupancyMaxPotentialClusterSize(0xf001, 1 1 1, 1 1 1, 0)", "cuFuncSetAttribute(8, 231424)", "cuFuncGetParamInfo(0)", "cuFuncGetParamInfo(1)", "cuFuncGetParamInfo(2)")
	f.set("clusters", 2)
	_, info = function(t, d, "empty")
	f.set("clusters", 0)
	if info.Cluster != [3]int{2, 2, 2} {
		t.Errorf("clusters of %v", info.Cluster)
	}
	if info.Params == nil || len(info.Params) != 0 {
		t.Errorf("a kernel without parameters has %v", info.Params)
	}
	if p, n, err := d.Global(module0, "variable"); p == 0 || n != 64 || err != nil {
		t.Errorf("the variable is %#x, %d bytes, %v", p, n, err)
	}
	f.calls()
	counter, by := new(uint64), new(uint32)
	*by = 5
	ok(d.Launch(s, &driver.Launch{
		Function: fn, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8,
		Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)},
	}))
	f.want("cuLaunchKernel(0xf001, 2 3 4, 5 6 7, 8, 0x5000)")
	ok(d.Launch(s, &driver.Launch{Function: fn, Grid: [3]uint32{2}, Block: [3]uint32{0, 6}, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}))
	f.want("cuLaunchKernel(0xf001, 2 1 1, 1 6 1, 0, 0x5000)")
	*counter -= 5
	if *counter != 5 {
		t.Errorf("the kernel counts %d", *counter)
	}
	ok(d.Unload(module0))
	ok(d.DestroyEvent(e))
	ok(d.DestroyStream(s))
	f.want("cuLibraryUnload(0x3100)", "cuEventDestroy_v2(0xe000)", "cuStreamDestroy_v2(0x5000)")
}

// TestErrors has every function fail with every kind of code.
func TestErrors(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	functions := map[string][]string{
		"new stream": {"cuStreamCreate", "cuStreamCreateWithPriority"}, "destroy stream": {"cuStreamDestroy_v2"}, "new event": {"cuEventCreate"},
		"destroy event": {"cuEventDestroy_v2"}, "record": {"cuEventRecord"}, "query": {"cuEventQuery"}, "wait": {"cuStreamWaitEvent"},
		"alloc": {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemHostGetDevicePointer_v2"}, "free": {"cuMemFree_v2"},
		"register": {"cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2"}, "unregister": {"cuMemHostUnregister"}, "prefetch": {"cuMemPrefetchAsync_v2", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"},
		"fill": {"cuMemsetD32Async", "cuMemsetD2D32Async"}, "copy": {"cuMemcpyAsync", "cuMemcpyPeerAsync"}, "upload": {"cuMemcpyHtoDAsync_v2"}, "download": {"cuMemcpyDtoHAsync_v2"},
		"memory info": {"cuMemGetInfo_v2"}, "link": {"cuDeviceGetP2PAttribute"}, "occupancy": {"cuOccupancyMaxActiveBlocksPerMultiprocessor"},
		"adopt stream": {"cuStreamGetCtx", "cuStreamGetPriority"}, "capturing": {"cuStreamIsCapturing"},
		"write value": {"cuStreamWriteValue64_v2"}, "wait value": {"cuStreamWaitValue64_v2"},
		"load": {"cuLibraryLoadData", "cuLibraryGetModule"}, "unload": {"cuModuleUnload"},
		"function": {"cuModuleGetFunction", "cuFuncLoad", "cuFuncGetAttribute", "cuFuncSetAttribute", "cuFuncGetParamInfo"},
		"global":   {"cuModuleGetGlobal_v2"}, "launch": {"cuLaunchKernel", "cuLaunchKernelEx"}, "bind": {"cuCtxSetCurrent"},

		"default pool": {"cuDeviceGetDefaultMemPool"}, "current pool": {"cuDeviceGetMemPool"}, "set current pool": {"cuDeviceSetMemPool"},
		"new pool": {"cuMemPoolCreate", "cuMemPoolSetAccess"}, "destroy pool": {"cuMemPoolDestroy"}, "pool attribute": {"cuMemPoolGetAttribute"},
		"set pool attribute": {"cuMemPoolSetAttribute"}, "trim pool": {"cuMemPoolTrimTo"}, "access pool": {"cuMemPoolSetAccess"},
		"alloc async": {"cuMemAllocFromPoolAsync"}, "free async": {"cuMemFreeAsync"},

		"new graph": {"cuGraphCreate"}, "destroy graph": {"cuGraphDestroy"},
		"add node":    {"cuGraphAddEmptyNode", "cuGraphAddKernelNode_v2", "cuGraphKernelNodeSetAttribute", "cuGraphAddMemsetNode", "cuGraphAddMemcpyNode", "cuGraphAddChildGraphNode", "cuGraphAddEventRecordNode"},
		"instantiate": {"cuGraphInstantiateWithFlags"}, "destroy exec": {"cuGraphExecDestroy"},
		"set node":      {"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemsetNodeSetParams", "cuGraphExecMemcpyNodeSetParams", "cuGraphExecChildGraphNodeSetParams"},
		"export memory": {"cuIpcGetMemHandle"}, "open memory": {"cuIpcOpenMemHandle_v2"}, "close memory": {"cuIpcCloseMemHandle"},
		"new shared event": {"cuEventCreate"}, "export event": {"cuIpcGetEventHandle"}, "open event": {"cuIpcOpenEventHandle"},
		"launch graph": {"cuGraphLaunch"}, "new timer": {"cuEventCreate"}, "elapsed": {"cuEventElapsedTime_v2"},

		"enter": {"cuCtxPushCurrent_v2"}, "leave": {"cuCtxPopCurrent_v2"}, "begin capture": {"cuStreamBeginCapture_v2"}, "end capture": {"cuStreamEndCapture"},
	}
	calls := all(d)
	calls["bind"] = d.Bind
	for op, call := range calls {
		for _, fn := range functions[op] {
			d.hostPools.list.Store(nil) // with one, memory is uploaded and downloaded by other functions
			for _, c := range []struct {
				code                   cuda.Result
				lost, oom, unsupported bool
			}{
				{code: cuda.ErrorInvalidHandle},
				{code: cuda.ErrorOutOfMemory, oom: true},
				{code: cuda.ErrorNotSupported, unsupported: true},
				{code: cuda.ErrorIllegalAddress, lost: true},
			} {
				f.set(fn, int(c.code))
				live := f.live()
				err := call()
				e, ok := err.(*driver.Error)
				if !ok {
					t.Errorf("%s with %s failing: %v", op, fn, err)
				} else if e.Driver != "cuda" || e.Op != op || e.Lost != c.lost || e.OOM != c.oom || !errors.Is(err, c.code) ||
					errors.Is(err, driver.ErrLost) != c.lost || errors.Is(err, driver.ErrOutOfMemory) != c.oom ||
					errors.Is(err, driver.ErrUnsupported) != c.unsupported ||
					!strings.HasPrefix(err.Error(), "cuda: "+op+": device 0 (Fake 0): ") || !strings.Contains(err.Error(), c.code.Name()) {
					t.Errorf("%s with %s failing: %+v: %v", op, fn, *e, err)
				}
				if n := f.live(); n > live {
					t.Errorf("%s with %s failing leaves %d objects", op, fn, n-live)
				}
				f.set(fn, 0)
			}
		}
		if functions[op] == nil {
			t.Errorf("no function for %s", op)
		}
	}
}

// TestUnresolvedCode loads what was compiled to be linked, and was not.
func TestUnresolvedCode(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	if m, err := d.Load(image(t, "unresolved.cubin")); m != 0 || !errors.Is(err, cuda.ErrorInvalidImage) || !strings.Contains(err.Error(), "unresolved symbol table, other: ") {
		t.Errorf("loaded: %#x, %v", m, err)
	}
	f.want("")
	for _, name := range []string{"linked.cubin", "resolving.cubin", "unresolved.ptx", "params.cubin", "compressed.fatbin"} {
		m, err := d.Load(image(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ok(t, d.Unload(m))
	}
	// Of a fat binary the driver may choose what has nothing unresolved.
	for name, c := range map[string]struct{ kernel, says, not string }{
		"unresolved.fatbin": {"calls", "unresolved symbol table, other: ", "mangled"},
		"resolving.cubin":   {"heap", "the image has code of that name", "mangled"},
		"params.fatbin":     {"_Z4nonev", "mangled", "linked"},
		"compressed.fatbin": {"calls", "mangled", "linked"},
	} {
		m, err := d.Load(image(t, name))
		ok(t, err)
		_, _, err = d.Function(m, c.kernel) // which the fake does not have
		if !errors.Is(err, cuda.ErrorNotFound) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, d.Unload(m))
	}
	f.set("cuLibraryLoadData", int(cuda.ErrorInvalidImage))
	if _, err := d.Load(image(t, "unresolved.fatbin")); !strings.Contains(err.Error(), "unresolved symbol") {
		t.Error(err)
	}
	if len(d.modules) != 0 {
		t.Errorf("%d modules are remembered", len(d.modules))
	}
	f.set("cuLibraryLoadData", 0)
	m, err := d.Load([]byte(emptyPTX))
	ok(t, err)
	f.set("cuLibraryUnload", int(cuda.ErrorInvalidContext))
	if err := d.Unload(m); !errors.Is(err, cuda.ErrorInvalidContext) || d.modules[m].code == nil {
		t.Errorf("a module that could not be unloaded: %v, remembered is %v", err, d.modules[m])
	}
}

// TestLoadAsModule loads device code as a module where there are no libraries, and where these would be loaded into all contexts at once.
func TestLoadAsModule(t *testing.T) {
	for _, c := range []struct {
		release dl.Version
		eager   int
		want    []string
	}{
		{11040, 0, []string{"cuModuleLoadDataEx(4: 3 4 5 6)", "cuModuleUnload(0x3000)"}},
		{12000, 1, []string{"cuModuleLoadDataEx(4: 3 4 5 6)", "cuModuleUnload(0x3000)"}},
		{12000, 0, []string{"cuLibraryLoadData(4: 3 4 5 6, 0)", "cuLibraryGetModule(0x3100)", "cuLibraryUnload(0x3100)"}},
	} {
		f := newFake(t, c.release)
		f.set("eager", c.eager)
		d := f.device()
		f.calls()
		m, err := d.Load([]byte(emptyPTX))
		ok(t, err)
		ok(t, d.Unload(m))
		if got := f.calls(); !slices.Equal(got, c.want) {
			t.Errorf("CUDA %v, eager %d: %q, want %q", c.release, c.eager, got, c.want)
		}
	}
}

// TestLoadWithoutContext fails to load a library's module into the context, and leaves nothing behind.
func TestLoadWithoutContext(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	before := f.live()
	f.set("cuLibraryGetModule", int(cuda.ErrorOutOfMemory))
	if _, err := d.Load([]byte(emptyPTX)); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Error(err)
	}
	if now := f.live(); now != before || len(d.modules) != 0 {
		t.Errorf("%d objects were live, and %d are now; %d modules are remembered", before, now, len(d.modules))
	}
}

// TestLateLog has the driver compile a library only when a function is needed, and write its log then.
func TestLateLog(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	m, err := d.Load([]byte(emptyPTX))
	ok(t, err)
	runtime.GC()
	f.set("late log", 1)
	_, _, err = d.Function(m, "empty")
	ok(t, err)
	if logs := d.modules[m].logs; logs == nil || logs.log() != "compiled when it was needed" {
		t.Error("the log was written to memory that is nobody's any more")
	}
	ok(t, d.Unload(m))
}

func TestLost(t *testing.T) {
	sticky := map[cuda.Result]bool{
		4: true, 214: true, 220: true, 226: true, 700: true, 702: true, 709: true, 710: true, 714: true, 715: true, 716: true, 717: true,
		718: true, 719: true, 721: true, 810: true, 911: true,
	}
	for r := range cuda.Result(1100) {
		if e := wrap("test", r); e.Lost != sticky[r] || e.OOM != (r == 2) {
			t.Errorf("%v: lost %t, out of memory %t", r, e.Lost, e.OOM)
		}
	}
	if e := wrap("test", errors.New("no code")); e.Lost || e.OOM {
		t.Errorf("%+v", e)
	}
}

func TestBadArguments(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	m := driver.Mem{Kind: 7}
	for name, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"stream 0 for record":      {d.Record(event0, 0), cuda.ErrorInvalidHandle, "stream 0x0: no stream of NewStream's"},
		"legacy stream for wait":   {d.StreamWait(1, event0), cuda.ErrorInvalidHandle, "stream 0x1"},
		"thread's stream for fill": {d.Fill(2, 64, 0, 1, 1), cuda.ErrorInvalidHandle, "stream 0x2"},
		"stream 0 for strided":     {d.FillStrided(0, 64, 0, 8, 1), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for copy":        {d.Copy(0, 64, 0, 1), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for peers":       {d.CopyPeer(0, 64, d, 0, d, 1), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for upload":      {d.Upload(0, 64, nil, 1), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for download":    {d.Download(0, nil, 64, 1), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for launch":      {d.Launch(0, &driver.Launch{}), cuda.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 to destroy":      {d.DestroyStream(0), cuda.ErrorInvalidHandle, "stream 0x0"},
		"fill of width 3":          {d.Fill(stream0, 64, 0, 3, 5), cuda.ErrorInvalidValue, "5 elements of 3 bytes at 0x40 in stream 0x5000: the width must be"},
		"free of no kind":          {d.Free(m), cuda.ErrorInvalidValue, "no kind of memory 7"},
		"alloc of no kind":         {func() error { _, err := d.Alloc(7, 1); return err }(), cuda.ErrorInvalidValue, "no kind of memory 7"},
		"kernel that is not there": {func() error { _, _, err := d.Function(module0, "_Z5emptyv"); return err }(), cuda.ErrorNotFound, "mangled"},
		"kernel with NUL":          {func() error { _, _, err := d.Function(module0, "a\x00b"); return err }(), dl.ErrNUL, "NUL"},
		"variable not there":       {func() error { _, _, err := d.Global(module0, "x"); return err }(), cuda.ErrorNotFound, `variable "x"`},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	for what, err := range map[string]error{
		"to managed memory": d.Prefetch(stream0, 0, 1, driver.ManagedMem),
		"to no stream":      d.Prefetch(0, 0, 1, driver.HostMem),
	} {
		if e := (*driver.Error)(nil); !errors.As(err, &e) || e.Op != "prefetch" || e.Lost {
			t.Errorf("prefetch %s: %v", what, err)
		}
	}
	d.caps = driver.Caps{}
	if _, err := d.RegisterReadOnly(nil, 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("memory registered for reading: %v", err)
	}
	if err := d.Prefetch(stream0, 0, 1, driver.DeviceMem); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("prefetch: %v", err)
	}
	if _, err := d.Alloc(driver.ManagedMem, 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("managed memory: %v", err)
	}
	if _, err := d.Register(nil, 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("registered memory: %v", err)
	}
}

func TestCloseWhileEnding(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.set("cuCtxGetCurrent", int(cuda.ErrorDeinitialized))
	f.set("cuDevicePrimaryCtxRelease_v2", int(cuda.ErrorDeinitialized))
	if err := d.Close(); err != nil {
		t.Errorf("while the driver shuts down: %v", err)
	}
	d.closed.Store(false)
	f.set("cuDevicePrimaryCtxRelease_v2", int(cuda.ErrorInvalidContext))
	if err := d.Close(); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Errorf("a release that fails: %v", err)
	}
}

// TestLoadTargets has images that the driver has no use for, as of another architecture.
func TestLoadTargets(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.set("cuLibraryLoadData", int(cuda.ErrorNoBinaryForGPU))
	for name, want := range map[string]string{"params.cubin": "sm_90: ", "params.ptx": "sm_70 as PTX: ", "params.fatbin": "sm_70 as PTX, sm_90: "} {
		_, err := d.Load(image(t, name))
		if !errors.Is(err, cuda.ErrorNoBinaryForGPU) || !strings.Contains(err.Error(), " bytes for "+d.info.Arch+": it has code for "+want) {
			t.Errorf("%s: %v, want it to name %s", name, err, want)
		}
	}
}

func TestLoadLog(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	for _, end := range []string{"", "\x00"} {
		text := ".version 6.4\nan error here" + end
		_, err := d.Load([]byte(text))
		want := "cuda: load: device 0 (Fake 0): PTX of 27 bytes for " + d.info.Arch + ": " + cuda.ErrorInvalidPTX.Error() + "\nptxas fatal : error here\ninfo : 26 bytes of text"
		if !errors.Is(err, cuda.ErrorInvalidPTX) || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	f.set("log", 1) // without an end
	_, err := d.Load([]byte(emptyPTX))
	if err == nil || !strings.HasSuffix(err.Error(), "\n"+strings.Repeat("e", logSize)+"\n"+strings.Repeat("i", logSize)) {
		t.Errorf("error of %d bytes: %.200q", len(err.Error()), err)
	}
	f.set("log", 0)
	if m, err := d.Load(kernels.Saxpy); m != module0 || err != nil {
		t.Errorf("module %#x, %v", m, err)
	}
}
