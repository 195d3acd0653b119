package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/testdata/kernels"

	table "github.com/puregpu/puregpu/symbols"
)

// These tests need a GPU. They skip without one, or fail if PUREGPU_TEST_REQUIRE_GPU is set.

func skipNoGPU(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
		t.Fatalf("no GPU: %v", err)
	}
	t.Skipf("no GPU: %v", err)
}

func openGPU(t testing.TB) (*Library, Device) {
	t.Helper()
	l, err := Open(Options{})
	if err != nil {
		skipNoGPU(t, err)
	}
	if err := l.Init(0); err != nil {
		skipNoGPU(t, err)
	}
	dev, err := l.DeviceGet(0)
	ok(t, "DeviceGet", err)
	return l, dev
}

// openContext makes the primary context of device 0 current on the test's thread, until the test
// ends.
func openContext(t testing.TB) (*Library, Device, Context) {
	t.Helper()
	l, dev := openGPU(t)
	runtime.LockOSThread()
	ctx, err := l.DevicePrimaryCtxRetain(dev)
	ok(t, "DevicePrimaryCtxRetain", err)
	ok(t, "CtxSetCurrent", l.CtxSetCurrent(ctx))
	t.Cleanup(func() {
		l.CtxSetCurrent(0)
		l.DevicePrimaryCtxRelease(dev)
		runtime.UnlockOSThread()
	})
	return l, dev, ctx
}

