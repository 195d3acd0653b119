//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestOldReleases tests releases from 5.2 on, and libraries that lack functions of their release.
func TestOldReleases(t *testing.T) {
	caps := driver.Caps{Managed: true, HostRegister: true, Timers: true, Peers: true, Comms: true, Prefetch: true,
		Native: true, MemInfo: true, Links: true, Occupancy: true, PriorityRange: [2]int{1, -1}, IPCMem: true, Compile: true}
	withGraphs := caps
	withGraphs.Graphs, withGraphs.Capture = true, true
	less := func(off func(*driver.Caps)) driver.Caps {
		c := withGraphs
		off(&c)
		return c
	}
	for _, c := range []struct {
		name    string
		release dl.Version
		without []string
		arch    string
		caps    driver.Caps
	}{
		{"5.2", hip52, nil, "gfx906", caps},
		{"5.7", hip57, nil, "gfx906", caps},
		{"6.1", hip61, nil, "gfx90a", withGraphs},
		{"6.4", hip64, nil, "gfx90a", withGraphs},
		{"7.0", hip70, nil, "gfx90a", withGraphs},
		{"7.1", hip71, nil, "gfx90a", withGraphs},
		{"no copies in graphs", hip64, []string{"hipDrvGraphAddMemcpyNode"}, "gfx90a", caps},
		{"no managed memory", hip64, []string{"hipMallocManaged"}, "gfx90a", less(func(c *driver.Caps) { c.Managed, c.Prefetch = false, false })},
		{"no registered memory", hip64, []string{"hipHostRegister"}, "gfx90a", less(func(c *driver.Caps) { c.HostRegister = false })},
		{"no peers", hip64, []string{"hipDeviceCanAccessPeer"}, "gfx90a", less(func(c *driver.Caps) { c.Peers = false })},
		{"no prefetching", hip64, []string{"hipMemPrefetchAsync"}, "gfx90a", less(func(c *driver.Caps) { c.Prefetch = false })},
		{"no links", hip64, []string{"hipDeviceGetP2PAttribute"}, "gfx90a", less(func(c *driver.Caps) { c.Links = false })},
		{"no kinds of links", hip64, []string{"hipExtGetLinkTypeAndHopCount"}, "gfx90a", withGraphs},
		{"no occupancy", hip64, []string{"hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"}, "gfx90a", less(func(c *driver.Caps) { c.Occupancy = false })},
		{"no streams of others", hip64, []string{"hipStreamGetDevice"}, "gfx90a", less(func(c *driver.Caps) { c.Adopt = false })},
		{"no capture", hip64, []string{"hipStreamBeginCapture", "hipStreamEndCapture"}, "gfx90a", less(func(c *driver.Caps) { c.Capture = false })},
		{"no other children", hip64, []string{"hipGraphExecChildGraphNodeSetParams"}, "gfx90a", less(func(c *driver.Caps) { c.Capture = false })},
		{"one kind of properties", hip64, []string{"hipGetDevicePropertiesR0600"}, "gfx906", withGraphs},
		{"no priorities", hip64, []string{"hipDeviceGetStreamPriorityRange"}, "gfx90a", less(func(c *driver.Caps) { c.PriorityRange = [2]int{} })},
		{"no cooperative launches", hip64, []string{"hipModuleLaunchCooperativeKernel"}, "gfx90a", withGraphs},
		{"no last error", hip64, []string{"hipGetLastError"}, "gfx90a", withGraphs},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, c.release, c.without...)
			d := f.device()
			if d.sets != (c.release < fromStream) {
				t.Errorf("submitting sets the device: %t", d.sets)
			}
			c.caps.VirtualMem = c.release > hip52
			c.caps.Adopt = c.release > hip52 && !slices.Contains(c.without, "hipStreamGetDevice")
			c.caps.Cooperative = c.release > hip52 && !slices.Contains(c.without, "hipModuleLaunchCooperativeKernel")
			if d.Caps() != c.caps || d.Info().Arch != c.arch || d.Info().SharedOptIn != 64<<10 {
				t.Errorf("caps %+v\nwant %+v\ninfo %+v", d.Caps(), c.caps, d.Info())
			}
			for what, call := range all(d) {
				err := call()
				lacks := !c.caps.Graphs && slices.Contains(drivertest.GraphOps, what) || slices.Contains(drivertest.PoolOps, what) ||
					!c.caps.Managed && what == "alloc" || !c.caps.HostRegister && what == "register" || !c.caps.Prefetch && what == "prefetch" ||
					!c.caps.Links && what == "link" || !c.caps.Occupancy && what == "occupancy" ||
					!c.caps.Adopt && (what == "adopt stream" || what == "capturing") ||
					slices.ContainsFunc(c.without, func(s string) bool { return captureOps[s] == what })
				if e, ok := err.(*driver.Error); lacks && (!ok || !errors.Is(err, driver.ErrUnsupported) || e.Op != what) || !lacks && err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}

	f := newFake(t, hip64, "hipMemsetD16Async")
	d := f.device()
	err := d.Fill(stream0, 64, 0, 2, 1)
	if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, dl.ErrSymbol) || !strings.Contains(err.Error(), "hipMemsetD16Async is missing") {
		t.Errorf("a fill that the library lacks: %v", err)
	}
	old := newFake(t, hip57).device()
	_, err = old.NewGraph()
	if want := "hip: new graph: device 0 (Fake 0): graphs: the HIP runtime, version 5.7.31921, lacks hipDrvGraphAddMemcpyNode: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("graphs: %v, want %s", err, want)
	}
}

