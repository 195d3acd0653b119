package hipdriver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// TestLibrary tests the driver, without the runtime, with the library that PUREGPU_TEST_HIP_LIBRARY
// names.
func TestLibrary(t *testing.T) {
	lib := namedLibrary(t)
	testLibrary(t, lib, nil)
}

// TestNativePools is TestLibrary with HIP's own pools.
func TestNativePools(t *testing.T) {
	testLibrary(t, libraryWithPools(t), nil, WithPools())
}

// takesPTX reports whether the devices run PTX. They do with testdata/hipovercuda, because its
// devices are NVIDIA's.
func takesPTX(d *Driver) bool {
	return !slices.ContainsFunc(d.infos, func(i driver.Info) bool { return i.Arch == "" || strings.HasPrefix(i.Arch, "gfx") })
}

// testLibrary tests the driver on the devices of a library. stall, if not nil, makes a device's
// events look pending.
func testLibrary(t *testing.T, lib *hip.Library, stall func(device int) (resume func()), opts ...Option) {
	for _, test := range []struct {
		name string
		run  func(b *bench)
	}{
		{"info", testInfo},
		{"transfers", testTransfers},
		{"strided fills", testStrided},
		{"managed memory", testManaged},
		{"registered memory", testRegister},
		{"events", testEvents},
		{"kernels", testKernels},
		{"modules", testModules},
		{"timers", testTimers},
		{"graphs", testGraphs},
		{"capture", testCapture},
		{"threads", testThreads},
		{"devices", testTwoDevices},
		{"pools", testPools},
		{"allocations", testAllocations},
	} {
		t.Run(test.name, func(t *testing.T) {
			drv, err := New(lib, opts...)
			if err != nil {
				t.Fatal(err)
			}
			runtime.LockOSThread() // the thread ends with the test
			d, err := drv.Open(0)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{T: t, drv: drv, d: d.(*device), stall: stall}
			b.ok(d.Bind())
			t.Cleanup(func() {
				if err := lib.PeekAtLastError(); err != nil && !errors.Is(err, dl.ErrSymbol) {
					t.Errorf("the thread's last error is %v", err)
				}
				b.ok(d.Close())
			})
			test.run(b)
		})
	}
}

// A bench holds an open device on a bound thread.
type bench struct {
	*testing.T
	drv   *Driver
	d     *device
	stall func(device int) (resume func())
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) stream() driver.Stream {
	b.Helper()
	s, err := b.d.NewStream()
	b.ok(err)
	b.Cleanup(func() { b.ok(b.d.DestroyStream(s)) })
	return s
}

func (b *bench) event() driver.Event {
	b.Helper()
	e, err := b.d.NewEvent()
	b.ok(err)
	b.Cleanup(func() { b.ok(b.d.DestroyEvent(e)) })
	return e
}

func (b *bench) alloc(kind driver.MemKind, size uint64) driver.Mem {
	b.Helper()
	m, err := b.d.Alloc(kind, size)
	b.ok(err)
	b.Cleanup(func() { b.ok(b.d.Free(m)) })
	return m
}

func (b *bench) kernel(image []byte, name string) driver.Function {
	b.Helper()
	if !takesPTX(b.drv) {
		b.Skip("there are no kernels for this device")
	}
	m, err := b.d.Load(image)
	b.ok(err)
	b.Cleanup(func() { b.ok(b.d.Unload(m)) })
	f, info, err := b.d.Function(m, name)
	b.ok(err)
	if info.MaxThreads < 64 {
		b.Errorf("%+v", info)
	}
	return f
}

// finish waits until a stream is idle.
func (b *bench) finish(s driver.Stream) {
	b.Helper()
	e, err := b.d.NewEvent()
	b.ok(err)
	b.ok(b.d.Record(e, s))
	for end := time.Now().Add(time.Minute); ; {
		done, err := b.d.Query(e)
		b.ok(err)
		if done {
			break
		}
		if time.Now().After(end) {
			b.Fatal("the stream does not become idle")
		}
	}
	b.ok(b.d.DestroyEvent(e))
}

// busy keeps a stream working: until over is called if b.stall is set, and otherwise for much
// longer than a call takes.
func (b *bench) busy(s driver.Stream) (over func()) {
	b.Helper()
	if b.stall != nil {
		return b.stall(0)
	}
	const size = 256 << 20
	m := b.alloc(driver.DeviceMem, size)
	for range 100 {
		b.ok(b.d.Fill(s, m.Ptr, 1, 1, size))
	}
	return func() {}
}