func ok(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func need(t testing.TB, l *Library, sets ...string) {
	t.Helper()
	for _, s := range sets {
		if !l.Has(s) {
			t.Skipf("CUDA %s lacks functions of the set %s", FormatVersion(l.Version()), s)
		}
	}
}

func newStream(t testing.TB, l *Library) Stream {
	t.Helper()
	s, err := l.StreamCreate(StreamNonBlocking)
	ok(t, "StreamCreate", err)
	t.Cleanup(func() { l.StreamDestroy(s) })
	return s
}

func load(t testing.TB, l *Library, ptx []byte, name string) Function {
	t.Helper()
	mod, err := l.ModuleLoadData(unsafe.Pointer(&ptx[0]))
	ok(t, "ModuleLoadData", err)
	t.Cleanup(func() { l.ModuleUnload(mod) })
	f, err := l.ModuleGetFunction(mod, name)
	ok(t, "ModuleGetFunction", err)
	return f
}

func alloc(t testing.TB, l *Library, size uint64) DevicePtr {
	t.Helper()
	p, err := l.MemAlloc(size)
	ok(t, "MemAlloc", err)
	t.Cleanup(func() { l.MemFree(p) })
	return p
}

// spinPTX is a kernel that keeps a device busy for a number of nanoseconds.
const spinPTX = `
.version 6.4
.target sm_52
.address_size 64

.visible .entry spin(.param .u64 spin_ns)
{
	.reg .pred %p<2>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [spin_ns];
	mov.u64 %rd2, %globaltimer;
$again:
	mov.u64 %rd3, %globaltimer;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p1, %rd4, %rd1;
	@%p1 bra $again;
	ret;
}
` + "\x00"

// absent lists functions that drivers may lack although they are new enough, each with a reason.
var absent = map[string]string{}

func TestGPUSymbols(t *testing.T) {
	l, _ := openGPU(t)
	t.Logf("\n%s", l.Explain())
	tab, err := table.Load("cuda")
	ok(t, "symbol table", err)
	deprecated := map[string]bool{}
	for _, f := range tab.Funcs {
		deprecated[f.Symbol] = f.Deprecated
	}
	for _, m := range l.Missing() {
		switch reason := absent[m.Name]; {
		case m.Since > l.Version():
		case deprecated[m.Name] || reason != "":
			t.Logf("%s, since %s, is missing: %s; %s", m.Name, FormatVersion(m.Since), m.Why, reason)
		default:
			t.Errorf("%s, since %s, is missing: %s", m.Name, FormatVersion(m.Since), m.Why)
		}
	}
	for i := range symbols {
		if sym := &symbols[i]; sym.Since > l.Version() && l.Addr(i) != 0 {
			t.Errorf("%s resolves, though the table says since %s", sym.Name, FormatVersion(sym.Since))
		}
	}
}

// TestGPUProcAddress compares the functions that the driver returns with the functions that the
// loader finds under the exact exported name.
func TestGPUProcAddress(t *testing.T) {
	l, _ := openGPU(t)
	need(t, l, "proc-address")
	s := spec
	s.Resolve = nil
	plain := new(Library)
	ok(t, "Open", plain.Library.Open(&s, plain.fns[:], Options{}))
	differ, same := 0, 0
	byAPI := map[string][]int{}
	for i := range symbols {
		a, b := l.Addr(i), plain.Addr(i)
		switch {
		case a == b:
			same++
		default:
			differ++
			t.Logf("%s (%s at %s): the driver says %#x, the loader %#x", symbols[i].Name, symbols[i].API, FormatVersion(symbols[i].Since), a, b)
		}
		if symbols[i].API != "" && a != 0 {
			byAPI[symbols[i].API] = append(byAPI[symbols[i].API], i)
		}
	}
	t.Logf("%d functions are the same, %d differ", same, differ)
	// If two ABIs have different addresses for the loader, they must have different addresses here.
	for api, is := range byAPI {
		for n, i := range is {
			for _, j := range is[:n] {
				if l.Addr(i) == l.Addr(j) && plain.Addr(i) != plain.Addr(j) {
					t.Errorf("%s: %s and %s are one function", api, symbols[i].Name, symbols[j].Name)
				}
			}
		}
	}
}

func TestGPUDevice(t *testing.T) {
	l, dev := openGPU(t)
	v, err := l.DriverGetVersion()
	if ok(t, "DriverGetVersion", err); dl.Version(v) != l.Version() {
		t.Errorf("version %d, at Open %d", v, l.Version())
	}
	n, err := l.DeviceGetCount()
	if ok(t, "DeviceGetCount", err); n < 1 {
		t.Errorf("%d devices", n)
	}
	name, err := l.DeviceGetName(dev)
	if ok(t, "DeviceGetName", err); name == "" || strings.ContainsRune(name, 0) || strings.TrimSpace(name) != name {
		t.Errorf("name %q", name)
	}
	bytes, err := l.DeviceTotalMem(dev)
	if ok(t, "DeviceTotalMem", err); bytes < 1<<28 {
		t.Errorf("%d bytes of memory", bytes)
	}
	warp, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, dev)
	if ok(t, "DeviceGetAttribute", err); warp != 32 {
		t.Errorf("warps of %d threads", warp)
	}
	uuid, err := l.DeviceGetUuidV1(dev)
	if ok(t, "DeviceGetUuidV1", err); uuid == (UUID{}) {
		t.Error("a zero UUID")
	}
	bus, err := l.DeviceGetPCIBusId(dev)
	ok(t, "DeviceGetPCIBusId", err)
	back, err := l.DeviceGetByPCIBusId(bus)
	if ok(t, "DeviceGetByPCIBusId", err); back != dev {
		t.Errorf("%s is device %d, not %d", bus, back, dev)
	}
	t.Logf("%s at %s, %d MiB, CUDA %s", name, bus, bytes>>20, FormatVersion(l.Version()))
	if _, err := l.DeviceGet(n); err != ErrorInvalidDevice {
		t.Errorf("device %d: %v", n, err)
	}
	if _, err := l.DeviceGetAttribute(DeviceAttribute(1<<20), dev); err != ErrorInvalidValue {
		t.Errorf("attribute 1<<20: %v", err)
	}
}

// TestGPUErrorNames compares the name of every code in the table with the driver's own name.
func TestGPUErrorNames(t *testing.T) {
	l, _ := openGPU(t)
	for _, r := range known() {
		name, err := l.GetErrorName(r)
		if err != nil {
			t.Logf("%s is newer than the driver: %v", r.Name(), err)
			continue
		}
		if name != r.Name() {
			t.Errorf("%d is %s to the driver and %s to the table", int32(r), name, r.Name())
		}
		if text, err := l.GetErrorString(r); text == "" || err != nil {
			t.Errorf("%s: text %q, %v", name, text, err)
		}
	}
	if name, err := l.GetErrorName(12345); err != ErrorInvalidValue {
		t.Errorf("code 12345 is %q, %v", name, err)
	}
}

