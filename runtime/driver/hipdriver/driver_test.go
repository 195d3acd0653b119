//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

func TestDevices(t *testing.T) {
	f := newFake(t, hip64)
	d := f.driver()
	infos, err := d.Devices()
	if err != nil || len(infos) != 2 || d.Name() != "hip" {
		t.Fatalf("driver %q, devices %v, %v", d.Name(), infos, err)
	}
	want := driver.Info{
		Index: 1, Name: "Fake 1", PCI: "0000:c1:01.0", Arch: "gfx90a", Memory: 64 << 30, Processors: 630, WarpSize: 870, MaxThreads: 560,
		MaxBlock: [3]int{260, 270, 280}, MaxGrid: [3]int{290, 300, 310}, SharedMem: 64 << 10, SharedOptIn: 64 << 10,
		Version: hip64, DriverVersion: sysfs.ModuleVersion("amdgpu"), Major: 230, Minor: 610, NUMANode: sysfs.NUMANode("0000:c1:01.0"), Clock: 50, MemoryClock: 600,
		MemoryBus: 590, L2: 190, CopyEngines: 20, Registers: 710, ProcessorThreads: 570, ProcessorBlocks: 250, ProcessorRegisters: 720, ProcessorSharedMem: 100020,
		Cooperative: true,
	}
	copy(want.UUID[:], "0123456789abcde1")
	if infos[1] != want {
		t.Errorf("device 1 is\n%+v, want\n%+v", infos[1], want)
	}
	infos[1].Name = "mine"
	if again, _ := d.Devices(); again[1] != want {
		t.Error("what Devices returned is the driver's own")
	}
	f.calls()
	if d.Devices(); len(f.calls()[0]) != 0 {
		t.Error("Devices calls the library")
	}

	f.set("hipDeviceGetPCIBusId", int(hip.ErrorInvalidDevice))
	f.set("hipDeviceGetUuid", int(hip.ErrorInvalidValue))
	f.set("nameless", 1)
	f.set("attr 75", 160<<10+1)
	f.set("attr 16", 2)
	infos, err = f.driver().Devices()
	if err != nil || infos[0].PCI != "" || infos[0].UUID != [16]byte{} || infos[0].Name != "gfx90a" || infos[0].SharedOptIn != 160<<10 || !infos[0].Integrated {
		t.Errorf("device 0 is %+v, %v", infos[0], err)
	}
}

