//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"math"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
)

// TestSuite runs the tests that hipdriver and cudadriver share.
func TestSuite(t *testing.T) { drivertest.Run(t, suite) }

// all returns a call of every method of the device except Bind and Close.
func all(d *device) map[string]func() error { return suite.All(d) }

var suite *drivertest.API

func init() { // init avoids a cycle: the functions use suite
	suite = &drivertest.API{
		Name: "hip", Prefix: "hip", File: "libamdhip64.so.6", Release: hip64,
		Result: func(code int) drivertest.Result { return hip.Result(code) },
		Wrap:   wrap,
		Sticky: map[int]bool{4: true, 214: true, 700: true, 702: true, 710: true, 719: true},
		Fake:   func(t testing.TB, release dl.Version) drivertest.Library { return newFake(t, release) },
		Open: func(lib, comm, compiler string) (driver.Driver, error) {
			var opts []Option
			if comm != "" {
				opts = append(opts, WithRCCL(nccl.Options{Path: comm}), nil)
			}
			if compiler != "" {
				opts = append(opts, WithHIPRTC(hiprtc.Options{Path: compiler}))
			}
			d, err := Open(hip.Options{Path: lib}, opts...)
			if err != nil {
				return nil, err
			}
			return d, nil
		},
		Devices: drivertest.DevicesTest{
			One: driver.Info{
				Index: 1, Name: "Fake 1", PCI: "0000:c1:01.0", Arch: "gfx90a", Memory: 64 << 30, Processors: 630, WarpSize: 870, MaxThreads: 560,
				MaxBlock: [3]int{260, 270, 280}, MaxGrid: [3]int{290, 300, 310}, SharedMem: 64 << 10, SharedOptIn: 64 << 10,
				Version: hip64, DriverVersion: sysfs.ModuleVersion("amdgpu"), Major: 230, Minor: 610, NUMANode: sysfs.NUMANode("0000:c1:01.0"), Clock: 50, MemoryClock: 600,
				MemoryBus: 590, L2: 190, CopyEngines: 20, Registers: 710, ProcessorThreads: 570, ProcessorBlocks: 250, ProcessorRegisters: 720, ProcessorSharedMem: 100020,
				Cooperative: true, UUID: [16]byte([]byte("0123456789abcde1")),
			},
			Odd: map[string]int{
				"hipDeviceGetPCIBusId": drivertest.InvalidDevice, "hipDeviceGetUuid": drivertest.InvalidValue, "nameless": 1, "attr 75": 160<<10 + 1, "attr 16": 2,
			},
			IsOdd: func(i *driver.Info) bool {
				return i.PCI == "" && i.UUID == [16]byte{} && i.Name == "gfx90a" && i.SharedOptIn == 160<<10 && i.Integrated
			},
		},
		OpenErrors: drivertest.OpenErrorsTest{
			Init: map[string]struct {
				Code int
				Op   string
				Says string
			}{
				"hipInit":                     {drivertest.Unknown, "init", "hipErrorUnknown"},
				"hipGetDeviceCount":           {int(hip.ErrorInsufficientDriver), "count devices", "hipErrorInsufficientDriver"},
				"hipDeviceGetName":            {drivertest.Unknown, "describe", "device 0: name"},
				"hipDeviceTotalMem":           {drivertest.Unknown, "describe", "device 0: size of memory"},
				"hipDeviceGetAttribute":       {drivertest.Unknown, "describe", "hipDeviceAttributeMultiprocessorCount"},
				"hipGetDevicePropertiesR0600": {drivertest.InvalidDevice, "describe", "device 0: properties"},
			},
			Device: []string{"hipGetDevice", "hipSetDevice", "hipDeviceGetAttribute", "hipDeviceGetStreamPriorityRange"},
			Lost:   "hipSetDevice",
		},
		Calls: drivertest.CallsTest{
			Events: []string{"hipStreamCreateWithFlags(1)", "hipEventCreateWithFlags(2)", "hipEventRecord(0xe000, 0x5000)", "hipEventQuery(0xe000)", "hipEventQuery(0xe000)",
				"hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipEventCreateWithFlags(0)", "hipEventElapsedTime(0xe000, 0xe000)"},
			Memory: []string{"hipMalloc(32)", "hipHostMalloc(32, 3)", "hipHostGetDevicePointer(0)", "hipMallocManaged(32, 1)",
				"hipMemsetD32Async(0xa1a2a3a4, 8, 0x5000)", "hipMemsetD16Async(0xb3b4, 4, 0x5000)", "hipMemsetD8Async(0xc4, 2, 0x5000)",
				"hipMemcpyDtoDAsync(32, 0x5000)", "hipMemcpyDtoHAsync(32, 0x5000)", "hipMemcpyHtoDAsync(32, 0x5000)",
				"hipFree()", "hipHostFree()", "hipFree()"},
			Register: []string{"hipHostRegister(64, 3)", "hipHostGetDevicePointer(0)", "hipHostUnregister()"},
			Hints: []string{"hipHostMalloc(32, 7)", "hipHostGetDevicePointer(0)", "hipHostFree()",
				"hipMemPrefetchAsync(100, 0, 0x5000)", "hipMemPrefetchAsync(100, -1, 0x5000)"},
			Function: []string{"hipModuleLoadData(ELF\x02)", "hipModuleGetFunction(count)", "hipFuncGetAttribute(0)", "hipFuncGetAttribute(1)",
				"hipFuncGetAttribute(4)", "hipFuncGetAttribute(3)"},
			Launch: []string{"hipModuleLaunchKernel(0xf001, 2 3 4, 5 6 7, 8, 0x5000)", "hipModuleLaunchKernel(0xf001, 2 1 1, 1 6 1, 0, 0x5000)"},
			End:    []string{"hipModuleUnload(0x3000)", "hipEventDestroy(0xe000)", "hipStreamQuery(0x5000)", "hipStreamDestroy(0x5000)"},
			Info:   driver.FuncInfo{MaxThreads: 100, SharedMem: 1024, Registers: 104, LocalMem: 103},
			Global: 8,
		},
		Errors: drivertest.ErrorsTest{
			Functions: map[string][]string{
				"new stream": {"hipStreamCreateWithFlags", "hipStreamCreateWithPriority"}, "destroy stream": {"hipStreamDestroy"}, "new event": {"hipEventCreateWithFlags"},
				"destroy event": {"hipEventDestroy"}, "record": {"hipEventRecord"}, "query": {"hipEventQuery"}, "wait": {"hipStreamWaitEvent"},
				"alloc": {"hipMalloc", "hipHostMalloc", "hipMallocManaged", "hipHostGetDevicePointer"}, "free": {"hipFree", "hipHostFree"},
				"register": {"hipHostRegister", "hipHostGetDevicePointer"}, "unregister": {"hipHostUnregister"}, "prefetch": {"hipMemPrefetchAsync"},
				"fill": {"hipMemsetD32Async", "hipMemset2DAsync"}, "copy": {"hipMemcpyDtoDAsync", "hipMemcpyPeerAsync"}, "upload": {"hipMemcpyHtoDAsync"}, "download": {"hipMemcpyDtoHAsync"},
				"load": {"hipModuleLoadData"}, "unload": {"hipModuleUnload"},
				"function": {"hipModuleGetFunction", "hipFuncGetAttribute"},
				"global":   {"hipModuleGetGlobal"}, "launch": {"hipModuleLaunchKernel", "hipModuleLaunchCooperativeKernel"}, "bind": {"hipSetDevice"},
				"memory info": {"hipMemGetInfo"}, "link": {"hipDeviceGetP2PAttribute"}, "occupancy": {"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
				"export memory": {"hipIpcGetMemHandle"}, "open memory": {"hipIpcOpenMemHandle"}, "close memory": {"hipIpcCloseMemHandle"},
				"new timer": {"hipEventCreateWithFlags"}, "elapsed": {"hipEventElapsedTime"},
				"default pool": {"hipDeviceGetDefaultMemPool", "hipMemPoolSetAttribute"}, "current pool": {"hipDeviceGetMemPool", "hipMemPoolSetAttribute"},
				"set current pool": {"hipDeviceSetMemPool"}, "new pool": {"hipMemPoolCreate", "hipMemPoolSetAttribute"},
				"destroy pool": {"hipMemPoolTrimTo", "hipMemPoolDestroy"}, "pool attribute": {"hipMemPoolGetAttribute"},
				"set pool attribute": {"hipMemPoolSetAttribute"}, "trim pool": {"hipMemPoolTrimTo"}, "access pool": {"hipMemPoolSetAccess"},
				"alloc async": {"hipMallocFromPoolAsync"}, "free async": {"hipFreeAsync"},
				"new graph": {"hipGraphCreate"}, "destroy graph": {"hipGraphDestroy"}, "instantiate": {"hipGraphInstantiateWithFlags", "hipEventCreateWithFlags"},
				"destroy exec": {"hipGraphExecDestroy"}, "launch graph": {"hipGraphLaunch"},
				"add node": {"hipGraphAddEmptyNode", "hipGraphAddKernelNode", "hipGraphAddMemsetNode", "hipGraphAddMemcpyNode1D", "hipGraphAddChildGraphNode", "hipGraphAddEventRecordNode"},
				"set node": {"hipGraphExecKernelNodeSetParams", "hipGraphExecMemsetNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D", "hipGraphExecChildGraphNodeSetParams", "hipGetDevice", "hipSetDevice"},
				"enter":    {"hipGetDevice", "hipSetDevice"}, "leave": {"hipSetDevice"},
				"adopt stream": {"hipStreamGetDevice", "hipStreamGetPriority"}, "capturing": {"hipStreamIsCapturing"},
				"begin capture": {"hipStreamBeginCapture"}, "end capture": {"hipStreamEndCapture"},
			},
			Refused: []int{int(hip.ErrorContextIsDestroyed)}, // before HIP 7 this error means that the stream does not exist
		},
		Pools: drivertest.PoolsTest{
			Releases: []dl.Version{hip62, hip64, hip70, hip71},
			// The device turns PoolReuseEvents off in every pool that it returns, including pools
			// that it has not made.
			Current: []string{"hipDeviceGetDefaultMemPool(0)", "hipMemPoolSetAttribute(0xb000, 1, 0)", "hipDeviceSetMemPool(0, 0xb020)",
				"hipDeviceGetMemPool(0)", "hipMemPoolSetAttribute(0xb020, 1, 0)", "hipDeviceSetMemPool(0, 0xb000)"},
			New: []string{"hipMemPoolCreate(1, 0, 1 0, (nil), 100)", "hipMemPoolSetAttribute(0xb020, 1, 0)"},
			Use: []string{"hipMallocFromPoolAsync(64, 0xb020, 0x5000)", "hipMallocFromPoolAsync(64, 0xb020, 0x5000)", "hipFreeAsync(0x5000)",
				"hipMemPoolTrimTo(0xb020, 1048576)"},
			Destroy: []string{"hipMemPoolTrimTo(0xb020, 0)", "hipMemPoolDestroy(0xb020)"},
			Attrs: map[driver.PoolAttr]uint64{
				driver.PoolReuseOpportunistic: 0, driver.PoolReuseInternal: 1, driver.PoolThreshold: math.MaxUint64,
			},
			Reads:    []int{1, 2, 3, 4, 5, 6, 5, 7, 8, 7},
			Reserved: "hipMemPoolAttrReservedMemCurrent", Used: "hipMemPoolAttrUsedMemCurrent",
			Refused: map[string]driver.PoolDesc{
				"a shareable pool":                                          {Shareable: true},
				"a pool of host or managed memory":                          {Kind: driver.ManagedMem},
				"a pool of host or managed memory, which HIP does not have": {Kind: driver.HostMem},
			},
		},
		Hot: drivertest.HotTest{
			Releases: []dl.Version{hip64, hip71}, // 7.1 has a function for strided fills
			Attrs:    driver.LaunchAttrs{Cooperative: true, Priority: -1, Carveout: 50},
			Sets:     func(d drivertest.Device, sets bool) { d.(*device).sets = sets },
		},
		Compile: drivertest.CompileTest{
			Info: driver.CompilerInfo{Name: "hipRTC", Version: "6.4.43484", Target: "gfx90a", Build: "libhiprtc.so.6.4.43484 "},
			Env:  "PUREGPU_HIPRTC_LIBRARY", File: "libhiprtc.so.6", Ext: ".hip",
			Fake:    func(t *testing.T) string { return withHIPRTC(t, "libhiprtc.so.6.4.43484") },
			Bare:    func(t *testing.T) string { return withHIPRTC(t, "libhiprtc.so.6") },
			Headers: map[string]string{"b.h": "two", "a.h": ""}, Options: []string{"-DX=1", "-O3"},
			Image: "\x7fELFname k.hip\nheader a.h: \n\nheader b.h: two\noption --offload-arch=gfx90a\noption -DX=1\noption -O3\n",
			Log:   "k.hip:1:5: warning: unused variable 'odd' [-Wunused-variable]\nint odd;\n    ^\n1 warning generated when compiling for gfx90a.",
			Own:   []string{"--offload-arch=gfx90a:xnack-", "--gpu-architecture=gfx942"}, Debug: "-g",
			// The error has no version, because neither the file's name nor the library tells it.
			Failed: "hip: compile: hipRTC for gfx90a: ",
			Errors: []drivertest.CompileError{
				{Name: "the source", Source: driver.Source{Text: "odd\nwrong"}, Kind: hiprtc.ErrorCompilation, Text: "sub/bad.h(1): error: unknown type name 'bad' (and 1 more)\n", Messages: 3},
				{Name: "an option", Source: driver.Source{Options: []string{"--bogus"}}, Kind: hiprtc.ErrorCompilation, Text: "error: unsupported option '--bogus'\n", Messages: 1},
				{Name: "an expression", Source: driver.Source{Text: "none", Names: []string{"f<int>"}}, Kind: hiprtc.ErrorNameExpressionNotValid, Text: `k.hip: name expression "f<int>": hiprtc: HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID`},
				{Name: "no code", Source: driver.Source{Options: []string{"-fgpu-rdc"}}, Kind: driver.ErrUnsupported, Text: "k.hip: the options give no code object"},
			},
			Check: func(t *testing.T, name string, e *driver.CompileError) {
				if strings.Contains(e.Log, "comgr") {
					t.Errorf("%s: %s", name, e.Log)
				}
				if name == "the source" && (e.Messages[2].File != "k.hip" || e.Messages[2].Line != 2 || e.Messages[2].Column != 6 || e.Messages[2].Detail != "*x = wrong;\n     ^") {
					t.Errorf("%+v", e.Messages)
				}
			},
		},
		Comm: drivertest.CommTest{
			Env: "PUREGPU_RCCL_LIBRARY", File: "librccl.so.1", Says: "RCCL not found",
			Fake: func(t *testing.T) string {
				lib := testlib.NCCL(t, 22105, true)
				lib.Defines = append(lib.Defines, "DEVICE=0")
				return lib.Build(t)
			},
		},
		Capture: drivertest.CaptureTest{
			Releases: []dl.Version{hip61, hip64, hip70, hip71}, Begin: "hipStreamBeginCapture(0x5000, 2)", End: "hipStreamEndCapture(0x5000)", Graph: graph0,
		},
		Adopt: drivertest.AdoptTest{
			Releases: []dl.Version{hip57, hip64, hip71}, Calls: []string{"hipStreamGetDevice(0x5000)", "hipStreamGetPriority(0x5000)"}, Each: "device",
		},
		Facts: drivertest.FactsTest{
			Total: 64 << 30, MemInfo: "hipMemGetInfo()",
			Links: []drivertest.LinkTest{
				{Want: driver.Link{Kind: driver.LinkXGMI, Rank: -1, Hops: 1, Atomics: true, Arrays: true}},
				{Set: map[string]int{"pcie": 1, "p2p 2": 1}, Want: driver.Link{Kind: driver.LinkPCIe, Rank: -1, Hops: 1, Arrays: true}},
				{Set: map[string]int{"qpi": 1, "p2p 3": 1}, Want: driver.Link{Rank: -1, Hops: 1, Atomics: true}},
				{Set: map[string]int{"p2p 1": 1}, Want: driver.Link{Kind: driver.LinkNone, Rank: -1}},
				{Set: map[string]int{"hipExtGetLinkTypeAndHopCount": drivertest.InvalidHandle}, Want: driver.Link{Rank: -1, Atomics: true, Arrays: true}},
			},
			Occupancy: "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
		},
		IPC: []drivertest.IPCTest{
			{Release: hip57, Calls: []string{"hipIpcOpenMemHandle(memory, 0)", "hipMemGetAddressRange()", "hipIpcCloseMemHandle()"}, Range: "hipMemGetAddressRange"},
			{Release: hip64, Calls: []string{"hipIpcOpenMemHandle(memory, 1)", "hipMemGetAddressRange()", "hipIpcCloseMemHandle()"}, Range: "hipMemGetAddressRange"},
		},
		Peers:      drivertest.PeersTest{Releases: []dl.Version{hip64, hip70}, Enable: "hipDeviceEnablePeerAccess"},
		Priorities: map[int]int{0: 0, 1: 1, -1: -1, -6: -1, 2: 1, 1 << 40: 1},

		Image: codeObject(), Pool0: pool0, Pool1: pool1,
		Attrs:   driver.LaunchAttrs{Priority: -1},
		Destroy: func(d drivertest.Device, s driver.Stream) error { return d.(*device).lib.StreamDestroy(hip.Stream(s)) },
		Neighbour: func(d drivertest.Device) driver.Device {
			return &device{lib: d.(*device).lib, id: 1 - d.(*device).id, info: driver.Info{Index: 1}}
		},
		Leave: func(d drivertest.Device) error {
			was, err := d.(*device).lib.GetDevice()
			if err != nil {
				return err
			}
			return d.Leave(uintptr(was))
		},
		Graph: func(drivertest.Device) drivertest.Graph {
			g := drivertest.Graph{Graph: graph0, Old: graph0, Exec: exec0, OldExec: exec0, Ops: nodeOps, Nodes: make([]driver.Node, len(nodeOps))}
			for i := range g.Nodes {
				g.Nodes[i] = node0
			}
			return g
		},
	}
}