func TestGPUMemory(t *testing.T) {
	l, _, _ := openContext(t)
	const n = 1 << 20
	a, b := alloc(t, l, n), alloc(t, l, n)
	in, out := make([]byte, n), make([]byte, n)
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	ok(t, "MemcpyHtoD", l.MemcpyHtoD(a, unsafe.Pointer(&in[0]), n))
	ok(t, "MemcpyDtoD", l.MemcpyDtoD(b, a, n))
	ok(t, "MemcpyDtoH", l.MemcpyDtoH(unsafe.Pointer(&out[0]), b, n))
	if !slices.Equal(in, out) {
		t.Error("what comes back is not what went in")
	}
	ok(t, "MemsetD8", l.MemsetD8(b+16, 0xa5, n-32))
	ok(t, "MemcpyDtoH", l.MemcpyDtoH(unsafe.Pointer(&out[0]), b, n))
	for i, c := range out {
		want := byte(0xa5)
		if i < 16 || i >= n-16 {
			want = in[i]
		}
		if c != want {
			t.Fatalf("byte %d is %#x, want %#x", i, c, want)
		}
	}
	free, total, err := l.MemGetInfo()
	if ok(t, "MemGetInfo", err); free == 0 || free > total {
		t.Errorf("%d of %d bytes are free", free, total)
	}
	if p, err := l.MemAlloc(1 << 60); p != 0 || !errors.Is(err, ErrorOutOfMemory) {
		t.Errorf("MemAlloc of 2^60 bytes = %#x, %v", p, err)
	}
	base, size, err := l.MemGetAddressRange(a + 100)
	if ok(t, "MemGetAddressRange", err); base != a || size != n {
		t.Errorf("%#x is in %d bytes at %#x, want %d at %#x", a+100, size, base, n, a)
	}
}

// TestGPUContexts makes a context with every ABI of cuCtxCreate.
func TestGPUContexts(t *testing.T) {
	l, dev := openGPU(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []struct {
		name   string
		create func() (Context, error)
	}{
		{"cuCtxCreate", func() (Context, error) { return l.CtxCreateV1(0, dev) }},
		{"cuCtxCreate_v2", func() (Context, error) { return l.CtxCreateV2(0, dev) }},
		{"cuCtxCreate_v3", func() (Context, error) { return l.CtxCreateV3(nil, 0, dev) }},
		{"cuCtxCreate_v4", func() (Context, error) { return l.CtxCreate(new(CtxCreateParams), 0, dev) }},
	} {
		ctx, err := c.create()
		if errors.Is(err, dl.ErrSymbol) {
			t.Logf("%s: %v", c.name, err)
			continue
		}
		if err != nil || ctx == 0 {
			t.Errorf("%s = %#x, %v", c.name, ctx, err)
			continue
		}
		if got, err := l.CtxGetCurrent(); got != ctx || err != nil {
			t.Errorf("%s: the current context is %#x, %v, not %#x", c.name, got, err, ctx)
		}
		if got, err := l.CtxGetDevice(); got != dev || err != nil {
			t.Errorf("%s: on device %d, %v", c.name, got, err)
		}
		v, err := l.CtxGetApiVersion(ctx)
		t.Logf("%s: API version %d, %v", c.name, v, err)
		if err := l.CtxDestroy(ctx); err != nil {
			t.Errorf("%s: CtxDestroy: %v", c.name, err)
		}
	}
}

func TestGPUNotReady(t *testing.T) {
	l, _, _ := openContext(t)
	s := newStream(t, l)
	spin := load(t, l, []byte(spinPTX), "spin")
	ev, err := l.EventCreate(EventDisableTiming)
	ok(t, "EventCreate", err)
	defer l.EventDestroy(ev)
	ns := uint64(200 * time.Millisecond)
	ok(t, "LaunchKernel", l.LaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, []unsafe.Pointer{unsafe.Pointer(&ns)}, nil))
	ok(t, "EventRecord", l.EventRecord(ev, s))
	if err := l.StreamQuery(s); err != ErrorNotReady {
		t.Errorf("StreamQuery of a busy stream: %v", err)
	}
	if err := l.EventQuery(ev); !errors.Is(err, ErrorNotReady) {
		t.Errorf("EventQuery before the event: %v", err)
	}
	if dl.Fast {
		var sink error
		if n := testing.AllocsPerRun(100, func() { sink = l.EventQuery(ev) }); n != 0 {
			t.Errorf("EventQuery allocates %v times, with %v", n, sink)
		}
	}
	ok(t, "StreamSynchronize", l.StreamSynchronize(s))
	ok(t, "StreamQuery", l.StreamQuery(s))
	ok(t, "EventQuery", l.EventQuery(ev))
}