// captureOps maps functions that only captures need to the operations that call them.
var captureOps = map[string]string{
	"hipStreamBeginCapture": "begin capture", "hipStreamEndCapture": "end capture", "hipGraphExecChildGraphNodeSetParams": "set node",
}

func TestNoDevices(t *testing.T) {
	none := newFakeOf(t, hip64, []string{"DEVICES=0"})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, codes := range map[string]map[string]hip.Result{
		"none counted":                 {},
		"Init says so":                 {"hipInit": hip.ErrorNoDevice},
		"Init says so, before 6":       {"hipInit": hip.ErrorInvalidDevice},
		"GetDeviceCount alone says so": {"hipGetDeviceCount": hip.ErrorNoDevice},
	} {
		for fn, code := range codes {
			none.Set(fn, int(code))
		}
		d, err := Open(hip.Options{Path: none.Path})
		want := fmt.Sprintf("hip: init: the HIP runtime in %s, version 6.4.43484, finds no AMD GPU: hip: hipErrorNoDevice (100): ", none.Path)
		if e, ok := err.(*driver.Error); d != nil || !ok || e.Lost || !errors.Is(err, hip.ErrorNoDevice) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, d, err, want)
		}
		if none.last() != 0 {
			t.Errorf("%s: the error %d stays on the thread", name, none.last())
		}
		for fn := range codes {
			none.Set(fn, 0)
		}
	}

}

// submits holds the functions for which Open checks that HIP takes the device from the stream.
var submits = map[string]bool{
	"hipMemsetD8Async": true, "hipMemsetD16Async": true, "hipMemsetD32Async": true, "hipMemsetD2D32Async": true, "hipMemcpyDtoDAsync": true,
	"hipMemcpyPeerAsync": true, "hipMallocFromPoolAsync": true, "hipFreeAsync": true,
	"hipMemcpyDtoHAsync": true, "hipMemcpyHtoDAsync": true, "hipEventRecord": true, "hipStreamWaitEvent": true, "hipEventQuery": true,
	"hipGraphLaunch": true, "hipEventElapsedTime": true,
}