// TestOldReleases has libraries that lack what came later, and others that lack what they could have.
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
			c.caps.Adopt = c.release > hip52 && !slices.Contains(c.without, "hipStreamGetDevice")
			c.caps.Cooperative = c.release > hip52 && !slices.Contains(c.without, "hipModuleLaunchCooperativeKernel")
			if d.Caps() != c.caps || d.Info().Arch != c.arch || d.Info().SharedOptIn != 64<<10 {
				t.Errorf("caps %+v\nwant %+v\ninfo %+v", d.Caps(), c.caps, d.Info())
			}
			for what, call := range all(d) {
				err := call()
				lacks := !c.caps.Graphs && graphOps[what] || poolOps[what] ||
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

// graphOps are the operations that need graphs.
var graphOps = map[string]bool{
	"new graph": true, "destroy graph": true, "add node": true, "instantiate": true, "destroy exec": true, "set node": true, "launch graph": true,
	"begin capture": true, "end capture": true,
}

// captureOps are the operations that need single functions of those for capture.
var captureOps = map[string]string{
	"hipStreamBeginCapture": "begin capture", "hipStreamEndCapture": "end capture", "hipGraphExecChildGraphNodeSetParams": "set node",
}

// poolOps are the operations that need pools.
var poolOps = map[string]bool{
	"default pool": true, "current pool": true, "set current pool": true, "new pool": true, "destroy pool": true, "pool attribute": true,
	"set pool attribute": true, "trim pool": true, "access pool": true, "alloc async": true, "free async": true,
}

func TestOpenErrors(t *testing.T) {
	if d, err := Open(hip.Options{Path: filepath.Join(t.TempDir(), "libamdhip64.so.6")}); d != nil || !errors.Is(err, dl.ErrNotFound) {
		t.Errorf("an absent library: %v, %v", d, err)
	}

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
			none.set(fn, int(code))
		}
		d, err := Open(hip.Options{Path: none.path})
		want := fmt.Sprintf("hip: init: the HIP runtime in %s, version 6.4.43484, finds no AMD GPU: hip: hipErrorNoDevice (100): ", none.path)
		if e, ok := err.(*driver.Error); d != nil || !ok || e.Lost || !errors.Is(err, hip.ErrorNoDevice) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, d, err, want)
		}
		if none.last() != 0 {
			t.Errorf("%s: the error %d stays on the thread", name, none.last())
		}
		for fn := range codes {
			none.set(fn, 0)
		}
	}

	f := newFake(t, hip64)
	for name, c := range map[string]struct {
		code hip.Result
		op   string
		says string
	}{
		"hipInit":                     {hip.ErrorUnknown, "init", "hipErrorUnknown"},
		"hipGetDeviceCount":           {hip.ErrorInsufficientDriver, "count devices", "hipErrorInsufficientDriver"},
		"hipDeviceGetName":            {hip.ErrorUnknown, "describe", "device 0: name"},
		"hipDeviceTotalMem":           {hip.ErrorUnknown, "describe", "device 0: size of memory"},
		"hipDeviceGetAttribute":       {hip.ErrorUnknown, "describe", "hipDeviceAttributeMultiprocessorCount"},
		"hipGetDevicePropertiesR0600": {hip.ErrorInvalidDevice, "describe", "device 0: properties"},
	} {
		f.set(name, int(c.code))
		d, err := Open(hip.Options{Path: f.path})
		if e, ok := errors.AsType[*driver.Error](err); d != nil || !ok || e.Op != c.op || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) || f.last() != 0 {
			t.Errorf("%s fails: %v, %v; the thread remembers %d", name, d, err, f.last())
		}
		f.set(name, 0)
	}
	d := f.driver()
	for _, index := range []int{-1, 2} {
		if dev, err := d.Open(index); dev != nil || !errors.Is(err, hip.ErrorInvalidDevice) {
			t.Errorf("device %d: %v, %v", index, dev, err)
		}
	}
	for _, name := range []string{"hipGetDevice", "hipSetDevice", "hipDeviceGetAttribute", "hipDeviceGetStreamPriorityRange"} {
		f.set(name, int(hip.ErrorOutOfMemory))
		dev, err := d.Open(1)
		if dev != nil || !errors.Is(err, driver.ErrOutOfMemory) || !errors.Is(err, hip.ErrorOutOfMemory) || !strings.Contains(err.Error(), "device 1 (Fake 1)") {
			t.Errorf("%s fails: %v, %v", name, dev, err)
		}
		f.set(name, 0)
	}
	f.set("hipSetDevice", int(hip.ErrorIllegalAddress))
	if dev, err := d.Open(1); dev != nil || !errors.Is(err, driver.ErrLost) {
		t.Errorf("a device that is lost: %v, %v", dev, err)
	}
}

// submits are the functions of which Open tries whether they take the device from the stream.
var submits = map[string]bool{
	"hipMemsetD8Async": true, "hipMemsetD16Async": true, "hipMemsetD32Async": true, "hipMemsetD2D32Async": true, "hipMemcpyDtoDAsync": true,
	"hipMemcpyPeerAsync": true, "hipMallocFromPoolAsync": true, "hipFreeAsync": true,
	"hipMemcpyDtoHAsync": true, "hipMemcpyHtoDAsync": true, "hipEventRecord": true, "hipStreamWaitEvent": true, "hipEventQuery": true,
	"hipGraphLaunch": true, "hipEventElapsedTime": true,
}

// TestProbe has libraries that want the device of a stream to be current, or do less than they say.
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
		if f.live() != 0 || f.last() != 0 || f.current() != 0 {
			t.Fatalf("%d objects are left, the thread remembers %d and has device %d", f.live(), f.last(), f.current())
		}
		return d.(*device).sets
	}
	if open() {
		t.Error("the library takes the device from the stream, but submitting sets the device")
	}
	for name := range submits {
		f.set("bound "+name, 1)
		if !open() {
			t.Errorf("%s wants the device to be current, but submitting does not set it", name)
		}
		f.set("bound "+name, 0)
	}
	for _, name := range []string{"hipGraphExecMemsetNodeSetParams", "hipGraphExecMemcpyNodeSetParams1D"} {
		f.set("bound "+name, 1)
		if open() {
			t.Errorf("%s wants the device to be current, which it is, but submitting sets the device", name)
		}
		f.set("bound "+name, 0)
		f.set(name, int(hip.ErrorInvalidContext))
		if open() {
			t.Errorf("%s fails on the bound thread as well, but submitting sets the device", name)
		}
		f.set(name, 0)
	}
	f.set("hipEventQuery", int(hip.ErrorNotReady))
	if open() {
		t.Error("an event that is not ready is taken for a failure")
	}
	f.set("hipEventQuery", 0)
	f.set("idle", 1)
	if !open() {
		t.Error("copies do nothing, but submitting does not set it")
	}
	f.set("idle", 0)
	for _, name := range []string{"hipGraphCreate", "hipGraphInstantiateWithFlags"} { // which goes untried then
		f.set(name, int(hip.ErrorOutOfMemory))
		f.set("bound hipGraphLaunch", 1)
		if open() {
			t.Errorf("%s fails, and submitting sets the device", name)
		}
		f.set(name, 0)
	}
}