// A saxpy holds x and y on the device, and the kernel's parameters in memory that does not move.
type saxpy struct {
	fn     Function
	n      uint64
	x, y   []float32
	dx, dy DevicePtr
	params []unsafe.Pointer
}

func newSaxpy(t testing.TB, l *Library, n uint64, a float32) *saxpy {
	t.Helper()
	p := &saxpy{fn: load(t, l, kernels.Saxpy, "saxpy"), n: n, x: make([]float32, n), y: make([]float32, n)}
	for i := range p.x {
		p.x[i], p.y[i] = float32(i%1000), float32(i%77)
	}
	p.dx, p.dy = alloc(t, l, 4*n), alloc(t, l, 4*n)
	ok(t, "MemcpyHtoD", l.MemcpyHtoD(p.dx, unsafe.Pointer(&p.x[0]), 4*n))
	ok(t, "MemcpyHtoD", l.MemcpyHtoD(p.dy, unsafe.Pointer(&p.y[0]), 4*n))
	factor := new(float32)
	*factor = a
	p.params = []unsafe.Pointer{unsafe.Pointer(&p.n), unsafe.Pointer(factor), unsafe.Pointer(&p.dx), unsafe.Pointer(&p.dy)}
	return p
}

func (p *saxpy) blocks() uint32 { return uint32((p.n + 255) / 256) }

// check compares y on the device with p.y + a*p.x, computed on the host.
func (p *saxpy) check(t testing.TB, l *Library, a float32) {
	t.Helper()
	got := make([]float32, p.n)
	ok(t, "MemcpyDtoH", l.MemcpyDtoH(unsafe.Pointer(&got[0]), p.dy, 4*p.n))
	for i := range got {
		if want := p.y[i] + a*p.x[i]; got[i] != want {
			t.Fatalf("y[%d] = %v, want %v", i, got[i], want)
		}
	}
}

func TestGPULaunchKernel(t *testing.T) {
	l, _, _ := openContext(t)
	s := newStream(t, l)
	p := newSaxpy(t, l, 100_001, 2)
	launch := func() error { return l.LaunchKernel(p.fn, p.blocks(), 1, 1, 256, 1, 1, 0, s, p.params, nil) }
	ok(t, "LaunchKernel", launch())
	ok(t, "StreamSynchronize", l.StreamSynchronize(s))
	p.check(t, l, 2)
	if dl.Fast {
		var sink error
		if n := testing.AllocsPerRun(100, func() { sink = launch() }); n != 0 || sink != nil {
			t.Errorf("LaunchKernel allocates %v times, %v", n, sink)
		}
		ok(t, "StreamSynchronize", l.StreamSynchronize(s))
		p.check(t, l, 2*102)
	}
	if err := l.LaunchKernel(p.fn, 1, 1, 1, 4096, 1, 1, 0, s, p.params, nil); err != ErrorInvalidValue {
		t.Errorf("a block of 4096 threads: %v", err)
	}
}

