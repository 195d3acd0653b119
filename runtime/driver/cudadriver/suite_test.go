//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"math"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// TestSuite runs the tests that cudadriver and hipdriver share.
func TestSuite(t *testing.T) { drivertest.Run(t, suite) }

// enter calls Enter and Leave.
func enter(d driver.Natives) error {
	was, err := d.Enter()
	if err != nil {
		return err
	}
	return d.Leave(was)
}

// all returns calls of the device's methods, as drivertest.API.All describes.
func all(d *device) map[string]func() error { return suite.All(d) }

var suite *drivertest.API

func init() { // init avoids an initialization cycle: the functions use suite
	suite = &drivertest.API{
		Name: "cuda", Prefix: "cu", File: "libcuda.so.1", Release: 13000,
		Result: func(code int) drivertest.Result { return cuda.Result(code) },
		Wrap:   wrap,
		Sticky: map[int]bool{
			4: true, 214: true, 220: true, 226: true, 700: true, 702: true, 709: true, 710: true, 714: true, 715: true, 716: true, 717: true,
			718: true, 719: true, 721: true, 810: true, 911: true,
		},
		Fake: func(t testing.TB, release dl.Version) drivertest.Library { return newFake(t, release) },
		Open: func(lib, comm, compiler string) (driver.Driver, error) {
			var opts []Option
			if comm != "" {
				opts = append(opts, WithNCCL(nccl.Options{Path: comm}), nil)
			}
			if compiler != "" {
				opts = append(opts, WithNVRTC(nvrtc.Options{Path: compiler}))
			}
			d, err := Open(cuda.Options{Path: lib}, opts...)
			if err != nil {
				return nil, err
			}
			return d, nil
		},
		Devices: drivertest.DevicesTest{
			Settings: map[string]int{"MIG": 1},
			One: driver.Info{
				Index: 1, Name: "Fake 1", PCI: "0000:3b:01.0", Arch: "sm_90", Memory: 80 << 30, Processors: 160, WarpSize: 100, MaxThreads: 10,
				MaxBlock: [3]int{20, 30, 40}, MaxGrid: [3]int{50, 60, 70}, SharedMem: 48 << 10, SharedOptIn: 227 << 10,
				Version: 13000, DriverVersion: sysfs.ModuleVersion("nvidia"), Major: 9, MIG: true, NUMANode: 1, Clock: 130, MemoryClock: 360, MemoryBus: 370,
				L2: 380, CopyEngines: 400, Registers: 120, ProcessorThreads: 390, ProcessorBlocks: 1060, ProcessorRegisters: 820, ProcessorSharedMem: 810,
				Cooperative: true, Clusters: true,
				UUID: [16]byte{0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f},
			},
			Odd: map[string]int{
				"cuDeviceGetPCIBusId": int(cuda.ErrorNotSupported), "attr 97": 1, "attr 18": 2, "attr 95": 1, "attr 120": 1, "MIG": 0,
			},
			IsOdd: func(i *driver.Info) bool {
				return !i.MIG && i.UUID[1] == 1 && !i.Cooperative && !i.Clusters && i.PCI == "" && i.SharedOptIn == 48<<10 && i.Integrated
			},
		},
		OpenErrors: drivertest.OpenErrorsTest{
			Init: map[string]struct {
				Code int
				Op   string
				Says string
			}{
				"cuInit":               {int(cuda.ErrorSystemDriverMismatch), "init", "reboot"},
				"cuDeviceGetName":      {drivertest.Unknown, "describe", "device 0: name"},
				"cuDeviceGetAttribute": {drivertest.InvalidValue, "describe", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"},
			},
			Device: []string{
				"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate", "cuEventCreate", "cuMemAlloc_v2", "cuMemHostAlloc",
				"cuMemHostGetDevicePointer_v2", "cuDeviceGetAttribute", "cuStreamSynchronize", "cuCtxGetStreamPriorityRange",
			},
			Lost: "cuMemsetD8Async",
		},
		Calls: drivertest.CallsTest{
			Events: []string{"cuStreamCreate(1)", "cuEventCreate(2)", "cuEventRecord(0xe000, 0x5000)", "cuEventQuery(0xe000)", "cuEventQuery(0xe000)",
				"cuStreamWaitEvent(0x5000, 0xe000, 0)", "cuEventCreate(0)", "cuEventElapsedTime_v2(0xe000, 0xe000)"},
			Memory: []string{"cuMemAlloc_v2(32)", "cuMemHostAlloc(32, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemAllocManaged(32, 1)",
				"cuMemsetD32Async(0xa1a2a3a4, 8, 0x5000)", "cuMemsetD16Async(0xb3b4, 4, 0x5000)", "cuMemsetD8Async(0xc4, 2, 0x5000)",
				"cuMemcpyAsync(32, 0x5000)", "cuMemcpyDtoHAsync_v2(32, 0x5000)", "cuMemcpyHtoDAsync_v2(32, 0x5000)",
				"cuMemFree_v2()", "cuMemFreeHost()", "cuMemFree_v2()"},
			Register: []string{"cuMemHostRegister_v2(64, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemHostUnregister()"},
			ReadOnly: []string{"cuMemHostRegister_v2(64, 11)", "cuMemHostGetDevicePointer_v2(0)", "cuMemHostUnregister()"},
			Hints: []string{"cuMemHostAlloc(32, 7)", "cuMemHostGetDevicePointer_v2(0)", "cuMemFreeHost()",
				"cuCtxPushCurrent_v2(0xc0)", "cuMemPrefetchAsync_v2(100, 1 0, 0, 0x5000)", "cuCtxPopCurrent_v2()",
				"cuCtxPushCurrent_v2(0xc0)", "cuMemPrefetchAsync_v2(100, 2 0, 0, 0x5000)", "cuCtxPopCurrent_v2()"},
			Function: []string{"cuLibraryLoadData(4: 3 4 5 6, 0)", "cuLibraryGetModule(0x3100)", "cuModuleGetFunction(count)", "cuFuncLoad(0xf001)", "cuFuncGetAttribute(0)", "cuFuncGetAttribute(1)",
				"cuFuncGetAttribute(4)", "cuFuncGetAttribute(3)", "cuFuncGetAttribute(11)", "cuFuncGetAttribute(12)", "cuFuncGetAttribute(13)",
				"cuFuncSetAttribute(14, 1)", "cuOccupancyMaxPotentialClusterSize(0xf001, 1 1 1, 1 1 1, 0)", "cuFuncSetAttribute(8, 231424)", "cuFuncGetParamInfo(0)", "cuFuncGetParamInfo(1)", "cuFuncGetParamInfo(2)"},
			Launch: []string{"cuLaunchKernel(0xf001, 2 3 4, 5 6 7, 8, 0x5000)", "cuLaunchKernel(0xf001, 2 1 1, 1 6 1, 0, 0x5000)"},
			End:    []string{"cuLibraryUnload(0x3100)", "cuEventDestroy_v2(0xe000)", "cuStreamDestroy_v2(0x5000)"},
			Info:   driver.FuncInfo{MaxThreads: 100, SharedMem: 1024, Registers: 104, LocalMem: 103, MaxCluster: 16, Params: []int{8, 4}},
			Global: 64,
		},
		Errors: drivertest.ErrorsTest{
			Functions: map[string][]string{
				"new stream": {"cuStreamCreate", "cuStreamCreateWithPriority"}, "destroy stream": {"cuStreamDestroy_v2"}, "new event": {"cuEventCreate"},
				"destroy event": {"cuEventDestroy_v2"}, "record": {"cuEventRecord"}, "query": {"cuEventQuery"}, "wait": {"cuStreamWaitEvent"},
				"alloc": {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemHostGetDevicePointer_v2"}, "free": {"cuMemFree_v2", "cuMemFreeHost"},
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
			},
			// After a host pool was made, upload and download use other functions. This test
			// expects the usual functions.
			Before: func(d drivertest.Device) { d.(*device).hostPools.list.Store(nil) },
		},
		Pools: drivertest.PoolsTest{
			Releases: []dl.Version{13000},
			Current:  []string{"cuDeviceGetDefaultMemPool(40)", "cuDeviceSetMemPool(40, 0x9020)", "cuDeviceGetMemPool(40)", "cuDeviceSetMemPool(40, 0x9000)"},
			// The location in the call is "1 0": a device, the one with ordinal 0.
			New: []string{"cuMemPoolCreate(1, 0, 1 0, (nil), 100, 0)"},
			Use: []string{"cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemAllocFromPoolAsync(64, 0x9020, 0x5000)", "cuMemFreeAsync(0x5000)",
				"cuMemPoolTrimTo(0x9020, 1048576)"},
			Destroy: []string{"cuMemPoolDestroy(0x9020)"},
			Attrs: map[driver.PoolAttr]uint64{
				driver.PoolReuseEvents: 1, driver.PoolReuseOpportunistic: 0, driver.PoolReuseInternal: 1,
				driver.PoolThreshold: math.MaxUint64, driver.PoolReservedHigh: 0, driver.PoolUsedHigh: 0,
			},
			Reads:    []int{1, 2, 3, 4, 5, 6, 7, 8},
			Reserved: "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT", Used: "CU_MEMPOOL_ATTR_USED_MEM_CURRENT",
			Refused: map[string]driver.PoolDesc{"managed memory, of at most 1 bytes": {Kind: driver.ManagedMem, MaxSize: 1}},
		},
		Hot: drivertest.HotTest{
			Releases: []dl.Version{13000},
			Attrs:    driver.LaunchAttrs{Cluster: [3]uint32{1, 1, 1}, Cooperative: true, Dependent: true, Priority: -1, Carveout: 50},
			Sets:     func(d drivertest.Device, sets bool) { d.(*device).sets = sets },
			More:     hot,
		},
		Compile: drivertest.CompileTest{
			Info: driver.CompilerInfo{Name: "NVRTC", Version: "12.4", Target: "sm_90", Build: "libnvrtc.so.12 "},
			Env:  "PUREGPU_NVRTC_LIBRARY", File: "libnvrtc.so.12", Ext: ".cu",
			Fake:    func(t *testing.T) string { return withNVRTC(t) },
			Bare:    func(t *testing.T) string { return withNVRTC(t) },
			Headers: map[string]string{"b.h": "two", "a.h": "one"}, Options: []string{"-DX=1", "-lineinfo"},
			Image: "\x7fELFname k.cu\nheader a.h: one\nheader b.h: two\noption --gpu-architecture=sm_90\noption -DX=1\noption -lineinfo\n",
			Log:   "k.cu(1): warning #177-D: variable \"odd\" was declared but never referenced\n  int odd;\n      ^",
			Own:   []string{"-arch=sm_90a", "--gpu-architecture=sm_90a", "-gpu-architecture=compute_80"}, Debug: "-G",
			BareVersion: "12.4", Failed: "cuda: compile: NVRTC 12.4 for sm_90: ",
			Errors: []drivertest.CompileError{
				{Name: "the source", Source: driver.Source{Text: "odd\nwrong"}, Kind: nvrtc.ErrorCompilation, Text: `k.cu(2): error: identifier "wrong" is undefined`, Messages: 2},
				{Name: "an option", Source: driver.Source{Options: []string{"--bogus"}}, Kind: nvrtc.ErrorInvalidOption, Text: "error: nvrtc: unrecognized option --bogus found", Messages: 1},
				{Name: "an expression", Source: driver.Source{Text: "none", Names: []string{"f<int>"}}, Kind: nvrtc.ErrorNameExpressionNotValid, Text: `k.cu: name expression "f<int>": nvrtc: NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID`, Messages: 0},
				{Name: "no code", Source: driver.Source{Options: []string{"-arch=lto_90", "-dlto"}}, Kind: driver.ErrUnsupported, Text: "k.cu: the options give neither", Messages: 0},
			},
		},
		Comm: drivertest.CommTest{
			Env: "PUREGPU_NCCL_LIBRARY", File: "libnccl.so.2", Says: "PUREGPU_NCCL_LIBRARY",
			Fake: func(t *testing.T) string {
				lib := testlib.NCCL(t, 22803, false)
				lib.Defines = append(lib.Defines, "DEVICE=0")
				return lib.Build(t)
			},
		},
		Capture: drivertest.CaptureTest{
			Releases: []dl.Version{13000}, Begin: "cuStreamBeginCapture_v2(0x5000, 2)", End: "cuStreamEndCapture(0x5000)",
		},
		Adopt: drivertest.AdoptTest{
			Releases: []dl.Version{11020, 11040, 12000, 13000}, Calls: []string{"cuStreamGetCtx(0x5000)", "cuStreamGetPriority(0x5000)"}, Each: "context",
		},
		Facts: drivertest.FactsTest{
			Env: "PUREGPU_NVML_LIBRARY", Total: 80 << 30, MemInfo: "cuMemGetInfo_v2()", Settings: map[string]int{"p2p 1": 4},
			Links: []drivertest.LinkTest{
				{Want: driver.Link{Rank: 3, Atomics: true, Arrays: true}},
				{Set: map[string]int{"p2p 3": 1}, Want: driver.Link{Rank: 3, Arrays: true}},
				{Set: map[string]int{"p2p 3": 1, "p2p 4": 1}, Want: driver.Link{Rank: 3}},
				{Set: map[string]int{"p2p 2": 1, "p2p 3": 1, "p2p 4": 1}, Want: driver.Link{Kind: driver.LinkNone, Rank: -1}},
			},
			Occupancy: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
		},
		IPC: []drivertest.IPCTest{
			{Release: 13000, Calls: []string{"cuIpcOpenMemHandle_v2(memory, 1)", "cuMemGetAddressRange_v2()", "cuIpcCloseMemHandle()"}, Range: "cuMemGetAddressRange_v2"},
		},
		Peers: drivertest.PeersTest{
			Releases: []dl.Version{13000}, Enable: "cuCtxEnablePeerAccess", Codes: []int{int(cuda.ErrorTooManyPeers)},
		},
		Priorities: map[int]int{0: 0, -2: -2, -5: -5, -6: -5, 1: 0, 1 << 40: 0, -1 << 40: -5},

		Image: []byte(emptyPTX), Pool0: pool0, Pool1: pool1,
		Attrs: driver.LaunchAttrs{Carveout: 1}, PoolDesc: driver.PoolDesc{Kind: driver.HostMem},
		Neighbour: func(d drivertest.Device) driver.Device {
			return &device{lib: d.(*device).lib, id: d.(*device).id + 1, info: driver.Info{Index: 1}}
		},
		Destroy: func(d drivertest.Device, s driver.Stream) error { return d.(*device).lib.StreamDestroy(cuda.Stream(s)) },
		Leave:   func(d drivertest.Device) error { return enter(d) },
		Graph:   graphOf, More: more,
	}
}

// graphMemory is the memory that graphs of graphOf write.
var graphMemory [8]uint64

// graphOf makes a graph with a node of every kind.
func graphOf(v drivertest.Device) (g drivertest.Graph) {
	d, ptr := v.(*device), driver.Ptr(uintptr(unsafe.Pointer(&graphMemory)))
	attrs := driver.LaunchAttrs{Cooperative: d.caps.Cooperative, Carveout: 1}
	g.Ops = drivertest.NodeOps(ptr, attrs, graph0)
	g.Nodes = make([]driver.Node, len(g.Ops))
	if d.noGraphs == nil {
		child, _ := d.NewGraph()
		g.Ops[5].Child = child
		g.Graph, _ = d.NewGraph()
		for i := range g.Ops {
			g.Nodes[i], _ = d.AddNode(g.Graph, nil, &g.Ops[i])
		}
		g.Exec, _ = d.Instantiate(g.Graph)
		g.Old, _ = d.NewGraph()
		g.OldExec, _ = d.Instantiate(g.Old)
	}
	return g
}

// more returns calls of the methods that only cudadriver has.
func more(v drivertest.Device) map[string]func() error {
	d, word := v.(*device), new(uint64)
	ptr := driver.Ptr(uintptr(unsafe.Pointer(word)))
	return map[string]func() error{
		"new shared event": func() error { _, err := d.NewIPCEvent(); return err },
		"export event":     func() error { _, err := d.ExportEvent(event0); return err },
		"open event": func() error {
			h, err := d.ExportEvent(event0)
			if err == nil {
				_, err = d.OpenEvent(h)
			}
			return err
		},
		"write value": func() error { return d.WriteValue(stream0, ptr, 5) },
		"wait value": func() error {
			*word = 5
			return d.WaitValue(stream0, ptr, 5)
		},
	}
}

// hot returns calls that must not allocate here, although they may in hipdriver.
func hot(t *testing.T, v drivertest.Device, m driver.Mem, launch *driver.Launch) map[string]func() error {
	d := v.(*device)
	host, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem})
	ok(t, err)
	g, err := d.NewGraph()
	ok(t, err)
	ops := []*driver.NodeOp{
		{Kind: driver.KernelNode, Launch: *launch},
		{Kind: driver.FillNode, Dst: m.Ptr, Pattern: 1, Width: 4, Count: 16},
		{Kind: driver.CopyNode, Dst: m.Ptr + 32, Src: m.Ptr, Count: 32},
	}
	nodes := make([]driver.Node, len(ops))
	for i, op := range ops {
		nodes[i], err = d.AddNode(g, nodes[:i], op)
		ok(t, err)
	}
	exec, err := d.Instantiate(g)
	ok(t, err)
	var graphs driver.Graphs = d
	var values driver.Values = d
	set := func(i int) func() error { return func() error { return graphs.SetNode(exec, nodes[i], ops[i]) } }
	return map[string]func() error{
		"AllocAsync and FreeAsync, the host": func() error {
			m, err := driver.Pools(d).AllocAsync(stream0, host, 64)
			if err != nil {
				return err
			}
			return driver.Pools(d).FreeAsync(stream0, m)
		},
		"SetNode, a kernel": set(0),
		"SetNode, a fill":   set(1),
		"SetNode, a copy":   set(2),
		"LaunchGraph":       func() error { return graphs.LaunchGraph(stream0, exec) },
		"WriteValue":        func() error { return values.WriteValue(stream0, m.Ptr, 7) },
		"WaitValue":         func() error { return values.WaitValue(stream0, m.Ptr, 0) },
	}
}