// TestThreads checks after every call that the thread's current device is as it was.
func TestThreads(t *testing.T) {
	f := newFake(t, hip71)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := hip.Open(hip.Options{Path: f.path})
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
			f.calls()
			open, err := drv.Open(mine)
			if err != nil {
				t.Fatal(err)
			}
			same("Open", theirs)
			elsewhere := 0
			for _, c := range f.calls() { // what Open makes, it makes on the device
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
				f.set(fails, int(hip.ErrorIllegalAddress))
				live := f.live()
				if dev, err := drv.Open(mine); dev != nil || !errors.Is(err, driver.ErrLost) {
					t.Errorf("Open without %s: %v, %v", fails, dev, err)
				}
				same("Open without "+fails, theirs)
				if n := f.live() - live; n != 0 && !strings.Contains(fails, "Free") && !strings.Contains(fails, "Destroy") {
					t.Errorf("Open without %s leaves %d objects", fails, n)
				}
				f.set(fails, 0)
			}
			d := open.(*device)
			f.set("stream's device", mine)
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
	// Close leaves a thread alone that is not bound to its device.
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

// all are calls of every method but Bind and Close.
func all(d *device) map[string]func() error {
	buf := make([]uint64, 8)
	p, ptr := unsafe.Pointer(&buf[0]), driver.Ptr(uintptr(unsafe.Pointer(&buf[0])))
	two := func(_ driver.Stream, err error) error { return err }
	pooled, _ := d.AllocAsync(stream0, pool0, 64)
	node := func(add func(*driver.NodeOp) error) error {
		for _, op := range nodeOps {
			if err := add(&op); err != nil {
				return err
			}
		}
		return nil
	}
	return map[string]func() error{
		"new stream": func() error {
			if d.caps.PriorityRange != [2]int{} {
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
		"free": func() error {
			if err := d.Free(driver.Mem{Kind: driver.HostMem}); err != nil {
				return err
			}
			return d.Free(driver.Mem{})
		},
		"register":   func() error { _, err := d.Register(p, 64); return err },
		"unregister": func() error { return d.Unregister(p) },
		"prefetch":   func() error { return d.Prefetch(stream0, ptr, 64, driver.HostMem) },
		"fill":       func() error { return d.Fill(stream0, ptr, 1, 4, 4) },
		"copy": func() error {
			if err := d.Copy(stream0, ptr+32, ptr, 32); err != nil {
				return err
			}
			return d.CopyPeer(stream0, ptr+32, d, ptr, d, 32)
		},
		"upload":   func() error { return d.Upload(stream0, ptr, unsafe.Add(p, 32), 32) },
		"download": func() error { return d.Download(stream0, unsafe.Add(p, 32), ptr, 32) },
		"load":     func() error { _, err := d.Load(codeObject()); return err },
		"unload":   func() error { return d.Unload(module0) },
		"function": func() error { _, _, err := d.Function(module0, "empty"); return err },
		"global":   func() error { _, _, err := d.Global(module0, "variable"); return err },
		"launch": func() error {
			if err := d.Launch(stream0, &driver.Launch{Function: 0xf000}); err != nil {
				return err
			}
			return d.Launch(stream0, &driver.Launch{Function: 0xf000, Attrs: driver.LaunchAttrs{Cooperative: d.caps.Cooperative, Priority: -1}})
		},
		"memory info":   func() error { _, _, err := d.MemInfo(); return err },
		"link":          func() error { _, err := d.Link(&device{lib: d.lib, id: 1 - d.id}); return err },
		"occupancy":     func() error { _, err := d.Occupancy(0xf000, 64, 0); return err },
		"new timer":     func() error { _, err := d.NewTimer(); return err },
		"elapsed":       func() error { _, err := d.Elapsed(event0, event0); return err },
		"export memory": func() error { _, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64}); return err },
		"open memory": func() error {
			h, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64})
			if err == nil {
				_, err = d.OpenMem(h)
			}
			return err
		},
		"close memory": func() error { return d.CloseMem(driver.Mem{Ptr: ptr}) },

		"default pool":       func() error { _, err := d.DefaultPool(); return err },
		"current pool":       func() error { _, err := d.CurrentPool(); return err },
		"set current pool":   func() error { return d.SetCurrentPool(pool0) },
		"new pool":           func() error { _, err := d.NewPool(driver.PoolDesc{}); return err },
		"destroy pool":       func() error { return d.DestroyPool(pool1) },
		"pool attribute":     func() error { _, err := d.PoolAttr(pool0, driver.PoolThreshold); return err },
		"set pool attribute": func() error { return d.SetPoolAttr(pool0, driver.PoolReuseEvents, 0) },
		"trim pool":          func() error { return d.TrimPool(pool0, 0) },
		"access pool":        func() error { return d.AccessPool(pool0, d, true) },
		"alloc async":        func() error { _, err := d.AllocAsync(stream0, pool0, 64); return err },
		"free async":         func() error { return d.FreeAsync(stream0, pooled) },

		"new graph":     func() error { _, err := d.NewGraph(); return err },
		"destroy graph": func() error { return d.DestroyGraph(graph0) },
		"add node": func() error {
			return node(func(op *driver.NodeOp) error { _, err := d.AddNode(graph0, nil, op); return err })
		},
		"instantiate":  func() error { _, err := d.Instantiate(graph0); return err },
		"destroy exec": func() error { return d.DestroyExec(exec0) },
		"set node": func() error {
			return node(func(op *driver.NodeOp) error {
				if op.Kind == driver.EmptyNode || op.Kind == driver.RecordNode {
					return nil
				}
				return d.SetNode(exec0, node0, op)
			})
		},
		"launch graph": func() error { return d.LaunchGraph(stream0, exec0) },

		"adopt stream": func() error { _, err := d.AdoptStream(stream0); return err },
		"capturing":    func() error { _, err := d.Capturing(stream0); return err },
		"enter": func() error {
			was, err := d.Enter()
			if err != nil {
				return err
			}
			return d.Leave(was)
		},
		"leave": func() error {
			device, err := d.lib.GetDevice()
			if err != nil {
				return err
			}
			return d.Leave(uintptr(device))
		},
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
	}
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