func TestGPULaunchKernelEx(t *testing.T) {
	l, _, _ := openContext(t)
	need(t, l, "launch-attributes")
	p := newSaxpy(t, l, 5000, 3)
	config := LaunchConfig{GridDimX: p.blocks(), GridDimY: 1, GridDimZ: 1, BlockDimX: 256, BlockDimY: 1, BlockDimZ: 1, HStream: newStream(t, l)}
	ok(t, "LaunchKernelEx", l.LaunchKernelEx(&config, p.fn, p.params, nil))
	ok(t, "StreamSynchronize", l.StreamSynchronize(config.HStream))
	p.check(t, l, 3)
}

// TestGPUGraph launches a graph of three kernels in a row, twice.
func TestGPUGraph(t *testing.T) {
	l, _, _ := openContext(t)
	need(t, l, "graphs", "graphs-12.0")
	s := newStream(t, l)
	p := newSaxpy(t, l, 10_000, 1)
	g, err := l.GraphCreate(0)
	ok(t, "GraphCreate", err)
	defer l.GraphDestroy(g)
	node := &KernelNodeParams{
		Func: p.fn, GridDimX: p.blocks(), GridDimY: 1, GridDimZ: 1, BlockDimX: 256, BlockDimY: 1, BlockDimZ: 1,
		KernelParams: &p.params[0],
	}
	var after []GraphNode
	for range 3 {
		n, err := l.GraphAddKernelNode(g, after, node)
		ok(t, "GraphAddKernelNode", err)
		after = []GraphNode{n}
	}
	if n, err := l.GraphGetNodes(g, nil); n != 3 || err != nil {
		t.Errorf("the graph has %d nodes, %v", n, err)
	}
	nodes := make([]GraphNode, 5)
	if n, err := l.GraphGetNodes(g, nodes); n != 3 || err != nil || !slices.Contains(nodes, after[0]) {
		t.Errorf("%d nodes, %v: %#x", n, err, nodes)
	}
	if typ, err := l.GraphNodeGetType(after[0]); typ != GraphNodeTypeKernel || err != nil {
		t.Errorf("the node is a %v, %v", typ, err)
	}
	exec, err := l.GraphInstantiateWithFlags(g, 0)
	ok(t, "GraphInstantiateWithFlags", err)
	defer l.GraphExecDestroy(exec)
	for range 2 {
		ok(t, "GraphLaunch", l.GraphLaunch(exec, s))
	}
	ok(t, "StreamSynchronize", l.StreamSynchronize(s))
	p.check(t, l, 6)
}

func TestGPUMemPool(t *testing.T) {
	l, dev, _ := openContext(t)
	need(t, l, "memory-pools")
	s := newStream(t, l)
	const n = 1 << 16
	host, err := l.MemHostAlloc(n, 0)
	ok(t, "MemHostAlloc", err)
	defer l.MemFreeHost(host)
	out := unsafe.Slice((*byte)(host), n)
	use := func(p DevicePtr, fill byte) {
		t.Helper()
		ok(t, "MemsetD8Async", l.MemsetD8Async(p, fill, n, s))
		ok(t, "MemcpyDtoHAsync", l.MemcpyDtoHAsync(host, p, n, s))
		ok(t, "MemFreeAsync", l.MemFreeAsync(p, s))
		ok(t, "StreamSynchronize", l.StreamSynchronize(s))
		if out[0] != fill || out[n-1] != fill {
			t.Errorf("memory from %#x has %#x and %#x, want %#x", p, out[0], out[n-1], fill)
		}
	}
	p, err := l.MemAllocAsync(n, s)
	ok(t, "MemAllocAsync", err)
	use(p, 0x11)

	pool, err := l.MemPoolCreate(&MemPoolProps{AllocType: MemAllocationTypePinned, Location: MemLocation{Type: MemLocationTypeDevice, Id: int32(dev)}})
	ok(t, "MemPoolCreate", err)
	defer func() { ok(t, "MemPoolDestroy", l.MemPoolDestroy(pool)) }()
	threshold, got := uint64(1<<30), uint64(0)
	ok(t, "MemPoolSetAttribute", l.MemPoolSetAttribute(pool, MemPoolAttrReleaseThreshold, unsafe.Pointer(&threshold)))
	ok(t, "MemPoolGetAttribute", l.MemPoolGetAttribute(pool, MemPoolAttrReleaseThreshold, unsafe.Pointer(&got)))
	if got != threshold {
		t.Errorf("release threshold %d, want %d", got, threshold)
	}
	p, err = l.MemAllocFromPoolAsync(n, pool, s)
	ok(t, "MemAllocFromPoolAsync", err)
	use(p, 0x22)
	def, err := l.DeviceGetDefaultMemPool(dev)
	if ok(t, "DeviceGetDefaultMemPool", err); def == 0 || def == pool {
		t.Errorf("the default pool is %#x", def)
	}
}