// TestProbe tests libraries that need the stream's device to be current, and libraries that do not
// do the work they are asked for.
func TestProbe(t *testing.T) {
	f := newFake(t, hip71)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	open := func() (sets bool) {
		t.Helper()
		d, err := f.driver(WithPools()).Open(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if f.Live() != 0 || f.last() != 0 || f.current() != 0 {
			t.Fatalf("%d objects are left, the thread's last error is %d and its device %d", f.Live(), f.last(), f.current())
		}
		return d.(*device).sets
	}
	if open() {
		t.Error("the library takes the device from the stream, but submitting sets the device")
	}
	for name := range submits {
		f.Set("bound "+name, 1)
		if !open() {
			t.Errorf("%s wants the device to be current, but submitting does not set it", name)
		}
		f.Set("bound "+name, 0)
	}
	for _, name := range []string{"hipGraphExecMemsetNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D"} {
		f.Set("bound "+name, 1)
		if open() {
			t.Errorf("%s wants the device to be current, which it is, but submitting sets the device", name)
		}
		f.Set("bound "+name, 0)
		f.Set(name, int(hip.ErrorInvalidContext))
		if open() {
			t.Errorf("%s fails on the bound thread as well, but submitting sets the device", name)
		}
		f.Set(name, 0)
	}
	f.Set("hipEventQuery", int(hip.ErrorNotReady))
	if open() {
		t.Error("an unready event counts as a failure")
	}
	f.Set("hipEventQuery", 0)
	f.Set("idle", 1)
	if !open() {
		t.Error("copies do nothing, but submitting does not set it")
	}
	f.Set("idle", 0)
	// If Open cannot make a graph, it does not try to launch a graph.
	for _, name := range []string{"hipGraphCreate", "hipGraphInstantiateWithFlags"} {
		f.Set(name, int(hip.ErrorOutOfMemory))
		f.Set("bound hipGraphLaunch", 1)
		if open() {
			t.Errorf("%s fails, and submitting sets the device", name)
		}
		f.Set(name, 0)
	}
}

// TestThreads checks after every call that the thread's current device is unchanged.
func TestThreads(t *testing.T) {
	f := newFake(t, hip71)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := hip.Open(hip.Options{Path: f.Path})
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, want int) {
		t.Helper()
		if got := f.current(); got != want {
			t.Fatalf("after %s the thread's device is %d, want %d", what, got, want)
		}
	}
	for theirs := range 2 {
		for mine := range 2 {
			if err := lib.SetDevice(int32(theirs)); err != nil {
				t.Fatal(err)
			}
			drv, err := New(lib, WithPools())
			if err != nil {
				t.Fatal(err)
			}
			same("New", theirs)
			f.Calls()
			open, err := drv.Open(mine)
			if err != nil {
				t.Fatal(err)
			}
			same("Open", theirs)
			elsewhere := 0
			for _, c := range f.Calls() { // while another device is current, Open may make only submitting calls
				call, on, ok := strings.Cut(c, " on ")
				name, _, _ := strings.Cut(call, "(")
				switch {
				case ok && on != fmt.Sprint(mine) && submits[name]:
					elsewhere++
				case ok && on != fmt.Sprint(mine):
					t.Errorf("opening device %d: %s", mine, c)
				}
			}
			if elsewhere < len(submits) {
				t.Errorf("opening device %d: %d calls are tried on another one, want %d", mine, elsewhere, len(submits))
			}
			for _, fails := range []string{"hipStreamCreateWithFlags", "hipMalloc", "hipHostMalloc", "hipHostGetDevicePointer", "hipMemsetD8Async",
				"hipMemsetD2D32Async", "hipMemcpyDtoHAsync", "hipStreamSynchronize", "hipStreamDestroy", "hipFree", "hipHostFree"} {
				f.Set(fails, int(hip.ErrorIllegalAddress))
				live := f.Live()
				if dev, err := drv.Open(mine); dev != nil || !errors.Is(err, driver.ErrLost) {
					t.Errorf("Open without %s: %v, %v", fails, dev, err)
				}
				same("Open without "+fails, theirs)
				if n := f.Live() - live; n != 0 && !strings.Contains(fails, "Free") && !strings.Contains(fails, "Destroy") {
					t.Errorf("Open without %s leaves %d objects", fails, n)
				}
				f.Set(fails, 0)
			}
			d := open.(*device)
			f.Set("stream's device", mine)
			for _, bound := range []bool{false, true} {
				want := theirs
				if bound {
					if err := d.Bind(); err != nil {
						t.Fatal(err)
					}
					want = mine
				}
				same("Bind", want)
				for what, call := range all(d) {
					if err := call(); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					same(what, want)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			same("Close", 0)
			if err := d.Close(); err == nil {
				t.Error("a second Close succeeds")
			}
		}
	}
	// If another device is current on the thread, Close leaves that device current.
	d, err := f.driver().Open(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.SetDevice(1); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	same("Close of another device", 1)
	lib.SetDevice(0)
}

var nodeOps = []driver.NodeOp{
	{Kind: driver.EmptyNode},
	{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf000, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8}},
	{Kind: driver.FillNode, Dst: 0x100, Pattern: 0xa1a2a3a4, Width: 2, Count: 10},
	{Kind: driver.FillNode, Dst: 0x100, Pattern: 0xa1a2a3a4, Width: 4, Count: 10, Stride: 16},
	{Kind: driver.CopyNode, Dst: 0x100, Src: 0x200, Count: 10},
	{Kind: driver.ChildNode, Child: 0x6001},
	{Kind: driver.RecordNode, Event: event0},
}

// TestImage checks that the library finds its image unchanged while the module is loaded.
func TestImage(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	image := codeObject()
	m, err := d.Load(image)
	if err != nil {
		t.Fatal(err)
	}
	clear(image)
	image = nil
	for range 3 {
		runtime.GC()
	}
	if got := f.image(); got != '\x7f' {
		t.Errorf("the image begins with %#x, 256 times %d bytes into a page", got&0xff, got>>8)
	}
	if len(d.images) != 1 {
		t.Errorf("%d images are kept", len(d.images))
	}
	f.Set("hipModuleUnload", int(hip.ErrorInvalidValue))
	if err := d.Unload(m); err == nil || len(d.images) != 1 {
		t.Errorf("a module that stays: %v, %d images", err, len(d.images))
	}
	f.Set("hipModuleUnload", 0)
	if err := d.Unload(m); err != nil || len(d.images) != 0 {
		t.Errorf("unloaded: %v, %d images", err, len(d.images))
	}

	_, err = d.Load(kernels.Saxpy)
	if want := "hip: load: device 0 (Fake 0): device code for gfx90a:sramecc+:xnack-: PTX is code for NVIDIA's GPUs; "; !errors.Is(err, hip.ErrorInvalidImage) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("PTX: %v, want %s", err, want)
	}
	f.Set("hipModuleLoadData", int(hip.ErrorNoBinaryForGpu))
	_, err = d.Load(bundle(host, gfx942))
	if want := "hip: load: device 0 (Fake 0): bundle of 159 bytes for gfx90a:sramecc+:xnack-: it has code for gfx942: "; !errors.Is(err, hip.ErrorNoBinaryForGpu) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("another architecture: %v, want %s", err, want)
	}
	if len(d.images) != 0 {
		t.Errorf("%d images are kept", len(d.images))
	}
	f.Set("hipModuleLoadData", 0)
	f.Set("nvidia", 1) // the device is not AMD's
	other := f.device()
	if _, err := other.Load(kernels.Saxpy); err != nil || other.Info().Arch != "sm_90" {
		t.Errorf("PTX on %s: %v", other.Info().Arch, err)
	}
}