func TestCalls(t *testing.T) {
	f := newFake(t, hip64)
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
	f.set("hipEventQuery", int(hip.ErrorNotReady))
	done, err = d.Query(e)
	if ok(err); done {
		t.Error("the event is done")
	}
	ok(d.StreamWait(s, e))
	timer, err := d.NewTimer()
	ok(err)
	if took, err := d.Elapsed(timer, timer); took != 1500*time.Microsecond || err != nil {
		t.Errorf("Elapsed = %v, %v", took, err)
	}
	f.want("hipStreamCreateWithFlags(1)", "hipEventCreateWithFlags(2)", "hipEventRecord(0xe000, 0x5000)", "hipEventQuery(0xe000)", "hipEventQuery(0xe000)",
		"hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipEventCreateWithFlags(0)", "hipEventElapsedTime(0xe000, 0xe000)")

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
	f.want("hipMalloc(32)", "hipHostMalloc(32, 3)", "hipHostGetDevicePointer(0)", "hipMallocManaged(32, 1)",
		"hipMemsetD32Async(0xa1a2a3a4, 8, 0x5000)", "hipMemsetD16Async(0xb3b4, 4, 0x5000)", "hipMemsetD8Async(0xc4, 2, 0x5000)",
		"hipMemcpyDtoDAsync(32, 0x5000)", "hipMemcpyDtoHAsync(32, 0x5000)", "hipMemcpyHtoDAsync(32, 0x5000)",
		"hipFree()", "hipHostFree()", "hipFree()")

	mine := make([]uint64, 8)
	p, err := d.Register(unsafe.Pointer(&mine[0]), 64)
	if ok(err); uint64(p) != uint64(uintptr(unsafe.Pointer(&mine[0])))|1<<62 {
		t.Errorf("registered memory is at %#x", p)
	}
	ok(d.Unregister(unsafe.Pointer(&mine[0])))
	f.want("hipHostRegister(64, 3)", "hipHostGetDevicePointer(0)", "hipHostUnregister()")

	combined, err := d.Alloc(driver.WriteCombinedMem, 32)
	if ok(err); combined.Host == nil || combined.Ptr == 0 || combined.Kind != driver.WriteCombinedMem {
		t.Errorf("%+v", combined)
	}
	ok(d.Free(combined))
	ok(d.Prefetch(s, p, 100, driver.DeviceMem))
	ok(d.Prefetch(s, p, 100, driver.HostMem))
	ok(d.Prefetch(s, p, 0, driver.HostMem))
	f.want("hipHostMalloc(32, 7)", "hipHostGetDevicePointer(0)", "hipHostFree()",
		"hipMemPrefetchAsync(100, 0, 0x5000)", "hipMemPrefetchAsync(100, -1, 0x5000)")
	if err := d.Prefetch(s, p, 1, driver.ManagedMem); !errors.Is(err, hip.ErrorInvalidValue) {
		t.Errorf("prefetch to managed memory: %v", err)
	}

	fn, info := function(t, d, "count")
	if info.Params != nil || info.MaxThreads != 100 || info.SharedMem != 1024 || info.Registers != 104 || info.LocalMem != 103 {
		t.Errorf("%+v", info)
	}
	f.want("hipModuleLoadData(ELF\x02)", "hipModuleGetFunction(count)", "hipFuncGetAttribute(0)", "hipFuncGetAttribute(1)",
		"hipFuncGetAttribute(4)", "hipFuncGetAttribute(3)")
	if p, n, err := d.Global(module0, "variable"); p == 0 || n != 8 || err != nil {
		t.Errorf("the variable is %#x, %d bytes, %v", p, n, err)
	}
	f.calls()
	counter, by := new(uint64), new(uint32)
	*by = 5
	ok(d.Launch(s, &driver.Launch{
		Function: fn, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8,
		Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)},
	}))
	f.want("hipModuleLaunchKernel(0xf001, 2 3 4, 5 6 7, 8, 0x5000)")
	if *counter != 5 {
		t.Errorf("the kernel counts %d", *counter)
	}
	ok(d.Unload(module0))
	ok(d.DestroyEvent(e))
	ok(d.DestroyStream(s))
	f.want("hipModuleUnload(0x3000)", "hipEventDestroy(0xe000)", "hipStreamQuery(0x5000)", "hipStreamDestroy(0x5000)")
}