func testInfo(b *bench) {
	info, caps := b.d.Info(), b.d.Caps()
	b.Logf("%s, version %s\n%+v\n%+v", b.d.lib.Path(), version(b.d.lib), info, caps)
	if info.WarpSize < 16 || info.Memory < 1<<28 || info.Name == "" || info.Arch == "" || info.MaxThreads < 256 || info.MaxGrid[0] < 1<<16 ||
		info.SharedOptIn < info.SharedMem || info.PCI != strings.ToLower(info.PCI) || len(info.PCI) != len("0000:3b:00.0") {
		b.Error("this is not the Info of a GPU")
	}
	if info.Version == 0 || info.Major < 3 || info.Clock <= 0 || info.MemoryBus <= 0 || info.L2 <= 0 || info.Registers <= 0 ||
		info.ProcessorThreads < info.MaxThreads || info.ProcessorSharedMem < info.SharedOptIn || info.ProcessorRegisters < info.Registers || info.NUMANode < -1 {
		b.Error("these are not the facts of a GPU")
	}
	if !caps.MemInfo || !caps.Links || !caps.Occupancy || caps.PriorityRange[0] < caps.PriorityRange[1] {
		b.Error("the library lacks facts that HIP reports")
	}
	sets := b.d.lib.Version() < fromStream
	// testdata/hipovercuda imitates a release that has pools, but may still need the device to be
	// current.
	if b.drv.pools && takesPTX(b.drv) {
		sets = b.d.sets
	}
	if b.d.sets != sets || caps.RerecordEvents || caps.KernelParams ||
		caps.Pools && (!b.drv.pools || b.d.lib.Version() < poolsSince) || caps.PoolsByStream != caps.Pools || caps.HostPools || caps.ManagedPools || !caps.Timers {
		b.Error("this is not HIP")
	}
}

func testTransfers(b *bench) {
	d, s := b.d, b.stream()
	const n = 1 << 16
	dev, host := b.alloc(driver.DeviceMem, n), b.alloc(driver.HostMem, n)
	out := unsafe.Slice((*byte)(host.Host), n)
	for i := range out {
		out[i] = byte(i * 7 >> 3)
	}
	b.ok(errors.Join(
		d.Upload(s, dev.Ptr, host.Host, n),
		d.Fill(s, dev.Ptr+4096, 0x11a1, 1, 1000),
		d.Fill(s, dev.Ptr+8192, 0x11b2c3, 2, 1000),
		d.Fill(s, dev.Ptr+12288, 0xd4e5f607, 4, 1000),
		d.Copy(s, dev.Ptr+n/2, dev.Ptr, n/2),
		d.Download(s, host.Host, dev.Ptr, n),
	))
	b.finish(s)
	for i, got := range out {
		j := i % (n / 2)
		want := byte(j * 7 >> 3)
		switch {
		case j >= 4096 && j < 5096:
			want = 0xa1
		case j >= 8192 && j < 10192:
			want = []byte{0xc3, 0xb2}[j%2]
		case j >= 12288 && j < 16288:
			want = []byte{0x07, 0xf6, 0xe5, 0xd4}[j%4]
		}
		if got != want {
			b.Fatalf("byte %d is %#x, want %#x", i, got, want)
		}
	}
	// Fills and copies also work on pinned memory, by its device address (host.Ptr).
	b.ok(d.Fill(s, host.Ptr, 0x5a, 1, 10))
	b.ok(d.Copy(s, dev.Ptr, host.Ptr, 10))
	b.ok(d.Copy(s, host.Ptr+20, dev.Ptr, 10))
	b.finish(s)
	if out[0] != 0x5a || out[29] != 0x5a {
		b.Errorf("pinned memory has %#x", out[:30])
	}
	b.ok(errors.Join(d.Fill(s, dev.Ptr, 0, 4, 0), d.FillStrided(s, dev.Ptr, 0, 8, 0), d.Copy(s, dev.Ptr, host.Ptr, 0), d.Upload(s, dev.Ptr, nil, 0), d.Download(s, nil, dev.Ptr, 0)))
	if m, err := d.Alloc(driver.DeviceMem, 1<<50); !errors.Is(err, driver.ErrOutOfMemory) || m != (driver.Mem{}) {
		b.Errorf("2^50 bytes: %+v, %v", m, err)
	}
}

func testStrided(b *bench) {
	d, s := b.d, b.stream()
	const n = 4096
	dev, host := b.alloc(driver.DeviceMem, n), b.alloc(driver.HostMem, n)
	words := unsafe.Slice((*uint32)(host.Host), n/4)
	for _, pattern := range []uint32{0x01020304, 0x11111111, 0xffff0000, 0} {
		for _, stride := range []uint64{4, 8, 12, 64, 1000} {
			for _, count := range []uint64{1, 2, (n-16-4)/stride + 1} {
				b.ok(d.Fill(s, dev.Ptr, 0xee, 1, n))
				b.ok(d.FillStrided(s, dev.Ptr+16, pattern, stride, count))
				b.ok(d.Download(s, host.Host, dev.Ptr, n))
				b.finish(s)
				for i, w := range words {
					want := uint32(0xeeeeeeee)
					if at := uint64(4*i) - 16; i >= 4 && at%stride == 0 && at/stride < count {
						want = pattern
					}
					if w != want {
						b.Fatalf("%d words of %#x, one every %d bytes: word %d is %#x, want %#x", count, pattern, stride, i, w, want)
					}
				}
			}
		}
	}
}