func TestGPUTensorMap(t *testing.T) {
	l, dev, _ := openContext(t)
	need(t, l, "tensor-maps")
	major, err := l.DeviceGetAttribute(DeviceAttributeComputeCapabilityMajor, dev)
	if ok(t, "DeviceGetAttribute", err); major < 9 {
		t.Skipf("a device of compute capability %d has no tensor memory accelerator", major)
	}
	p := alloc(t, l, 64*64*4)
	encode := func(m *TensorMap, box []uint32) error {
		return l.TensorMapEncodeTiled(m, TensorMapDataTypeFloat32, p, []uint64{64, 64}, []uint64{64 * 4}, box, []uint32{1, 1},
			TensorMapInterleaveNone, TensorMapSwizzleNone, TensorMapL2PromotionNone, TensorMapFloatOOBFillNone)
	}
	m := NewTensorMap()
	ok(t, "TensorMapEncodeTiled", encode(m, []uint32{16, 16}))
	if *m == (TensorMap{}) {
		t.Error("the tensor map is still zero")
	}
	if err := encode(m, []uint32{1024, 16}); err != ErrorInvalidValue {
		t.Errorf("a box of 1024 elements: %v", err)
	}
	if _, is := errors.AsType[*dl.LengthError](encode(m, []uint32{16})); !is {
		t.Error("a box of one dimension for a tensor of two is accepted")
	}
}

// TestGPUOccupancyCallback tests a call in which the driver calls back into Go.
func TestGPUOccupancyCallback(t *testing.T) {
	l, _, _ := openContext(t)
	need(t, l, "occupancy")
	fn := load(t, l, kernels.Saxpy, "saxpy")
	var calls atomic.Int32
	cb, err := dl.Callback(func(blockSize int32) uintptr {
		calls.Add(1)
		testlib.Deep(2000)
		return uintptr(blockSize) // one byte of shared memory per thread
	})
	ok(t, "Callback", err)
	grid, block, err := l.OccupancyMaxPotentialBlockSize(fn, OccupancyB2DSize(cb), 0, 0)
	ok(t, "OccupancyMaxPotentialBlockSize", err)
	if grid < 1 || block < 32 || block%32 != 0 || calls.Load() == 0 {
		t.Errorf("grid %d, block %d, after %d callbacks", grid, block, calls.Load())
	}
	grid, block, err = l.OccupancyMaxPotentialBlockSize(fn, 0, 0, 128)
	if err != nil || grid < 1 || block != 128 {
		t.Errorf("without a callback: grid %d, block %d, %v", grid, block, err)
	}
}