// TestImage has the library find its image unchanged for as long as the module lives.
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
	f.set("hipModuleUnload", int(hip.ErrorInvalidValue))
	if err := d.Unload(m); err == nil || len(d.images) != 1 {
		t.Errorf("a module that stays: %v, %d images", err, len(d.images))
	}
	f.set("hipModuleUnload", 0)
	if err := d.Unload(m); err != nil || len(d.images) != 0 {
		t.Errorf("unloaded: %v, %d images", err, len(d.images))
	}

	_, err = d.Load(kernels.Saxpy)
	if want := "hip: load: device 0 (Fake 0): device code for gfx90a:sramecc+:xnack-: PTX is code for NVIDIA's GPUs; "; !errors.Is(err, hip.ErrorInvalidImage) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("PTX: %v, want %s", err, want)
	}
	f.set("hipModuleLoadData", int(hip.ErrorNoBinaryForGpu))
	_, err = d.Load(bundle(host, gfx942))
	if want := "hip: load: device 0 (Fake 0): bundle of 159 bytes for gfx90a:sramecc+:xnack-: it has code for gfx942: "; !errors.Is(err, hip.ErrorNoBinaryForGpu) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("another architecture: %v, want %s", err, want)
	}
	if len(d.images) != 0 {
		t.Errorf("%d images are kept", len(d.images))
	}
	f.set("hipModuleLoadData", 0)
	f.set("nvidia", 1) // a library that is HIP in name only
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
			f.set("unit", unit)
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
				f.calls()
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
					f.want(fmt.Sprintf("hipMemsetD2D32Async(24, %#x, %d, 5, 0x5000)", pattern, max(unit, 1)))
					continue
				}
				for i, c := range calls {
					calls[i] = fmt.Sprintf("hipMemset2DAsync(24, %s, 5, 0x5000)", c)
				}
				f.want(calls...)
			}
			// One word, or words side by side, are a plain fill.
			if err := errors.Join(d.FillStrided(stream0, m.Ptr, 1, 64, 1), d.FillStrided(stream0, m.Ptr, 2, 4, 8)); err != nil {
				t.Error(err)
			}
			f.want("hipMemsetD32Async(0x1, 1, 0x5000)", "hipMemsetD32Async(0x2, 8, 0x5000)")
			f.set("hipMemset2DAsync", int(hip.ErrorInvalidValue))
			f.set("hipMemsetD2D32Async", int(hip.ErrorInvalidValue))
			err = d.FillStrided(stream0, m.Ptr, 1, 8, 3)
			if want := fmt.Sprintf("hip: fill: device 0 (Fake 0): 3 elements of 4 bytes, 8 bytes apart, at %#x in stream 0x5000: ", uint64(m.Ptr)); !errors.Is(err, hip.ErrorInvalidValue) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if err := d.Free(m); err != nil {
				t.Error(err)
			}
			if f.live() != 0 {
				t.Errorf("%d objects are left", f.live())
			}
		}
	}
	// A device that refuses the new function does without it.
	f := newFake(t, hip71)
	f.set("hipMemsetD2D32Async", int(hip.ErrorInvalidValue))
	if d := f.device(); d.unit != 0 || f.last() != 0 {
		t.Errorf("rows are counted in %d; the thread remembers %d", d.unit, f.last())
	}
}