func testManaged(b *bench) {
	if !b.d.caps.Managed {
		b.Skip("no managed memory that both sides use")
	}
	s := b.stream()
	m := b.alloc(driver.ManagedMem, 64<<10)
	words := unsafe.Slice((*uint32)(m.Host), 16<<10)
	words[1] = 7
	b.ok(b.d.Fill(s, m.Ptr+8, 9, 4, 100))
	b.finish(s)
	if words[1] != 7 || words[2] != 9 || words[101] != 9 {
		b.Errorf("managed memory has %v", words[:3])
	}
	if !b.d.caps.Prefetch {
		return
	}
	b.ok(b.d.Prefetch(s, m.Ptr, m.Size, driver.DeviceMem))
	b.ok(b.d.Fill(s, m.Ptr+8, 10, 4, 1))
	b.ok(b.d.Prefetch(s, m.Ptr, m.Size, driver.HostMem))
	b.finish(s)
	if words[1] != 7 || words[2] != 10 || words[101] != 9 {
		b.Errorf("managed memory that was moved has %v", words[:3])
	}
}

func testRegister(b *bench) {
	if !b.d.caps.HostRegister {
		b.Skip("no memory can be registered")
	}
	s := b.stream()
	const n = 1 << 20
	mine := make([]byte, n) // on the heap, which does not move
	p, err := b.d.Register(unsafe.Pointer(&mine[0]), n)
	b.ok(err)
	b.ok(b.d.Fill(s, p+n/2, 0x77, 1, n/2))
	b.finish(s)
	if mine[n/2-1] != 0 || mine[n/2] != 0x77 || mine[n-1] != 0x77 {
		b.Error("the device does not reach the memory")
	}
	b.ok(b.d.Unregister(unsafe.Pointer(&mine[0])))
	runtime.KeepAlive(mine)
}

// testEvents makes one stream wait for another stream, which is busy.
func testEvents(b *bench) {
	d := b.d
	from, to := b.stream(), b.stream()
	e, after := b.event(), b.event()
	m, host := b.alloc(driver.DeviceMem, 4), b.alloc(driver.HostMem, 4)
	if done, err := d.Query(e); !done || err != nil {
		b.Errorf("an event never recorded: %t, %v", done, err)
	}
	b.ok(d.StreamWait(to, e)) // e was never recorded, so the wait has no effect
	b.ok(d.Fill(from, m.Ptr, 1, 4, 1))
	over := b.busy(from)
	b.ok(d.Fill(from, m.Ptr, 2, 4, 1))
	b.ok(d.Record(e, from))
	b.ok(d.StreamWait(to, e))
	b.ok(d.Download(to, host.Host, m.Ptr, 4))
	b.ok(d.Record(after, to))
	if done, err := d.Query(after); done || err != nil {
		b.Errorf("work after a wait is done at once: %t, %v", done, err)
	}
	if takesPTX(b.drv) { // testdata/hipovercuda checks HIP's rules
		err := d.Record(e, from)
		if !errors.Is(err, hip.ErrorIllegalState) || errors.Is(err, driver.ErrLost) {
			b.Errorf("an event that a stream still waits for is recorded again: %v", err)
		}
	}
	over()
	b.finish(to)
	if got := *(*uint32)(host.Host); got != 2 {
		b.Errorf("the second stream read %d, want 2", got)
	}
	b.ok(d.Record(e, from)) // the wait is complete, so the event may be recorded again
	b.finish(from)
	// A wait for an event that was recorded in the same stream has no effect.
	over = b.busy(to)
	b.ok(d.Record(e, to))
	b.ok(d.StreamWait(to, e))
	if takesPTX(b.drv) {
		if err := d.Record(e, to); !errors.Is(err, hip.ErrorIllegalState) || errors.Is(err, driver.ErrLost) {
			b.Errorf("a pending event is recorded again: %v", err)
		}
	}
	over()
	b.finish(to)
	b.ok(d.Record(e, to))
	b.finish(to)
}