func TestFillStrided(t *testing.T) {
	const buf = 128
	for _, release := range []dl.Version{hip64, hip71} {
		for _, unit := range []int{0, 4, 3} {
			f := newFake(t, release)
			f.Set("unit", unit)
			d := f.device()
			m, err := d.Alloc(driver.HostMem, buf)
			if err != nil {
				t.Fatal(err)
			}
			words := unsafe.Slice((*uint32)(m.Host), buf/4)
			native := release == hip71 && unit != 3
			if (d.unit != 0) != native {
				t.Errorf("HIP %s, unit %d: rows are counted in %d", hip.FormatVersion(release), unit, d.unit)
			}
			for pattern, calls := range map[uint32][]string{
				0xa1a2a3a4: {"0xa4, 1", "0xa3, 1", "0xa2, 1", "0xa1, 1"},
				0x00ffff07: {"0x7, 1", "0xff, 2", "0, 1"},
				0x11111111: {"0x11, 4"},
				0xffff0000: {"0, 2", "0xff, 2"},
			} {
				clear(words)
				f.Calls()
				if err := d.FillStrided(stream0, m.Ptr+4, pattern, 24, 5); err != nil {
					t.Fatal(err)
				}
				for i, w := range words {
					want := uint32(0)
					if i >= 1 && (i-1)%6 == 0 && i <= 25 {
						want = pattern
					}
					if w != want {
						t.Errorf("HIP %s: word %d of %#x is %#x", hip.FormatVersion(release), i, pattern, w)
					}
				}
				if native {
					f.Want(fmt.Sprintf("hipMemsetD2D32Async(24, %#x, %d, 5, 0x5000)", pattern, max(unit, 1)))
					continue
				}
				for i, c := range calls {
					calls[i] = fmt.Sprintf("hipMemset2DAsync(24, %s, 5, 0x5000)", c)
				}
				f.Want(calls...)
			}
			// FillStrided makes a plain fill for one element, and for adjacent elements.
			if err := errors.Join(d.FillStrided(stream0, m.Ptr, 1, 64, 1), d.FillStrided(stream0, m.Ptr, 2, 4, 8)); err != nil {
				t.Error(err)
			}
			f.Want("hipMemsetD32Async(0x1, 1, 0x5000)", "hipMemsetD32Async(0x2, 8, 0x5000)")
			f.Set("hipMemset2DAsync", int(hip.ErrorInvalidValue))
			f.Set("hipMemsetD2D32Async", int(hip.ErrorInvalidValue))
			err = d.FillStrided(stream0, m.Ptr, 1, 8, 3)
			if want := fmt.Sprintf("hip: fill: device 0 (Fake 0): 3 elements of 4 bytes, 8 bytes apart, at %#x in stream 0x5000: ", uint64(m.Ptr)); !errors.Is(err, hip.ErrorInvalidValue) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if err := d.Free(m); err != nil {
				t.Error(err)
			}
			if f.Live() != 0 {
				t.Errorf("%d objects are left", f.Live())
			}
		}
	}
	// If the device refuses the new function, FillStrided works with other functions.
	f := newFake(t, hip71)
	f.Set("hipMemsetD2D32Async", int(hip.ErrorInvalidValue))
	if d := f.device(); d.unit != 0 || f.last() != 0 {
		t.Errorf("rows are counted in %d; the thread's last error is %d", d.unit, f.last())
	}
}

