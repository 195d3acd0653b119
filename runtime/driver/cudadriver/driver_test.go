//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

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
		t.Error("this driver does not report parameters")
	}
	if _, info := function(t, d, "count"); info.Params != nil || info.MaxThreads != 100 {
		t.Errorf("%+v", info)
	}
}

func TestNoDevices(t *testing.T) {
	none := newFake(t, 13000, "DEVICES=0")
	for _, code := range []cuda.Result{cuda.Success, cuda.ErrorNoDevice} {
		none.Set("cuInit", int(code))
		d := none.driver()
		if infos, err := d.Devices(); len(infos) != 0 || err != nil {
			t.Errorf("no device: %v, %v", infos, err)
		}
		if dev, err := d.Open(0); dev != nil || !errors.Is(err, cuda.ErrorInvalidDevice) || !strings.HasPrefix(err.Error(), "cuda: open: no device 0: the driver has 0: ") {
			t.Errorf("no device: %v, %v", dev, err)
		}
	}

}

// TestContextUntouched runs every call on a thread with a stack of other contexts, and checks that
// the stack stays as it was.
func TestContextUntouched(t *testing.T) {
	f := newFake(t, 13000)
	lib, err := cuda.Open(cuda.Options{Path: f.Path})
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
		f.Set(fails, int(cuda.ErrorInvalidContext))
		drv.Open(1)
		same("Open without "+fails, theirs)
		f.Set(fails, 0)
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
	// Close removes only the device's own context from the thread.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	same("Close", 0x111)
	if err := d.Close(); err == nil || f.retained(0) != 0 {
		t.Errorf("a second Close: %v, %d references", err, f.retained(0))
	}
}