// TestGraphs has all releases with graphs. A struct that one of them has otherwise would show in what arrives.
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
	f.want("hipGraphCreate(0)", "hipGraphAddEmptyNode(0x6000: 0x9001 0x9002)",
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
	f.want("hipGraphAddMemsetNode(0x100, 0, 0x34, 1, 3, 1:)", "hipGraphAddMemsetNode(0x100, 0, 0x1234, 4, 1, 1:)")

	// The arguments of a kernel are read by the call.
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
	f.calls()
	for _, op := range nodeOps[1:6] {
		ok(d.SetNode(x, 0x9009, &op))
	}
	ok(d.SetNodes(x, []driver.Node{0x9007, 0x9008}, []driver.NodeOp{nodeOps[4], nodeOps[2]}))
	f.want("hipGetDevice()", "hipSetDevice(0)", "hipGraphExecKernelNodeSetParams(0xf000, 2 3 4, 5 6 7, 8)", "hipSetDevice(0)",
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
	if _, err := d.AddNode(g, nil, &driver.NodeOp{Kind: 9}); !errors.Is(err, hip.ErrorInvalidValue) || !strings.Contains(err.Error(), "no kind of node 9") {
		t.Errorf("no kind of node: %v", err)
	}

	// A launch in another stream comes after the one before.
	dev := d.(*device)
	dev.setCaptured(stream0, false) // as NewStream says
	dev.setCaptured(stream1, false)
	f.calls()
	ok(d.LaunchGraph(stream0, x))
	ok(d.LaunchGraph(stream0, x))
	f.want("hipGraphLaunch(0x7000, 0x5000)", "hipGraphLaunch(0x7000, 0x5000)")
	ok(d.LaunchGraph(stream1, x))
	f.want("hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	ok(d.LaunchGraph(stream1, x))
	f.want("hipGraphLaunch(0x7000, 0x5001)")
	ok(d.LaunchGraph(stream0, x))
	f.want("hipEventRecord(0xe000, 0x5001)", "hipStreamWaitEvent(0x5000, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5000)")
	// The events have been recorded, and are asked about.
	ok(d.LaunchGraph(stream1, x))
	f.want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	live := f.live()
	for _, fails := range []string{"hipEventQuery", "hipEventRecord", "hipStreamWaitEvent"} {
		f.set(fails, int(hip.ErrorOutOfMemory))
		if err := d.LaunchGraph(stream0, x); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s fails: %v", fails, err)
		}
		f.set(fails, 0)
	}
	if f.live() != live {
		t.Errorf("%d objects, and there were %d", f.live(), live)
	}
	// In a stream that was destroyed there is nothing left of it.
	ok(dev.DestroyStream(stream1))
	dev.setCaptured(stream1, false)
	f.calls()
	ok(d.LaunchGraph(stream0, x))
	f.want("hipGraphLaunch(0x7000, 0x5000)")
	// As long as a stream cannot be destroyed a launch elsewhere follows.
	f.set("hipStreamDestroy", int(hip.ErrorUnknown))
	if err := dev.DestroyStream(stream0); err == nil {
		t.Error("the stream is destroyed")
	}
	f.set("hipStreamDestroy", 0)
	f.calls()
	ok(d.LaunchGraph(stream1, x))
	f.want("hipEventQuery(0xe000)", "hipEventRecord(0xe000, 0x5000)", "hipStreamWaitEvent(0x5001, 0xe000, 0)", "hipGraphLaunch(0x7000, 0x5001)")
	// Events go with the exec, if that goes.
	f.set("hipGraphExecDestroy", int(hip.ErrorUnknown))
	if err := d.DestroyExec(x); err == nil || len(dev.execs) != 1 {
		t.Errorf("%v, and %d execs are remembered", err, len(dev.execs))
	}
	f.set("hipGraphExecDestroy", 0)
	f.calls()
	ok(d.DestroyExec(x))
	f.want("hipGraphExecDestroy(0x7000)", "hipEventDestroy(0xe000)", "hipEventDestroy(0xe000)")
	if len(dev.execs) != 0 {
		t.Errorf("%d execs are remembered", len(dev.execs))
	}
}

// TestErrors has every function fail with every kind of code.
func TestErrors(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device(WithPools())
	functions := map[string][]string{
		"new stream": {"hipStreamCreateWithFlags", "hipStreamCreateWithPriority"}, "destroy stream": {"hipStreamDestroy"}, "new event": {"hipEventCreateWithFlags"},
		"destroy event": {"hipEventDestroy"}, "record": {"hipEventRecord"}, "query": {"hipEventQuery"}, "wait": {"hipStreamWaitEvent"},
		"alloc": {"hipMalloc", "hipHostMalloc", "hipMallocManaged", "hipHostGetDevicePointer"}, "free": {"hipFree", "hipHostFree"},
		"register": {"hipHostRegister", "hipHostGetDevicePointer"}, "unregister": {"hipHostUnregister"}, "prefetch": {"hipMemPrefetchAsync"},
		"fill": {"hipMemsetD32Async"}, "copy": {"hipMemcpyDtoDAsync", "hipMemcpyPeerAsync"}, "upload": {"hipMemcpyHtoDAsync"}, "download": {"hipMemcpyDtoHAsync"},
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
	}
	calls := all(d)
	calls["bind"] = d.Bind
	for op, call := range calls {
		for _, fn := range functions[op] {
			for _, c := range []struct {
				code                   hip.Result
				lost, oom, unsupported bool
			}{
				{code: hip.ErrorInvalidHandle},
				{code: hip.ErrorContextIsDestroyed}, // which is said of a stream
				{code: hip.ErrorOutOfMemory, oom: true},
				{code: hip.ErrorNotSupported, unsupported: true},
				{code: hip.ErrorIllegalAddress, lost: true},
			} {
				f.set(fn, int(c.code))
				live := f.live()
				err := call()
				e, ok := err.(*driver.Error)
				if !ok {
					t.Errorf("%s with %s failing: %v", op, fn, err)
				} else if e.Driver != "hip" || e.Op != op || e.Lost != c.lost || e.OOM != c.oom || !errors.Is(err, c.code) ||
					errors.Is(err, driver.ErrLost) != c.lost || errors.Is(err, driver.ErrOutOfMemory) != c.oom ||
					errors.Is(err, driver.ErrUnsupported) != c.unsupported ||
					!strings.HasPrefix(err.Error(), "hip: "+op+": device 0 (Fake 0): ") || !strings.Contains(err.Error(), c.code.Name()) {
					t.Errorf("%s with %s failing: %+v: %v", op, fn, *e, err)
				}
				if n := f.live(); n > live {
					t.Errorf("%s with %s failing leaves %d objects", op, fn, n-live)
				}
				if n := f.last(); n != 0 {
					t.Errorf("%s with %s failing leaves the error %d on the thread", op, fn, n)
				}
				f.set(fn, 0)
			}
		}
		if functions[op] == nil {
			t.Errorf("no function for %s", op)
		}
	}
}

// TestLastError has others' errors on the thread, which must be there afterwards where HIP would keep them.
func TestLastError(t *testing.T) {
	for _, release := range []dl.Version{hip64, hip70} {
		f := newFake(t, release)
		d := f.device()
		f.set("hipEventQuery", int(hip.ErrorNotReady))
		if done, err := d.Query(event0); done || err != nil || f.last() != 0 {
			t.Errorf("HIP %s: after Query the thread remembers %d", hip.FormatVersion(release), f.last())
		}
		if release < hip70 {
			continue
		}
		theirs := func() int {
			d.lib.SetDevice(99)
			return f.last()
		}
		if theirs() != int(hip.ErrorInvalidDevice) {
			t.Fatal("the fake remembers nothing")
		}
		if done, err := d.Query(event0); done || err != nil || f.last() != int(hip.ErrorInvalidDevice) {
			t.Errorf("after Query the thread remembers %d, and not its own error", f.last())
		}
		for what, call := range map[string]func() error{
			"no stream": func() error { return d.Record(event0, 0) },
			"width 3":   func() error { return d.Fill(stream0, 64, 0, 3, 5) },
			"PTX":       func() error { _, err := d.Load(kernels.Saxpy); return err },
			"no memory": func() error { _, err := d.Alloc(7, 1); return err },
		} {
			if err := call(); err == nil || f.last() != int(hip.ErrorInvalidDevice) {
				t.Errorf("%s: after %v the thread remembers %d, and not its own error", what, err, f.last())
			}
		}
	}
}

func TestLost(t *testing.T) {
	sticky := map[hip.Result]bool{4: true, 214: true, 700: true, 702: true, 710: true, 719: true}
	for r := range hip.Result(1100) {
		if e := wrap("test", r); e.Lost != sticky[r] || e.OOM != (r == 2) {
			t.Errorf("%v: lost %t, out of memory %t", r, e.Lost, e.OOM)
		}
	}
	if e := wrap("test", errors.New("no code")); e.Lost || e.OOM {
		t.Errorf("%+v", e)
	}

	// A launch that fails has lost the device only if everything fails.
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
		{"query", "hipEventQuery", ""}, // which refuses nothing
	} {
		f.set(c.fn, int(hip.ErrorLaunchFailure))
		for code, lost := range map[hip.Result]bool{hip.Success: c.ask == "", hip.ErrorNotReady: c.ask == "", hip.ErrorInvalidValue: c.ask == "", hip.ErrorIllegalAddress: true} {
			if c.ask != "" {
				f.set(c.ask, int(code))
			}
			call := all(d)[c.op]
			if c.op == "set node" { // which asks for the thread's device as well, and before
				call = func() error { return d.setNode(exec0, node0, &nodeOps[1], new(nodeParams)) }
			}
			err := call()
			if !errors.Is(err, hip.ErrorLaunchFailure) || errors.Is(err, driver.ErrLost) != lost || f.last() != 0 {
				t.Errorf("%s, then %v: %v; the thread remembers %d", c.op, code, err, f.last())
			}
		}
		f.set(c.fn, 0)
		if c.ask != "" {
			f.set(c.ask, 0)
		}
	}
}