// TestGraphs tests graphs with fakes of several releases. If the driver used another layout of a
// struct than the release has, values in the calls would be wrong.
func TestGraphs(t *testing.T) {
	for _, release := range []dl.Version{hip61, hip64, hip70, hip71} {
		t.Run(hip.FormatVersion(release), func(t *testing.T) { testFakeGraphs(t, newFake(t, release)) })
	}
}

func testFakeGraphs(t *testing.T, f *fake) {
	var d driver.Graphs = f.device()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := d.NewGraph()
	ok(err)
	after := []driver.Node{0x9001, 0x9002}
	for i, op := range nodeOps {
		n, err := d.AddNode(g, after, &op)
		if ok(err); n < node0 {
			t.Errorf("node %d is %#x", i, n)
		}
	}
	f.Want("hipGraphCreate(0)", "hipGraphAddEmptyNode(0x6000: 0x9001 0x9002)",
		"hipGraphAddKernelNode(0xf000, 2 3 4, 5 6 7, 8)",
		"hipGraphAddMemsetNode(0x100, 0, 0xa3a4, 2, 10, 1: 0x9001 0x9002)",
		"hipGraphAddMemsetNode(0x100, 16, 0xa1a2a3a4, 4, 1, 10: 0x9001 0x9002)",
		"hipGraphAddMemcpyNode1D(0x100, 0x200, 10, 4: 0x9001 0x9002)",
		"hipGraphAddChildGraphNode(0x6001)", "hipGraphAddEventRecordNode(0xe000)")
	for _, op := range []driver.NodeOp{
		{Kind: driver.FillNode, Dst: 0x100, Pattern: 0x1234, Width: 1, Count: 3, Stride: 1},
		{Kind: driver.FillNode, Dst: 0x100, Pattern: 0x1234, Width: 4, Count: 1, Stride: 64},
	} {
		_, err := d.AddNode(g, nil, &op)
		ok(err)
	}
	f.Want("hipGraphAddMemsetNode(0x100, 0, 0x34, 1, 3, 1:)", "hipGraphAddMemsetNode(0x100, 0, 0x1234, 4, 1, 1:)")

	// AddNode reads the kernel's arguments during the call.
	counter, by := new(uint64), new(uint32)
	*by = 7
	_, err = d.AddNode(g, nil, &driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf001, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1},
		Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}})
	if ok(err); *counter != 7 {
		t.Errorf("the kernel counts %d", *counter)
	}
	x, err := d.Instantiate(g)
	ok(err)
	ok(d.DestroyGraph(g))
	f.Calls()
	for _, op := range nodeOps[1:6] {
		ok(d.SetNode(x, 0x9009, &op))
	}
	ok(d.SetNodes(x, []driver.Node{0x9007, 0x9008}, []driver.NodeOp{nodeOps[4], nodeOps[2]}))
	f.Want("hipGetDevice()", "hipSetDevice(0)", "hipGraphExecKernelNodeSetParams(0xf000, 2 3 4, 5 6 7, 8)", "hipSetDevice(0)",
		"hipGetDevice()", "hipSetDevice(0)", "hipGraphExecMemsetNodeSetParams(0x7000, 0x9009, 0x100, 0, 0xa3a4, 2, 10, 1)", "hipSetDevice(0)",
		"hipGetDevice()", "hipSetDevice(0)", "hipGraphExecMemsetNodeSetParams(0x7000, 0x9009, 0x100, 16, 0xa1a2a3a4, 4, 1, 10)", "hipSetDevice(0)",
		"hipGetDevice()", "hipSetDevice(0)", "hipGraphExecMemcpyNodeSetParams1D(0x7000, 0x9009, 0x100, 0x200, 10, 4)", "hipSetDevice(0)",
		"hipGetDevice()", "hipSetDevice(0)", "hipGraphExecChildGraphNodeSetParams(0x7000, 0x9009, 0x6001)", "hipSetDevice(0)",
		"hipGetDevice()", "hipSetDevice(0)", "hipGraphExecMemcpyNodeSetParams1D(0x7000, 0x9007, 0x100, 0x200, 10, 4)",
		"hipGraphExecMemsetNodeSetParams(0x7000, 0x9008, 0x100, 0, 0xa3a4, 2, 10, 1)", "hipSetDevice(0)")
	for _, i := range []int{0, 6} {
		if err := d.SetNode(x, 0x9009, &nodeOps[i]); !errors.Is(err, hip.ErrorInvalidValue) {
			t.Errorf("node %d is set: %v", i, err)
		}
	}
	if _, err := d.AddNode(g, nil, &driver.NodeOp{Kind: 9}); !errors.Is(err, hip.ErrorInvalidValue) || !strings.Contains(err.Error(), "node of unknown kind 9") {
		t.Errorf("unknown kind of node: %v", err)
	}

	// A launch of an exec in another stream waits for the exec's previous launch.
	dev := d.(*device)
	dev.setCaptured(stream0, false) // NewStream does this for its streams
	dev.setCaptured(stream1, false)
	f.Calls()
	ok(d.LaunchGraph(stream0, x))
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipGraphLaunch(0x7000, 0x5000)", "hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipGraphLaunch(0x7000, 0x5001)")
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipEventRecord(0xe000, 0x5001)", "hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	// The events of earlier launches are queried before one is recorded again.
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	live := f.Live()
	for _, fails := range []string{"hipEventQuery", "hipEventRecord", "hipStreamWaitEvent"} {
		f.Set(fails, int(hip.ErrorOutOfMemory))
		if err := d.LaunchGraph(stream0, x); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s fails: %v", fails, err)
		}
		f.Set(fails, 0)
	}
	if f.Live() != live {
		t.Errorf("%d objects, want %d", f.Live(), live)
	}
	// Later launches do not wait for the launches of a destroyed stream.
	ok(dev.DestroyStream(stream1))
	dev.setCaptured(stream1, false)
	f.Calls()
	ok(d.LaunchGraph(stream0, x))
	f.Want("hipGraphLaunch(0x7000, 0x5000)")
	// Later launches still wait for the launches of a stream that could not be destroyed.
	f.Set("hipStreamDestroy", int(hip.ErrorUnknown))
	if err := dev.DestroyStream(stream0); err == nil {
		t.Error("the stream is destroyed")
	}
	f.Set("hipStreamDestroy", 0)
	f.Calls()
	ok(d.LaunchGraph(stream1, x))
	f.Want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	// DestroyExec destroys the exec's events too, unless destroying the exec fails.
	f.Set("hipGraphExecDestroy", int(hip.ErrorUnknown))
	if err := d.DestroyExec(x); err == nil || len(dev.execs) != 1 {
		t.Errorf("%v, and the device still knows %d execs", err, len(dev.execs))
	}
	f.Set("hipGraphExecDestroy", 0)
	f.Calls()
	ok(d.DestroyExec(x))
	f.Want("hipGraphExecDestroy(0x7000)", "hipEventDestroy(0xe000)", "hipEventDestroy(0xe000)")
	if len(dev.execs) != 0 {
		t.Errorf("the device still knows %d execs", len(dev.execs))
	}
}