func TestProbe(t *testing.T) {
	f := newFake(t, 13000)
	drv := f.driver()
	f.Calls()
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
		Pools: true, HostPools: true, Graphs: true, Conditionals: true, Timers: true, Peers: true, Comms: true, Native: true, Capture: true,
		Prefetch: true, ReadOnlyRegister: true, ResizeNodes: true, ManagedPools: true,
		IPCMem: true, IPCEvents: true, MemSharing: true, VirtualMem: true, PoolSharing: true, Adopt: true, Values: true,
		MemInfo: true, Links: true, Occupancy: true, PriorityRange: [2]int{0, -5},
		Cooperative: true, Clusters: true, DependentLaunch: true, LaunchEvents: true, NodeAttrs: true,
		Compile: true,
	}
	if caps := open().caps; caps != want {
		t.Errorf("caps %+v, want %+v", caps, want)
	}
	f.Want(
		"cuDevicePrimaryCtxRetain(40)",
		"cuMemGetAllocationGranularity(1 0, 1 0, 1, 0)",
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
		"cuCtxGetCurrent()", // from the probe's second thread
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
		"cuCtxGetCurrent()", // from the probe's third thread
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
		"cuCtxGetCurrent()", // by Close
		"cuDevicePrimaryCtxRelease_v2(40)",
	)
	if f.Live() != 0 || f.retained(0) != 0 {
		t.Errorf("%d objects and %d references are left", f.Live(), f.retained(0))
	}

	for _, name := range []string{
		"cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD2D32Async", "cuMemcpyAsync", "cuMemcpyPeerAsync", "cuMemcpyDtoHAsync_v2",
		"cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery", "cuLaunchKernel", "cuMemAllocFromPoolAsync",
		"cuMemFreeAsync", "cuGraphLaunch", "cuEventElapsedTime_v2",
	} {
		f.Set("bound "+name, 1)
		if !open().sets {
			t.Errorf("%s needs a context, but submitting sets none", name)
		}
		if f.Live() != 0 || f.retained(0) != 0 {
			t.Fatalf("%s needs a context: %d objects and %d references are left", name, f.Live(), f.retained(0))
		}
		f.Set("bound "+name, 0)
	}
	f.Set("bound", 1)
	if !open().sets {
		t.Error("the driver wants a context, but submitting sets none")
	}
	f.Set("bound", 0)
	f.Set("cuEventQuery", int(cuda.ErrorNotReady))
	if open().sets {
		t.Error("an unready event counts as a failure")
	}
	f.Set("cuEventQuery", 0)

	// If the driver cannot compile PTX, the probe does not launch.
	f.Calls()
	f.Set("cuLibraryLoadData", int(cuda.ErrorJITCompilerNotFound))
	if open().sets {
		t.Error("without a compiler, submitting sets a context")
	}
	if calls := f.Calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "cuLaunchKernel") }) {
		t.Errorf("without a compiler, the probe launches a kernel:\n%s", strings.Join(calls, "\n"))
	}
	f.Set("cuLibraryLoadData", 0)

	// The probe skips the calls for objects that it cannot make, and destroys all objects that it
	// made.
	for name, untried := range map[string]string{
		"cuDeviceGetDefaultMemPool": "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync": "cuMemFreeAsync",
		"cuGraphCreate": "cuGraphLaunch", "cuGraphAddMemsetNode": "cuGraphLaunch", "cuGraphAddMemcpyNode": "cuGraphExec", "cuGraphInstantiateWithFlags": "cuGraphLaunch",
	} {
		f.Set(name, int(cuda.ErrorOutOfMemory))
		f.Calls()
		if caps := open().caps; caps != want {
			t.Errorf("%s fails: caps %+v, want %+v", name, caps, want)
		}
		calls := f.Calls()
		if slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, untried) }) {
			t.Errorf("%s fails, but %s is tried:\n%s", name, untried, strings.Join(calls, "\n"))
		}
		f.Set(name, 0)
		if f.Live() != 0 || f.retained(0) != 0 {
			t.Fatalf("%s fails: %d objects and %d references are left", name, f.Live(), f.retained(0))
		}
	}

	for attr, off := range map[string]func(*driver.Caps){
		"attr 83":  func(c *driver.Caps) { c.Managed, c.Prefetch, c.ManagedPools = false, false, false },
		"attr 89":  func(c *driver.Caps) { c.Managed, c.Prefetch, c.ManagedPools = false, false, false },
		"attr 99":  func(c *driver.Caps) { c.HostRegister, c.ReadOnlyRegister = false, false },
		"attr 102": func(c *driver.Caps) { c.MemSharing, c.VirtualMem = false, false },
		"attr 103": func(c *driver.Caps) { c.MemSharing = false },
		"attr 113": func(c *driver.Caps) { c.ReadOnlyRegister = false },
		"attr 115": func(c *driver.Caps) {
			c.Pools, c.HostPools, c.ManagedPools, c.PoolSharing = false, false, false, false
		},
		"attr 119": func(c *driver.Caps) { c.PoolSharing = false },
		"attr 122": func(c *driver.Caps) { c.Values = false },
		"attr 144": func(c *driver.Caps) { c.HostPools = false },
	} {
		f.Set(attr, 1)
		less := want
		off(&less)
		if caps := open().caps; caps != less {
			t.Errorf("%s is 0: caps %+v, want %+v", attr, caps, less)
		}
		f.Set(attr, 0)
	}
}

// TestFunctions loads kernels with clusters and kernels without parameters.
func TestFunctions(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.Set("clusters", 2)
	_, info := function(t, d, "empty")
	if info.Cluster != [3]int{2, 2, 2} {
		t.Errorf("clusters of %v", info.Cluster)
	}
	if info.Params == nil || len(info.Params) != 0 {
		t.Errorf("a kernel without parameters has %v", info.Params)
	}
}