func testKernels(b *bench) {
	d, s := b.d, b.stream()
	saxpy := b.kernel(kernels.Saxpy, "saxpy")
	const n = 10_001
	count, factor := new(uint64), new(float32)
	*count, *factor = n, 2
	host := b.alloc(driver.HostMem, 8*n)
	x, y := b.alloc(driver.DeviceMem, 4*n), b.alloc(driver.DeviceMem, 4*n)
	both := unsafe.Slice((*float32)(host.Host), 2*n)
	for i := range n {
		both[i], both[n+i] = float32(i%1000), float32(i%77)
	}
	b.ok(d.Upload(s, x.Ptr, host.Host, x.Size))
	b.ok(d.Upload(s, y.Ptr, unsafe.Add(host.Host, x.Size), y.Size))
	launch := &driver.Launch{
		Function: saxpy, Grid: [3]uint32{(n + 255) / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []unsafe.Pointer{unsafe.Pointer(count), unsafe.Pointer(factor), unsafe.Pointer(&x.Ptr), unsafe.Pointer(&y.Ptr)},
	}
	b.ok(d.Launch(s, launch))
	b.ok(d.Download(s, unsafe.Add(host.Host, x.Size), y.Ptr, y.Size))
	b.finish(s)
	for i := range n {
		if want := float32(i%77) + 2*float32(i%1000); both[n+i] != want {
			b.Fatalf("y[%d] = %v, want %v", i, both[n+i], want)
		}
	}
	for what, change := range map[string]func(l *driver.Launch){
		"a block of 4096 threads":   func(l *driver.Launch) { l.Block[0] = 4096 },
		"2^32 threads along x":      func(l *driver.Launch) { l.Grid[0], l.Block[0] = 1<<24, 256 },
		"too much of shared memory": func(l *driver.Launch) { l.SharedMem = uint32(d.info.SharedOptIn) + 1 },
	} {
		bad := *launch
		change(&bad)
		if err := d.Launch(s, &bad); err == nil || errors.Is(err, driver.ErrLost) {
			b.Errorf("%s: %v", what, err)
		}
	}
	zero := *launch // a dimension of 0 means 1
	zero.Grid[1], zero.Block[2] = 0, 0
	b.ok(d.Launch(s, &zero))
	b.finish(s)
}

func testModules(b *bench) {
	d := b.d
	for what, image := range map[string][]byte{"nothing": nil, "no code": []byte("this is no code")} {
		if m, err := d.Load(image); m != 0 || err == nil || errors.Is(err, driver.ErrLost) {
			b.Errorf("%s: module %#x, %v", what, m, err)
		}
	}
	if !takesPTX(b.drv) {
		if _, err := d.Load(kernels.Saxpy); !errors.Is(err, hip.ErrorInvalidImage) || !strings.Contains(err.Error(), "PTX") {
			b.Errorf("PTX: %v", err)
		}
		return
	}
	_, err := d.Load(bytes.Replace(kernels.Saxpy, []byte(".version "), []byte(".version 99.9 // "), 1))
	if err == nil || errors.Is(err, driver.ErrLost) {
		b.Errorf("PTX of the future: %v", err)
	}
	m, err := d.Load(bytes.TrimRight(kernels.Basic, "\x00"))
	b.ok(err)
	if _, _, err := d.Function(m, "nothing"); !errors.Is(err, hip.ErrorNotFound) {
		b.Errorf("a missing kernel: %v", err)
	}
	if _, _, err := d.Global(m, "nothing"); !errors.Is(err, hip.ErrorNotFound) {
		b.Errorf("a missing variable: %v", err)
	}
	b.ok(d.Unload(m))
}

func testTimers(b *bench) {
	d, s := b.d, b.stream()
	from, err := d.NewTimer()
	b.ok(err)
	to, err := d.NewTimer()
	b.ok(err)
	m := b.alloc(driver.DeviceMem, 4<<20)
	b.ok(d.Record(from, s))
	for range 20 {
		b.ok(d.Fill(s, m.Ptr, 1, 4, m.Size/4))
	}
	b.ok(d.Record(to, s))
	b.finish(s)
	took, err := d.Elapsed(from, to)
	b.Logf("20 fills of 4 MiB took %v", took)
	if err != nil || took <= 0 || took > 20*time.Second {
		b.Errorf("%v, %v", took, err)
	}
	e := b.event()
	b.ok(d.Record(e, s))
	b.finish(s)
	if _, err := d.Elapsed(from, e); !errors.Is(err, hip.ErrorInvalidHandle) {
		b.Errorf("an event without times: %v", err)
	}
	b.ok(errors.Join(d.DestroyEvent(from), d.DestroyEvent(to)))
}

func testGraphs(b *bench) {
	d := b.d
	if !d.caps.Graphs {
		b.Skip(d.noGraphs)
	}
	s, other := b.stream(), b.stream()
	const n = 1024
	dev, host := b.alloc(driver.DeviceMem, 4*n), b.alloc(driver.HostMem, 4*n)
	words := unsafe.Slice((*uint32)(host.Host), n)
	add := func(g driver.Graph, op driver.NodeOp, after ...driver.Node) driver.Node {
		b.Helper()
		node, err := d.AddNode(g, after, &op)
		b.ok(err)
		return node
	}
	at := func(i uint64) driver.Ptr { return dev.Ptr + driver.Ptr(4*i) }
	// The child fills the second quarter. The parent fills the first quarter and the stripes in the
	// third, copies a part, and records a timer.
	child, err := d.NewGraph()
	b.ok(err)
	add(child, driver.NodeOp{Kind: driver.FillNode, Dst: at(n / 4), Pattern: 0x0202, Width: 2, Count: n / 2})
	g, err := d.NewGraph()
	b.ok(err)
	timer, err := d.NewTimer()
	b.ok(err)
	clean := add(g, driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 0, Width: 1, Count: 4 * n})
	first := driver.NodeOp{Kind: driver.FillNode, Dst: dev.Ptr, Pattern: 0x01010101, Width: 4, Count: n / 4}
	one := add(g, first, clean)
	two := add(g, driver.NodeOp{Kind: driver.ChildNode, Child: child}, clean)
	stripes := driver.NodeOp{Kind: driver.FillNode, Dst: at(n / 2), Pattern: 0x03030303, Width: 4, Count: n / 16, Stride: 16}
	three := add(g, stripes, clean)
	join := add(g, driver.NodeOp{Kind: driver.EmptyNode}, one, two, three)
	// From the second half of the first quarter to the middle of the second.
	part := driver.NodeOp{Kind: driver.CopyNode, Dst: at(3 * n / 4), Src: at(n / 8), Count: n}
	copied := add(g, part, join)
	add(g, driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr, Src: dev.Ptr, Count: 4 * n}, copied)
	add(g, driver.NodeOp{Kind: driver.RecordNode, Event: timer}, copied)
	b.ok(d.DestroyGraph(child)) // the parent has a copy
	x, err := d.Instantiate(g)
	b.ok(err)
	check := func(first, stripes uint32, shift int) {
		b.Helper()
		for i := range n {
			source := i
			if i >= 3*n/4 {
				source = i - 3*n/4 + n/8 + shift
			}
			want := uint32(0)
			switch {
			case source < n/4:
				want = first
			case source < n/2:
				want = 0x02020202
			case source < 3*n/4 && source%4 == 0:
				want = stripes
			}
			if words[i] != want {
				b.Fatalf("word %d is %#x, want %#x", i, words[i], want)
			}
		}
	}
	b.ok(d.LaunchGraph(s, x))
	b.finish(s)
	check(0x01010101, 0x03030303, 0)
	// A later launch, with changed nodes and in another stream, waits for earlier launches.
	over := b.busy(s)
	clear(words)
	b.ok(d.LaunchGraph(s, x))
	first.Pattern, stripes.Pattern, part.Src = 5, 6, at(n/8+n/16)
	b.ok(d.SetNode(x, one, &first))
	if err := d.SetNode(x, three, &stripes); takesPTX(b.drv) && (errors.Is(err, hip.ErrorInvalidValue) || errors.Is(err, hip.ErrorNotSupported)) {
		b.Logf("CUDA keeps fills of several rows as they are: %v", err)
		stripes.Pattern = 0x03030303
	} else {
		b.ok(err)
	}
	wider := stripes
	wider.Count++
	if err := d.SetNode(x, three, &wider); !errors.Is(err, hip.ErrorInvalidValue) {
		b.Errorf("HIP has changed the shape of a strided fill: %v", err)
	}
	b.ok(d.SetNode(x, copied, &part))
	b.ok(d.LaunchGraph(other, x))
	over()
	b.finish(other)
	check(5, stripes.Pattern, n/16)
	b.ok(d.DestroyExec(x))
	b.ok(d.DestroyGraph(g))
	b.ok(d.DestroyEvent(timer))

	// AddNode and SetNode read the arguments of a kernel during the call.
	index := b.kernel(kernels.Basic, "index")
	count, base, step, out := uint64(n), uint32(100), uint32(3), dev.Ptr
	op := driver.NodeOp{Kind: driver.KernelNode, Launch: driver.Launch{Function: index, Grid: [3]uint32{n / 128, 1, 1}, Block: [3]uint32{128, 1, 1},
		Args: []unsafe.Pointer{unsafe.Pointer(&count), unsafe.Pointer(&base), unsafe.Pointer(&step), unsafe.Pointer(&out)}}}
	g, err = d.NewGraph()
	b.ok(err)
	k := add(g, op)
	count, base = 0, 0
	add(g, driver.NodeOp{Kind: driver.CopyNode, Dst: host.Ptr, Src: dev.Ptr, Count: 4 * n}, k)
	x, err = d.Instantiate(g)
	b.ok(err)
	for _, want := range []uint32{100, 200} {
		b.ok(d.LaunchGraph(s, x))
		b.finish(s)
		for i, w := range words {
			if w != want+3*uint32(i) {
				b.Fatalf("word %d is %d, want %d", i, w, want+3*uint32(i))
			}
		}
		count, base = n, 200
		b.ok(d.SetNode(x, k, &op))
		count, base = 0, 0
	}
	b.ok(d.DestroyExec(x))
	b.ok(d.DestroyGraph(g))
}