// TestLastError sets the thread's last error, as other code would, and checks that it is still set
// after each call. Before HIP 7.0 the error does not stay set, because every call of HIP replaces
// the last error.
func TestLastError(t *testing.T) {
	for _, release := range []dl.Version{hip64, hip70} {
		f := newFake(t, release)
		d := f.device()
		f.Set("hipEventQuery", int(hip.ErrorNotReady))
		if done, err := d.Query(event0); done || err != nil || f.last() != 0 {
			t.Errorf("HIP %s: after Query the thread's last error is %d", hip.FormatVersion(release), f.last())
		}
		if release < hip70 {
			continue
		}
		theirs := func() int {
			d.lib.SetDevice(99)
			return f.last()
		}
		if theirs() != int(hip.ErrorInvalidDevice) {
			t.Fatal("the fake library keeps no last error")
		}
		if done, err := d.Query(event0); done || err != nil || f.last() != int(hip.ErrorInvalidDevice) {
			t.Errorf("after Query the thread's last error is %d, and not the one set before", f.last())
		}
		for what, call := range map[string]func() error{
			"no stream": func() error { return d.Record(event0, 0) },
			"width 3":   func() error { return d.Fill(stream0, 64, 0, 3, 5) },
			"PTX":       func() error { _, err := d.Load(kernels.Saxpy); return err },
			"no memory": func() error { _, err := d.Alloc(7, 1); return err },
		} {
			if err := call(); err == nil || f.last() != int(hip.ErrorInvalidDevice) {
				t.Errorf("%s: after %v the thread's last error is %d, and not the one set before", what, err, f.last())
			}
		}
	}
}