// TestGPULogs registers a function that the driver runs inside a failing call, on the caller's
// goroutine. The function moves the stack. The results must still arrive.
func TestGPULogs(t *testing.T) {
	l, dev, _ := openContext(t)
	need(t, l, "logs")
	type record struct {
		data  uintptr
		level LogLevel
		text  string
	}
	var mu sync.Mutex
	var records []record
	cb, err := dl.Callback(func(data uintptr, level uint32, message unsafe.Pointer, length uintptr) {
		testlib.Deep(5000)
		mu.Lock()
		defer mu.Unlock()
		records = append(records, record{data, LogLevel(level), string(unsafe.Slice((*byte)(message), length))})
	})
	ok(t, "Callback", err)
	h, err := l.LogsRegisterCallback(LogsCallback(cb), 4711)
	ok(t, "LogsRegisterCallback", err)
	// If the function stayed registered, other tests' calls on the fast path could run it.
	defer func() { ok(t, "LogsUnregisterCallback", l.LogsUnregisterCallback(h)) }()

	p := newSaxpy(t, l, 1, 1)
	garbage := []byte("this is not PTX\x00")
	for name, c := range map[string]struct {
		f    func() error
		want error
	}{
		"LaunchKernel":   {func() error { return l.LaunchKernel(p.fn, 1, 1, 1, 4096, 1, 1, 0, 0, p.params, nil) }, ErrorInvalidValue},
		"ModuleLoadData": {func() error { _, err := l.ModuleLoadData(unsafe.Pointer(&garbage[0])); return err }, nil},
		"MemFree":        {func() error { return l.MemFree(12345) }, ErrorInvalidValue},
		"MemAlloc":       {func() error { _, err := l.MemAlloc(0); return err }, ErrorInvalidValue},
	} {
		// Each call runs on a new goroutine, which has a small stack, and on a thread of its own
		// with the context.
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ctx, err := l.DevicePrimaryCtxRetain(dev)
			if err == nil {
				err = l.CtxSetCurrent(ctx)
			}
			if err == nil {
				err = c.f()
			}
			l.CtxSetCurrent(0)
			l.DevicePrimaryCtxRelease(dev)
			done <- err
		}()
		if err := <-done; err == nil || c.want != nil && err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(records) == 0 {
		t.Error("nothing was logged")
	}
	for _, r := range records {
		t.Logf("%v: %s", r.level, r.text)
		if r.data != 4711 || r.text == "" || r.level.String() == "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestGPUStackMoves makes calls while goroutines' stacks grow and shrink and the garbage collector
// runs.
func TestGPUStackMoves(t *testing.T) {
	l, dev, _ := openContext(t)
	s := newStream(t, l)
	ev, err := l.EventCreate(EventDisableTiming)
	ok(t, "EventCreate", err)
	defer l.EventDestroy(ev)
	ok(t, "EventRecord", l.EventRecord(ev, s))
	ok(t, "StreamSynchronize", l.StreamSynchronize(s))
	stop := make(chan bool)
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC() // also shrinks stacks
			}
		}
	})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				testlib.Deep(1 + (i*37+g)%3000)
				if err := l.EventQuery(ev); err != nil {
					t.Errorf("EventQuery: %v", err)
					return
				}
				if warp, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, dev); warp != 32 || err != nil {
					t.Errorf("DeviceGetAttribute = %d, %v", warp, err)
					return
				}
				if _, err := l.DeviceGet(1 << 20); err != ErrorInvalidDevice {
					t.Errorf("DeviceGet: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	collector.Wait()
}

// TestGPUSearch looks for the driver in a process that has not loaded one. The first file with the
// driver's name is another library. Open must skip it and take the system's driver.
func TestGPUSearch(t *testing.T) {
	const child = "PUREGPU_TEST_SEARCH"
	if dir := os.Getenv(child); dir != "" {
		l, err := Open(Options{Dirs: []string{dir}})
		ok(t, "Open", err)
		t.Log("\n" + l.Explain())
		as := l.Attempts()
		if len(as) < 2 || !errors.Is(as[0].Err, dl.ErrTooOld) || as[len(as)-1].Err != nil || l.Path() != as[len(as)-1].File || filepath.Dir(l.Path()) == dir {
			t.Errorf("took %s after %v", l.Path(), as)
		}
		ok(t, "Init", l.Init(0))
		return
	}
	if os.Getenv(spec.Env) != "" || runtime.GOOS != "linux" {
		t.Skipf("%s names the driver, or this is not Linux", spec.Env)
	}
	openGPU(t)
	var other []byte
	for _, dir := range []string{"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"} {
		if data, err := os.ReadFile(dir + "/libm.so.6"); err == nil {
			other = data
			break
		}
	}
	if other == nil {
		t.Skip("no libm.so.6 to copy")
	}
	dir := t.TempDir()
	ok(t, "copy", os.WriteFile(filepath.Join(dir, "libcuda.so.1"), other, 0o777))
	program, err := os.Executable()
	ok(t, "find the program", err)
	cmd := exec.Command(program, "-test.run=^TestGPUSearch$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	ok(t, "search in a process of its own", err)
}