// testCapture captures graphs and executes them as the child node of another graph. SetNode must
// accept a new child with the same nodes, and refuse one with more. testCapture also makes invalid
// calls in a capture.
func testCapture(b *bench) {
	d := b.d
	if !d.caps.Capture {
		b.Skip("the library cannot capture")
	}
	const n = 256
	s, dev, host := b.stream(), b.alloc(driver.DeviceMem, 4*n), b.alloc(driver.HostMem, 4*n)
	words := unsafe.Slice((*uint32)(host.Host), n)
	var index driver.Function
	if takesPTX(b.drv) {
		index = b.kernel(kernels.Basic, "index")
	}
	// capture captures a fill of one half, some kernels on the other half, and a copy of both. half
	// is the index of the first word to fill. times is the number of kernels. Each kernel numbers
	// the words from base on. If the devices do not run PTX, fills with base replace the kernels.
	capture := func(with, base uint32, half uint64, times int) driver.Graph {
		b.Helper()
		b.ok(d.BeginCapture(s))
		b.ok(d.Fill(s, dev.Ptr+driver.Ptr(4*half), with, 4, n/2))
		count, step, out := uint64(n/2), uint32(1), dev.Ptr+driver.Ptr(4*(n/2-half))
		for range times {
			if index != 0 {
				b.ok(d.Launch(s, &driver.Launch{Function: index, Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1},
					Args: []unsafe.Pointer{unsafe.Pointer(&count), unsafe.Pointer(&base), unsafe.Pointer(&step), unsafe.Pointer(&out)}}))
			} else {
				b.ok(d.Fill(s, out, base, 4, n/2))
			}
		}
		b.ok(d.Copy(s, host.Ptr, dev.Ptr, 4*n))
		g, err := d.EndCapture(s)
		b.ok(err)
		return g
	}
	clear(words)
	child := capture(7, 100, 0, 1)
	b.finish(s)
	if words[0] != 0 {
		b.Errorf("captured work has executed: %d", words[0])
	}
	g, err := d.NewGraph()
	b.ok(err)
	node, err := d.AddNode(g, nil, &driver.NodeOp{Kind: driver.ChildNode, Child: child})
	b.ok(err)
	b.ok(d.DestroyGraph(child))
	x, err := d.Instantiate(g)
	b.ok(err)
	check := func(with, base uint32, half int) {
		b.Helper()
		b.ok(d.LaunchGraph(s, x))
		b.finish(s)
		for i, w := range words {
			want := with
			if i/(n/2) != half/(n/2) {
				want = base
				if index != 0 {
					want += uint32(i % (n / 2))
				}
			}
			if w != want {
				b.Fatalf("word %d is %d, want %d", i, w, want)
			}
		}
	}
	check(7, 100, 0)
	child = capture(8, 200, n/2, 1)
	b.ok(d.SetNode(x, node, &driver.NodeOp{Kind: driver.ChildNode, Child: child}))
	b.ok(d.DestroyGraph(child))
	check(8, 200, n/2)
	child = capture(9, 300, 0, 2)
	if err := d.SetNode(x, node, &driver.NodeOp{Kind: driver.ChildNode, Child: child}); err == nil || errors.Is(err, driver.ErrLost) {
		b.Errorf("a child with one node more: %v", err)
	}
	b.ok(errors.Join(d.DestroyGraph(child), d.DestroyExec(x), d.DestroyGraph(g)))

	// If a call in a capture is invalid, EndCapture fails, and the stream still works afterwards.
	b.ok(d.BeginCapture(s))
	if err := d.BeginCapture(s); err == nil {
		b.Error("a capture is begun twice")
	}
	if err := d.lib.StreamSynchronize(hip.Stream(s)); err == nil {
		b.Error("a wait is captured")
	}
	d.lib.GetLastError()
	if g, err := d.EndCapture(s); err == nil || g != 0 || errors.Is(err, driver.ErrLost) {
		b.Errorf("graph %#x, %v", g, err)
	}
	b.ok(d.Fill(s, dev.Ptr, 1, 4, n))
	b.finish(s)
}