// TestLaunchLost makes calls fail with "launch failure". From a query this error always means a
// lost device. From the other calls it may mean a refused launch, so the driver then calls the HIP
// function whose name is in ask. The device counts as lost only if that function returns an error
// that means a lost device.
func TestLaunchLost(t *testing.T) {
	f := newFake(t, hip70)
	d := f.device()
	for _, c := range []struct {
		op, fn, ask string
	}{
		{"launch", "hipModuleLaunchKernel", "hipStreamQuery"},
		{"launch graph", "hipGraphLaunch", "hipStreamQuery"},
		{"add node", "hipGraphAddKernelNode", "hipGetDevice"},
		{"set node", "hipGraphExecKernelNodeSetParams", "hipGetDevice"},
		{"instantiate", "hipGraphInstantiateWithFlags", "hipGetDevice"},
		{"query", "hipEventQuery", ""}, // a query cannot be refused, so its error always means a lost device
	} {
		f.Set(c.fn, int(hip.ErrorLaunchFailure))
		for code, lost := range map[hip.Result]bool{hip.Success: c.ask == "", hip.ErrorNotReady: c.ask == "", hip.ErrorInvalidValue: c.ask == "", hip.ErrorIllegalAddress: true} {
			if c.ask != "" {
				f.Set(c.ask, int(code))
			}
			call := all(d)[c.op]
			if c.op == "set node" { // not by SetNode, which would call hipGetDevice first
				call = func() error { return d.setNode(exec0, node0, &nodeOps[1], new(nodeParams)) }
			}
			err := call()
			if !errors.Is(err, hip.ErrorLaunchFailure) || errors.Is(err, driver.ErrLost) != lost || f.last() != 0 {
				t.Errorf("%s, then %v: %v; the thread's last error is %d", c.op, code, err, f.last())
			}
		}
		f.Set(c.fn, 0)
		if c.ask != "" {
			f.Set(c.ask, 0)
		}
	}
}