func TestBadArguments(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	m := driver.Mem{Kind: 7}
	for name, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"stream 0 for record":      {d.Record(event0, 0), hip.ErrorInvalidHandle, "stream 0x0: no stream of NewStream's"},
		"legacy stream for wait":   {d.StreamWait(1, event0), hip.ErrorInvalidHandle, "stream 0x1"},
		"thread's stream for fill": {d.Fill(2, 64, 0, 1, 1), hip.ErrorInvalidHandle, "stream 0x2"},
		"stream 0 for columns":     {d.FillStrided(0, 64, 0, 8, 1), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for copy":        {d.Copy(0, 64, 0, 1), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for upload":      {d.Upload(0, 64, nil, 1), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for download":    {d.Download(0, nil, 64, 1), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for launch":      {d.Launch(0, &driver.Launch{}), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 for a graph":     {d.LaunchGraph(0, exec0), hip.ErrorInvalidHandle, "stream 0x0"},
		"stream 0 to destroy":      {d.DestroyStream(0), hip.ErrorInvalidHandle, "stream 0x0"},
		"fill of width 3":          {d.Fill(stream0, 64, 0, 3, 5), hip.ErrorInvalidValue, "5 elements of 3 bytes at 0x40 in stream 0x5000: the width must be"},
		"free of no kind":          {d.Free(m), hip.ErrorInvalidValue, "no kind of memory 7"},
		"alloc of no kind":         {func() error { _, err := d.Alloc(7, 1); return err }(), hip.ErrorInvalidValue, "no kind of memory 7"},
		"kernel that is not there": {func() error { _, _, err := d.Function(module0, "_Z5emptyv"); return err }(), hip.ErrorNotFound, "mangled"},
		"kernel with NUL":          {func() error { _, _, err := d.Function(module0, "a\x00b"); return err }(), dl.ErrNUL, "NUL"},
		"variable not there":       {func() error { _, _, err := d.Global(module0, "x"); return err }(), hip.ErrorNotFound, `variable "x"`},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	f.set("attr 9", 1)
	if d := f.device(); d.caps.Managed {
		t.Error("managed memory that the host must not touch counts")
	}
	f.set("attr 90", 1)
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
		{"hipGetDevice", hip.ErrorDeinitialized, true},  // while the process ends
		{"hipGetDevice", hip.ErrorIllegalAddress, true}, // there is nothing to save
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
		f.set(c.fn, int(c.code))
		if err := d.Close(); (err == nil) != c.fine || !c.fine && !errors.Is(err, c.code) {
			t.Errorf("%s fails with %v: %v", c.fn, c.code, err)
		}
		f.set(c.fn, 0)
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