// testThreads uses a device on threads that have not chosen a device.
func testThreads(b *bench) {
	if !takesPTX(b.drv) {
		b.Skip("only the library of testdata/hipovercuda tells such threads apart")
	}
	d, s, e := b.d, b.stream(), b.event()
	m := b.alloc(driver.DeviceMem, 64)
	for range 1000 { // a goroutine's thread may have chosen a device already, so try many
		type result struct {
			fresh bool
			err   error
		}
		done := make(chan result)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			other, err := d.NewStream()
			if err == nil {
				done <- result{false, d.DestroyStream(other)}
				return
			}
			creates := map[string]error{"new stream": err}
			_, creates["alloc"] = d.Alloc(driver.DeviceMem, 64)
			submits := map[string]error{"record": d.Record(e, s), "wait": d.StreamWait(s, e), "fill": d.Fill(s, m.Ptr, 0, 1, 1)}
			_, submits["query"] = d.Query(e)
			for what, err := range submits {
				if err != nil {
					done <- result{true, fmt.Errorf("%s on an unbound thread: %w", what, err)}
					return
				}
			}
			for what, err := range creates {
				if !errors.Is(err, hip.ErrorInvalidContext) || errors.Is(err, driver.ErrLost) {
					done <- result{true, fmt.Errorf("%s on an unbound thread: %w", what, err)}
					return
				}
			}
			done <- result{true, nil}
		}()
		r := <-done
		b.ok(r.err)
		if r.fresh {
			return
		}
	}
	b.Error("every thread is bound")
}