// TestAttributes tests devices that lack some kinds of memory.
func TestAttributes(t *testing.T) {
	f := newFake(t, hip64)
	f.Set("attr 9", 1)
	if d := f.device(); d.caps.Managed {
		t.Error("managed memory that the host must not touch counts")
	}
	f.Set("attr 90", 1)
	if d := f.device(); d.caps.HostRegister {
		t.Error("the device cannot have registered memory")
	}
}

func TestClose(t *testing.T) {
	f := newFake(t, hip64)
	drv := f.driver()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []struct {
		fn   string
		code hip.Result
		fine bool
	}{
		{"hipGetDevice", hip.ErrorDeinitialized, true},  // HIP returns this while the process ends
		{"hipGetDevice", hip.ErrorIllegalAddress, true}, // the thread has no current device to restore
		{"hipSetDevice", hip.ErrorLaunchFailure, true},
		{"hipSetDevice", hip.ErrorInvalidDevice, false},
	} {
		d, err := drv.Open(1)
		if err == nil {
			err = d.Bind()
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Set(c.fn, int(c.code))
		if err := d.Close(); (err == nil) != c.fine || !c.fine && !errors.Is(err, c.code) {
			t.Errorf("%s fails with %v: %v", c.fn, c.code, err)
		}
		f.Set(c.fn, 0)
	}
}

func TestNames(t *testing.T) {
	if !slices.IsSorted([]int{hip52, hip57, hip61, poolsSince, hip62, hip64, hip70, hip71}) || errorsOnly != hip70/100_000*100_000 {
		t.Error("releases are not in order")
	}
	if s := (&driver.NodeOp{Kind: driver.FillNode, Count: 3, Width: 4, Stride: 8, Dst: 16}).String(); s != "fill of 3 elements of 4 bytes, 8 bytes apart, at 0x10" {
		t.Error(s)
	}
}