// TestUnresolvedCode loads code that was compiled to be linked and was not linked.
func TestUnresolvedCode(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	if m, err := d.Load(image(t, "unresolved.cubin")); m != 0 || !errors.Is(err, cuda.ErrorInvalidImage) || !strings.Contains(err.Error(), "unresolved symbol table, other: ") {
		t.Errorf("loaded: %#x, %v", m, err)
	}
	f.Want("")
	for _, name := range []string{"linked.cubin", "resolving.cubin", "unresolved.ptx", "params.cubin", "compressed.fatbin"} {
		m, err := d.Load(image(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ok(t, d.Unload(m))
	}
	// The error blames unresolved symbols only if nothing else can be the cause.
	for name, c := range map[string]struct{ kernel, says, not string }{
		"unresolved.fatbin": {"calls", "unresolved symbol table, other: ", "mangled"},
		"resolving.cubin":   {"heap", "the image has code of that name", "mangled"},
		"params.fatbin":     {"_Z4nonev", "mangled", "linked"},
		"compressed.fatbin": {"calls", "mangled", "linked"},
	} {
		m, err := d.Load(image(t, name))
		ok(t, err)
		_, _, err = d.Function(m, c.kernel) // the fake driver does not have the kernel
		if !errors.Is(err, cuda.ErrorNotFound) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, d.Unload(m))
	}
	f.Set("cuLibraryLoadData", int(cuda.ErrorInvalidImage))
	if _, err := d.Load(image(t, "unresolved.fatbin")); !strings.Contains(err.Error(), "unresolved symbol") {
		t.Error(err)
	}
	if len(d.modules) != 0 {
		t.Errorf("the device still knows %d modules", len(d.modules))
	}
	f.Set("cuLibraryLoadData", 0)
	m, err := d.Load([]byte(emptyPTX))
	ok(t, err)
	f.Set("cuLibraryUnload", int(cuda.ErrorInvalidContext))
	if err := d.Unload(m); !errors.Is(err, cuda.ErrorInvalidContext) || d.modules[m].code == nil {
		t.Errorf("a module that could not be unloaded: %v; the device still knows it: %v", err, d.modules[m])
	}
}

// TestLoadAsModule loads device code as a module if the driver has no libraries, or loads them
// eagerly into all contexts.
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
		f.Set("eager", c.eager)
		d := f.device()
		f.Calls()
		m, err := d.Load([]byte(emptyPTX))
		ok(t, err)
		ok(t, d.Unload(m))
		if got := f.Calls(); !slices.Equal(got, c.want) {
			t.Errorf("CUDA %v, eager %d: %q, want %q", c.release, c.eager, got, c.want)
		}
	}
}

// TestLoadWithoutContext makes loading a library's module into the context fail. Nothing stays
// loaded.
func TestLoadWithoutContext(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	before := f.Live()
	f.Set("cuLibraryGetModule", int(cuda.ErrorOutOfMemory))
	if _, err := d.Load([]byte(emptyPTX)); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Error(err)
	}
	if now := f.Live(); now != before || len(d.modules) != 0 {
		t.Errorf("%d objects were live, and %d are now; the device still knows %d modules", before, now, len(d.modules))
	}
}

// TestLateLog makes the driver compile a library, and write the compiler's log, only when a
// function is needed.
func TestLateLog(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	m, err := d.Load([]byte(emptyPTX))
	ok(t, err)
	runtime.GC()
	f.Set("late log", 1)
	_, _, err = d.Function(m, "empty")
	ok(t, err)
	if logs := d.modules[m].logs; logs == nil || logs.log() != "compiled when it was needed" {
		t.Error("the log was written to freed memory")
	}
	ok(t, d.Unload(m))
}

// TestNoCaps tests a device without any optional feature.
func TestNoCaps(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
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
	f.Set("cuCtxGetCurrent", int(cuda.ErrorDeinitialized))
	f.Set("cuDevicePrimaryCtxRelease_v2", int(cuda.ErrorDeinitialized))
	if err := d.Close(); err != nil {
		t.Errorf("while the driver shuts down: %v", err)
	}
	d.closed.Store(false)
	f.Set("cuDevicePrimaryCtxRelease_v2", int(cuda.ErrorInvalidContext))
	if err := d.Close(); !errors.Is(err, cuda.ErrorInvalidContext) {
		t.Errorf("a release that fails: %v", err)
	}
}

// TestLoadTargets loads images without code for the device. The error must name the targets for
// which the image has code.
func TestLoadTargets(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.Set("cuLibraryLoadData", int(cuda.ErrorNoBinaryForGPU))
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
	f.Set("log", 1) // a log without a terminating NUL
	_, err := d.Load([]byte(emptyPTX))
	if err == nil || !strings.HasSuffix(err.Error(), "\n"+strings.Repeat("e", logSize)+"\n"+strings.Repeat("i", logSize)) {
		t.Errorf("error of %d bytes: %.200q", len(err.Error()), err)
	}
	f.Set("log", 0)
	if m, err := d.Load(kernels.Saxpy); m != module0 || err != nil {
		t.Errorf("module %#x, %v", m, err)
	}
}