// testTwoDevices makes one device wait for an event of another device.
func testTwoDevices(b *bench) {
	if len(b.drv.infos) < 2 {
		b.Skip("there is one device")
	}
	open, err := b.drv.Open(1)
	b.ok(err)
	two := open.(*device)
	b.ok(two.Bind())
	s2, err := two.NewStream()
	b.ok(err)
	m2, err := two.Alloc(driver.DeviceMem, 64)
	b.ok(err)
	b.ok(b.d.Bind())
	s, e := b.stream(), b.event()
	if b.d.caps.Peers {
		for range 2 {
			if err := b.d.EnablePeer(two); err != nil && !errors.Is(err, driver.ErrUnsupported) {
				b.Error(err)
			}
		}
	}
	if takesPTX(b.drv) {
		if err := b.d.Record(e, s2); err == nil {
			b.Error("an event is recorded on another device")
		}
	}
	m := b.alloc(driver.DeviceMem, 64)
	host := b.alloc(driver.HostMem, 64)
	b.ok(b.d.Fill(s, m.Ptr, 0x42, 1, 64))
	b.ok(b.d.Record(e, s))
	b.ok(two.Bind())
	b.ok(two.StreamWait(s2, e))
	b.ok(two.Copy(s2, m2.Ptr, m.Ptr, 64))
	b.ok(two.Download(s2, host.Host, m2.Ptr, 64))
	b.ok(two.lib.StreamSynchronize(hip.Stream(s2)))
	if got := *(*byte)(host.Host); got != 0x42 {
		b.Errorf("the second device read %#x", got)
	}
	b.ok(errors.Join(two.Free(m2), two.DestroyStream(s2), two.Close(), b.d.Bind()))
}

// testPools allocates and frees in stream order.
func testPools(b *bench) {
	d := b.d
	if !d.caps.Pools {
		b.Skip("no memory pools")
	}
	s := b.stream()
	attr := func(p driver.Pool, a driver.PoolAttr) uint64 {
		b.Helper()
		v, err := d.PoolAttr(p, a)
		b.ok(err)
		return v
	}
	def, err := d.DefaultPool()
	b.ok(err)
	made, err := d.NewPool(driver.PoolDesc{Kind: driver.DeviceMem})
	b.ok(err)
	if again, err := d.DefaultPool(); again != def || err != nil || def == 0 || made == 0 || made == def {
		b.Errorf("the default pool is %#x, then %#x, and another is %#x; %v", def, again, made, err)
	}
	const rounds, n = 32, 64 << 10
	host := b.alloc(driver.HostMem, rounds*n)
	words := unsafe.Slice((*uint32)(host.Host), rounds*n/4)
	for name, p := range map[string]driver.Pool{"default": def, "made": made} {
		if attr(p, driver.PoolReuseEvents) != 0 || attr(p, driver.PoolReuseOpportunistic) != 1 || attr(p, driver.PoolReuseInternal) != 1 {
			b.Errorf("%s pool: want other switches than HIP's", name)
		}
		b.ok(d.SetPoolAttr(p, driver.PoolThreshold, 1<<40))
		if got := attr(p, driver.PoolThreshold); got != 1<<40 {
			b.Errorf("%s pool: a threshold of %d", name, got)
		}
		for i := range uint64(rounds) {
			m, err := d.AllocAsync(s, p, n)
			b.ok(err)
			if m.Ptr == 0 || m.Ptr%256 != 0 || m.Host != nil || m.Kind != driver.DeviceMem || m.Size != n {
				b.Errorf("%s pool: %+v", name, m)
			}
			b.ok(d.Fill(s, m.Ptr, uint32(i)|0xab00, 4, n/4))
			b.ok(d.Download(s, unsafe.Add(host.Host, i*n), m.Ptr, n))
			b.ok(d.FreeAsync(s, m))
		}
		b.finish(s)
		for i, w := range words {
			if want := uint32(i*4/n) | 0xab00; w != want {
				b.Fatalf("%s pool: word %d is %#x, want %#x", name, i, w, want)
			}
		}
		clear(words)
		m, err := d.AllocAsync(s, p, n)
		b.ok(err)
		if used, reserved := attr(p, driver.PoolUsed), attr(p, driver.PoolReserved); used < n || reserved < used ||
			attr(p, driver.PoolUsedHigh) < used || attr(p, driver.PoolReservedHigh) < reserved {
			b.Errorf("%s pool: %d bytes in use, %d reserved", name, used, reserved)
		}
		b.ok(d.SetPoolAttr(p, driver.PoolUsedHigh, 0))
		b.ok(d.SetPoolAttr(p, driver.PoolReservedHigh, 0))
		if used, high := attr(p, driver.PoolUsed), attr(p, driver.PoolUsedHigh); high < used || used < n {
			b.Errorf("%s pool: %d bytes in use, at most %d", name, used, high)
		}
		b.ok(d.FreeAsync(s, m))
		if m, err := d.AllocAsync(s, p, 1<<50); !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, driver.ErrLost) || m != (driver.Mem{}) {
			b.Errorf("%s pool: 2^50 bytes: %+v, %v", name, m, err)
		}
		if dl.Fast {
			var sink error
			if n := testing.AllocsPerRun(50, func() {
				m, err := d.AllocAsync(s, p, n)
				if sink = err; err == nil {
					sink = d.FreeAsync(s, m)
				}
			}); n != 0 || sink != nil {
				b.Errorf("%s pool: AllocAsync and FreeAsync allocate %v times, %v", name, n, sink)
			}
		}
		b.finish(s)
		b.ok(d.TrimPool(p, 0))
	}
	before, err := d.CurrentPool()
	b.ok(err)
	b.ok(d.SetCurrentPool(made))
	if p, err := d.CurrentPool(); p != made || err != nil {
		b.Errorf("the current pool is %#x, want %#x; %v", p, made, err)
	}
	b.ok(d.SetCurrentPool(before))

	limited, err := d.NewPool(driver.PoolDesc{MaxSize: 64 << 20})
	b.ok(err)
	m, err := d.AllocAsync(s, limited, 1<<20)
	b.ok(err)
	if more, err := d.AllocAsync(s, limited, 256<<20); !errors.Is(err, driver.ErrOutOfMemory) || more != (driver.Mem{}) {
		b.Errorf("more than a pool may have: %+v, %v", more, err)
	}
	b.ok(d.FreeAsync(s, m))
	if err := d.DestroyPool(def); err == nil || errors.Is(err, driver.ErrLost) {
		b.Errorf("destroying the default pool: %v", err)
	}
	for _, p := range []driver.Pool{made, limited} {
		err := d.DestroyPool(p)
		for end := time.Now().Add(time.Minute); errors.Is(err, driver.ErrBusy) && time.Now().Before(end); err = d.DestroyPool(p) {
			runtime.Gosched()
		}
		b.ok(err)
	}
	if takesPTX(b.drv) { // testdata/hipovercuda checks HIP's rules
		other := b.stream()
		m, err := d.AllocAsync(s, def, n)
		b.ok(err)
		if err := d.FreeAsync(other, m); !errors.Is(err, hip.ErrorInvalidHandle) {
			b.Errorf("a free in another stream: %v", err)
		}
		b.ok(d.FreeAsync(s, m))
		if err := d.FreeAsync(s, m); !errors.Is(err, hip.ErrorInvalidValue) {
			b.Errorf("a second free: %v", err)
		}
	}
}

func testAllocations(b *bench) {
	if !dl.Fast {
		b.Skip("no fast path in this build")
	}
	d, s, e := b.d, b.stream(), b.event()
	m := b.alloc(driver.DeviceMem, 64)
	calls := map[string]func() error{
		"Record":      func() error { return d.Record(e, s) },
		"Query":       func() error { _, err := d.Query(e); return err },
		"StreamWait":  func() error { return d.StreamWait(s, e) },
		"Fill":        func() error { return d.Fill(s, m.Ptr, 0, 4, 4) },
		"FillStrided": func() error { return d.FillStrided(s, m.Ptr, 0x1020304, 8, 4) },
		"Copy":        func() error { return d.Copy(s, m.Ptr+32, m.Ptr, 32) },
	}
	if d.caps.Graphs {
		op := driver.NodeOp{Kind: driver.FillNode, Dst: m.Ptr, Width: 4, Count: 4}
		g, err := d.NewGraph()
		b.ok(err)
		n, err := d.AddNode(g, nil, &op)
		b.ok(err)
		x, err := d.Instantiate(g)
		b.ok(err)
		defer func() { b.ok(errors.Join(d.DestroyExec(x), d.DestroyGraph(g))) }()
		nodes, ops := []driver.Node{n}, []driver.NodeOp{op}
		calls["SetNode"] = func() error { return d.SetNode(x, n, &op) }
		calls["SetNodes"] = func() error { return d.SetNodes(x, nodes, ops) }
		calls["LaunchGraph"] = func() error { return d.LaunchGraph(s, x) }
	}
	for what, call := range calls {
		var sink error
		if n := testing.AllocsPerRun(50, func() { sink = call() }); n != 0 || sink != nil {
			b.Errorf("%s allocates %v times, %v", what, n, sink)
		}
		b.finish(s)
	}
}
