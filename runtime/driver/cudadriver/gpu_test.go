package cudadriver

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// The GPU tests of this package skip without a GPU, or fail if PUREGPU_TEST_REQUIRE_GPU is set.

// openGPU opens device 0 and binds it to the test's thread, which stays locked until the test ends.
func openGPU(t testing.TB) *device {
	t.Helper()
	drv, err := Open(cuda.Options{})
	var infos []driver.Info
	if err == nil {
		infos, err = drv.Devices()
	}
	if err == nil && len(infos) == 0 {
		err = errors.New("the driver has no device")
	}
	if err != nil {
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatalf("no GPU: %v", err)
		}
		t.Skipf("no GPU: %v", err)
	}
	runtime.LockOSThread()
	start := time.Now()
	d, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opened %s in %v", infos[0].Name, time.Since(start))
	ok(t, d.Bind())
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
	return d.(*device)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStream(t testing.TB, d driver.Device) driver.Stream {
	t.Helper()
	s, err := d.NewStream()
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyStream(s)) })
	return s
}

func newEvent(t testing.TB, d driver.Device) driver.Event {
	t.Helper()
	e, err := d.NewEvent()
	ok(t, err)
	t.Cleanup(func() { ok(t, d.DestroyEvent(e)) })
	return e
}

func alloc(t testing.TB, d driver.Device, kind driver.MemKind, size uint64) driver.Mem {
	t.Helper()
	m, err := d.Alloc(kind, size)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.Free(m)) })
	return m
}

func load(t testing.TB, d driver.Device, image []byte, kernel string) (driver.Function, driver.FuncInfo) {
	t.Helper()
	m, err := d.Load(image)
	ok(t, err)
	t.Cleanup(func() { ok(t, d.Unload(m)) })
	f, info, err := d.Function(m, kernel)
	ok(t, err)
	return f, info
}

// finish waits until the stream is idle.
func finish(t testing.TB, d driver.Device, s driver.Stream) {
	t.Helper()
	e := newEvent(t, d)
	ok(t, d.Record(e, s))
	for end := time.Now().Add(time.Minute); ; {
		done, err := d.Query(e)
		ok(t, err)
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the stream does not become idle")
		}
	}
}

// elsewhere runs f on another thread, which has no current context.
func elsewhere(t testing.TB, d *device, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- withoutContext(d.lib, f)
	}()
	ok(t, <-done)
}

const gpuPTX = `
.version 6.4
.target sm_52
.address_size 64

.visible .global .align 8 .b8 table[96];

// spin keeps the device busy for a number of nanoseconds.
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

// poke writes 1 to an address.
.visible .entry poke(.param .u64 poke_p)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;

	ld.param.u64 %rd1, [poke_p];
	mov.u32 %r1, 1;
	st.global.u32 [%rd1], %r1;
	ret;
}

// bump adds to a number with a separate load and store.
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

// odd has parameters of many sizes, and static shared memory.
.visible .entry odd(.param .u8 odd_a, .param .u64 odd_b, .param .align 16 .b8 odd_c[48], .param .u16 odd_d)
{
	.reg .b32 %r<2>;
	.shared .align 4 .b8 odd_s[1024];

	mov.u32 %r1, 1;
	st.volatile.shared.u32 [odd_s], %r1;
	ret;
}
`

func TestGPUInfo(t *testing.T) {
	d := openGPU(t)
	info, caps := d.Info(), d.Caps()
	t.Logf("%+v", info)
	t.Logf("%+v", caps)
	if info.WarpSize != 32 || info.Memory < 1<<28 || info.Name == "" || info.UUID == [16]byte{} || !strings.HasPrefix(info.Arch, "sm_") ||
		info.MaxThreads < 512 || info.MaxGrid[0] < 1<<16 || info.SharedOptIn < info.SharedMem {
		t.Error("this is not the Info of a GPU")
	}
	if want := strings.ToLower(info.PCI); info.PCI != want || len(info.PCI) != len("0000:3b:00.0") {
		t.Errorf("PCI address %q", info.PCI)
	}
	if info.Version < 11020 || info.Major < 3 || info.Clock <= 0 || info.MemoryBus <= 0 || info.L2 <= 0 || info.Registers <= 0 || info.ProcessorBlocks <= 0 ||
		info.ProcessorRegisters < info.Registers || info.ProcessorThreads < info.MaxThreads || info.ProcessorSharedMem < info.SharedOptIn || info.NUMANode < -1 {
		t.Error("these are not the facts of a GPU")
	}
	if info.MIG != strings.Contains(info.Name, " MIG ") {
		t.Errorf("%s: is an instance of MIG: %v", info.Name, info.MIG)
	}
	if !caps.MemInfo || !caps.Links || !caps.Occupancy || caps.PriorityRange[0] < caps.PriorityRange[1] {
		t.Error("the driver lacks facts that all drivers report")
	}
	if d.lib.Version() >= 13000 && (d.sets || !caps.KernelParams || !caps.Graphs || !caps.Timers) {
		t.Error("releases from 13.0 submit without a context, report parameters, and have graphs and timers")
	}
}

// TestGPUContext opens a device on a thread with another context.
func TestGPUContext(t *testing.T) {
	d := openGPU(t)
	elsewhere(t, d, func() error {
		other, err := d.lib.CtxCreateV2(0, d.id)
		if err != nil {
			return err
		}
		defer d.lib.CtxDestroy(other)
		drv, err := New(d.lib)
		if err != nil {
			return err
		}
		start := time.Now()
		again, err := drv.Open(0)
		if err != nil {
			return err
		}
		t.Logf("opened again in %v", time.Since(start))
		if ctx, err := d.lib.CtxGetCurrent(); ctx != other || err != nil {
			return fmt.Errorf("the context is %#x, want %#x; %v", ctx, other, err)
		}
		if again.(*device).ctx != d.ctx {
			return errors.New("a device has two primary contexts")
		}
		if err := again.Close(); err != nil {
			return err
		}
		if ctx, err := d.lib.CtxGetCurrent(); ctx != other || err != nil {
			return fmt.Errorf("after Close the context is %#x, want %#x; %v", ctx, other, err)
		}
		return nil
	})
	if ctx, err := d.lib.CtxGetCurrent(); ctx != d.ctx || err != nil {
		t.Errorf("the context is %#x, want %#x; %v", ctx, d.ctx, err)
	}
}

func TestGPUTransfers(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	const n = 1 << 16
	dev, host := alloc(t, d, driver.DeviceMem, n), alloc(t, d, driver.HostMem, n)
	out := unsafe.Slice((*byte)(host.Host), n)
	work := func() error {
		for i := range out {
			out[i] = byte(i * 7 >> 3)
		}
		return errors.Join(
			d.Upload(s, dev.Ptr, host.Host, n),
			d.Fill(s, dev.Ptr+4096, 0x11a1, 1, 1000),
			d.Fill(s, dev.Ptr+8192, 0x11b2c3, 2, 1000),
			d.Fill(s, dev.Ptr+12288, 0xd4e5f607, 4, 1000),
			d.Copy(s, dev.Ptr+n/2, dev.Ptr, n/2),
			d.Download(s, host.Host, dev.Ptr, n),
		)
	}
	check := func() {
		t.Helper()
		finish(t, d, s)
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
				t.Fatalf("byte %d is %#x, want %#x", i, got, want)
			}
		}
	}
	ok(t, work())
	check()
	elsewhere(t, d, work)
	check()
	// Copies and fills with device addresses reach pinned memory.
	ok(t, d.Fill(s, host.Ptr, 0x5a, 1, 10))
	ok(t, d.Copy(s, dev.Ptr, host.Ptr, 10))
	ok(t, d.Copy(s, host.Ptr+20, dev.Ptr, 10))
	finish(t, d, s)
	if out[0] != 0x5a || out[29] != 0x5a {
		t.Errorf("pinned memory has %#x", out[:30])
	}
	// Operations of size 0 succeed.
	ok(t, errors.Join(d.Fill(s, dev.Ptr, 0, 4, 0), d.Copy(s, dev.Ptr, host.Ptr, 0), d.Upload(s, dev.Ptr, nil, 0), d.Download(s, nil, dev.Ptr, 0)))

	if err := d.Fill(s, dev.Ptr+1, 0, 4, 1); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("an unaligned address: %v", err)
	}
	if m, err := d.Alloc(driver.DeviceMem, 1<<50); !errors.Is(err, driver.ErrOutOfMemory) || m != (driver.Mem{}) {
		t.Errorf("2^50 bytes: %+v, %v", m, err)
	}
}

func TestGPUManaged(t *testing.T) {
	d := openGPU(t)
	if !d.caps.Managed {
		t.Skip("no managed memory that both sides use")
	}
	s := newStream(t, d)
	m := alloc(t, d, driver.ManagedMem, 64<<10)
	words := unsafe.Slice((*uint32)(m.Host), 16<<10)
	words[1] = 7
	ok(t, d.Fill(s, m.Ptr+8, 9, 4, 100))
	finish(t, d, s)
	if words[1] != 7 || words[2] != 9 || words[101] != 9 {
		t.Errorf("managed memory has %v", words[:3])
	}
	if !d.caps.Prefetch {
		return
	}
	ok(t, d.Prefetch(s, m.Ptr, m.Size, driver.DeviceMem))
	ok(t, d.Fill(s, m.Ptr+8, 10, 4, 1))
	elsewhere(t, d, func() error { return d.Prefetch(s, m.Ptr, m.Size, driver.HostMem) })
	finish(t, d, s)
	if words[1] != 7 || words[2] != 10 || words[101] != 9 {
		t.Errorf("managed memory that was moved has %v", words[:3])
	}
	other := alloc(t, d, driver.DeviceMem, 64)
	if err := d.Prefetch(s, other.Ptr, 64, driver.HostMem); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("prefetch of other memory: %v", err)
	}
}

func TestGPURegister(t *testing.T) {
	d := openGPU(t)
	if !d.caps.HostRegister {
		t.Skip("no memory can be registered")
	}
	s := newStream(t, d)
	const n = 1 << 20
	mine := make([]byte, n) // heap memory does not move
	p, err := d.Register(unsafe.Pointer(&mine[0]), n)
	ok(t, err)
	ok(t, d.Fill(s, p+n/2, 0x77, 1, n/2))
	finish(t, d, s)
	if mine[n/2-1] != 0 || mine[n/2] != 0x77 || mine[n-1] != 0x77 {
		t.Error("the device does not reach the memory")
	}
	if _, err := d.Register(unsafe.Pointer(&mine[0]), n); !errors.Is(err, cuda.ErrorHostMemoryAlreadyRegistered) {
		t.Errorf("a second time: %v", err)
	}
	ok(t, d.Unregister(unsafe.Pointer(&mine[0])))
	if err := d.Unregister(unsafe.Pointer(&mine[0])); !errors.Is(err, cuda.ErrorHostMemoryNotRegistered) {
		t.Errorf("a second time: %v", err)
	}
	runtime.KeepAlive(mine)
}

// TestGPUEvents makes one stream wait for a slow one, and records the event again while the wait is
// pending.
func TestGPUEvents(t *testing.T) {
	d := openGPU(t)
	a, b := newStream(t, d), newStream(t, d)
	e, after := newEvent(t, d), newEvent(t, d)
	m, host := alloc(t, d, driver.DeviceMem, 4), alloc(t, d, driver.HostMem, 4)
	spin, _ := load(t, d, []byte(gpuPTX), "spin")
	if done, err := d.Query(e); !done || err != nil {
		t.Errorf("an event never recorded: %t, %v", done, err)
	}
	ns := new(uint64)
	*ns = 50e6
	one := [3]uint32{1, 1, 1}
	busy := driver.Launch{Function: spin, Grid: one, Block: one, Args: []unsafe.Pointer{unsafe.Pointer(ns)}}
	start := time.Now()
	ok(t, d.Fill(a, m.Ptr, 1, 4, 1))
	ok(t, d.Launch(a, &busy))
	ok(t, d.Fill(a, m.Ptr, 2, 4, 1))
	ok(t, d.Record(e, a))
	ok(t, d.StreamWait(b, e))
	ok(t, d.Download(b, host.Host, m.Ptr, 4))
	ok(t, d.Record(after, b))
	ok(t, d.Launch(a, &busy))
	ok(t, d.Record(e, a)) // the wait of stream b is for the first record
	if done, err := d.Query(after); done && time.Since(start) < 50*time.Millisecond || err != nil {
		t.Errorf("work after a wait is done at once: %t, %v", done, err)
	}
	for {
		done, err := d.Query(after)
		ok(t, err)
		if done {
			break
		}
	}
	if got := *(*uint32)(host.Host); got != 2 {
		t.Errorf("the second stream read %d, want 2", got)
	}
	if done, err := d.Query(e); done && time.Since(start) < 100*time.Millisecond || err != nil {
		t.Errorf("the second record is done with the first: %t, %v", done, err)
	}
	finish(t, d, a)
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("two kernels of 50 ms took %v", took)
	}
}

func TestGPUSaxpy(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	fn, info := load(t, d, kernels.Saxpy, "saxpy")
	if d.caps.KernelParams && !slices.Equal(info.Params, []int{8, 4, 8, 8}) || info.MaxThreads < 256 || info.Registers == 0 {
		t.Errorf("%+v", info)
	}
	count, factor := new(uint64), new(float32)
	*count, *factor = 100_001, 2
	host := alloc(t, d, driver.HostMem, 8**count)
	x := alloc(t, d, driver.DeviceMem, 4**count)
	y := alloc(t, d, driver.DeviceMem, 4**count)
	both := unsafe.Slice((*float32)(host.Host), 2**count)
	for i := range *count {
		both[i], both[*count+i] = float32(i%1000), float32(i%77)
	}
	ok(t, d.Upload(s, x.Ptr, host.Host, x.Size))
	ok(t, d.Upload(s, y.Ptr, unsafe.Add(host.Host, x.Size), y.Size))
	launch := &driver.Launch{
		Function: fn, Grid: [3]uint32{uint32(*count+255) / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []unsafe.Pointer{unsafe.Pointer(count), unsafe.Pointer(factor), unsafe.Pointer(&x.Ptr), unsafe.Pointer(&y.Ptr)},
	}
	times := 1
	ok(t, d.Launch(s, launch))
	elsewhere(t, d, func() error { return d.Launch(s, launch) })
	times++
	if dl.Fast {
		var sink error
		if n := testing.AllocsPerRun(100, func() { sink = d.Launch(s, launch) }); n != 0 || sink != nil {
			t.Errorf("Launch allocates %v times, %v", n, sink)
		}
		times += 101
	}
	ok(t, d.Download(s, unsafe.Add(host.Host, x.Size), y.Ptr, y.Size))
	finish(t, d, s)
	for i := range *count {
		if want := float32(i%77) + 2*float32(times)*float32(i%1000); both[*count+i] != want {
			t.Fatalf("y[%d] = %v, want %v", i, both[*count+i], want)
		}
	}
	launch.Block[0] = 4096
	if err := d.Launch(s, launch); !errors.Is(err, cuda.ErrorInvalidValue) || errors.Is(err, driver.ErrLost) {
		t.Errorf("a block of 4096 threads: %v", err)
	}
}

func TestGPUModule(t *testing.T) {
	d := openGPU(t)
	s := newStream(t, d)
	m, err := d.Load([]byte(gpuPTX))
	ok(t, err)
	defer func() { ok(t, d.Unload(m)) }()
	p, size, err := d.Global(m, "table")
	ok(t, err)
	if p == 0 || size != 96 {
		t.Errorf("the variable has %d bytes at %#x", size, p)
	}
	ok(t, d.Fill(s, p, 1, 1, size))
	if _, _, err := d.Global(m, "chair"); !errors.Is(err, cuda.ErrorNotFound) {
		t.Errorf("a missing variable: %v", err)
	}
	if _, _, err := d.Function(m, "chair"); !errors.Is(err, cuda.ErrorNotFound) {
		t.Errorf("a missing kernel: %v", err)
	}
	for _, name := range []string{"", "a\x00b"} {
		if _, _, err := d.Function(m, name); err == nil {
			t.Errorf("there is a kernel %q", name)
		}
	}
	odd, info, err := d.Function(m, "odd")
	ok(t, err)
	if d.caps.KernelParams && !slices.Equal(info.Params, []int{1, 8, 48, 2}) || info.SharedMem != 1024 {
		t.Errorf("%+v", info)
	}
	if d.lib.HasSymbol("cuFuncIsLoaded") {
		if state, err := d.lib.FuncIsLoaded(cuda.Function(odd)); state != cuda.FunctionLoadingStateLoaded || err != nil {
			t.Errorf("the kernel is %v, %v", state, err)
		}
	}
	// A launch may use all shared memory, and no more.
	args := make([]uint64, 8)
	a := unsafe.Pointer(&args[0])
	launch := &driver.Launch{
		Function: odd, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, SharedMem: uint32(d.info.SharedOptIn - info.SharedMem),
		Args: []unsafe.Pointer{a, a, a, a},
	}
	ok(t, d.Launch(s, launch))
	finish(t, d, s)
	launch.SharedMem++
	if err := d.Launch(s, launch); !errors.Is(err, cuda.ErrorInvalidValue) {
		t.Errorf("a byte too much of shared memory: %v", err)
	}
	_, info, err = d.Function(m, "spin")
	if err != nil || d.caps.KernelParams && !slices.Equal(info.Params, []int{8}) {
		t.Errorf("%+v, %v", info, err)
	}

	_, err = d.Load([]byte(strings.Replace(gpuPTX, "setp.lt.u64", "setp.wrong.u64", 1)))
	t.Logf("bad PTX: %v", err)
	if !errors.Is(err, cuda.ErrorInvalidPTX) || !strings.Contains(err.Error(), "ptxas") || !strings.Contains(err.Error(), "line ") {
		t.Errorf("bad PTX: %v", err)
	}
	_, err = d.Load([]byte(strings.Replace(gpuPTX, "6.4", "99.9", 1)))
	t.Logf("PTX of the future: %v", err)
	if !errors.Is(err, cuda.ErrorUnsupportedPTXVersion) {
		t.Errorf("PTX of the future: %v", err)
	}
	for name, image := range map[string][]byte{"cubin": cubin(), "fat binary": fatbin(64), "fat binary of two": fatbin(128, 64)} {
		_, err = d.Load(image)
		t.Logf("an empty %s: %v", name, err)
		if err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("an empty %s: %v", name, err)
		}
	}
	finish(t, d, s)
}

// TestGPULost loses the device, in a subprocess.
func TestGPULost(t *testing.T) {
	const env = "PUREGPU_TEST_LOSE_DEVICE"
	if os.Getenv(env) == "" {
		openGPU(t)
		exe, err := os.Executable()
		ok(t, err)
		cmd := exec.Command(exe, "-test.run=^TestGPULost$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1", "PUREGPU_TEST_REQUIRE_GPU=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	d := openGPU(t)
	s, err := d.NewStream()
	ok(t, err)
	e, err := d.NewEvent()
	ok(t, err)
	unused, err := d.NewEvent()
	ok(t, err)
	mod, err := d.Load([]byte(gpuPTX))
	ok(t, err)
	poke, _, err := d.Function(mod, "poke")
	ok(t, err)
	bad := new(uint64) // the kernel writes to address 0
	one := [3]uint32{1, 1, 1}
	ok(t, d.Launch(s, &driver.Launch{Function: poke, Grid: one, Block: one, Args: []unsafe.Pointer{unsafe.Pointer(bad)}}))
	err = d.Record(e, s)
	for end := time.Now().Add(time.Minute); err == nil; {
		if _, err = d.Query(e); err == nil && time.Now().After(end) {
			t.Fatal("the device is not lost")
		}
	}
	t.Logf("%v", err)
	if !errors.Is(err, driver.ErrLost) || !errors.Is(err, cuda.ErrorIllegalAddress) || errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("the error is %v", err)
	}
	_, newErr := d.NewEvent()
	_, allocErr := d.Alloc(driver.DeviceMem, 64)
	_, queryErr := d.Query(e)
	_, idleErr := d.Query(unused)
	for what, err := range map[string]error{
		"query": queryErr, "query of an event that was never recorded": idleErr, "fill": d.Fill(s, 0, 0, 1, 1), "wait": d.StreamWait(s, e), "new event": newErr, "alloc": allocErr,
		"unload": d.Unload(mod), "destroy event": d.DestroyEvent(e), "destroy stream": d.DestroyStream(s),
	} {
		t.Logf("then, %s: %v", what, err)
		if what[0] != 'd' && what != "unload" && !errors.Is(err, driver.ErrLost) {
			t.Errorf("then, %s: %v", what, err)
		}
	}
}

func BenchmarkGPU(b *testing.B) {
	d := openGPU(b)
	s, e := newStream(b, d), newEvent(b, d)
	m := alloc(b, d, driver.DeviceMem, 4096)
	fn, _ := load(b, d, []byte(emptyPTX), "empty")
	one := [3]uint32{1, 1, 1}
	launch := &driver.Launch{Function: fn, Grid: one, Block: one}
	type bench struct {
		name  string
		call  func() error
		bound bool // the thread must be bound
	}
	benches := []bench{
		{name: "Record", call: func() error { return d.Record(e, s) }},
		{name: "Query", call: func() error { _, err := d.Query(e); return err }},
		{name: "StreamWait", call: func() error { return d.StreamWait(s, e) }},
		{name: "Fill", call: func() error { return d.Fill(s, m.Ptr, 0, 4, 1024) }},
		{name: "Copy", call: func() error { return d.Copy(s, m.Ptr, m.Ptr+2048, 2048) }},
		{name: "Launch", call: func() error { return d.Launch(s, launch) }},
	}
	if d.caps.Pools {
		p := newPool(b, d, driver.PoolDesc{})
		ok(b, d.SetPoolAttr(p, driver.PoolThreshold, math.MaxUint64))
		benches = append(benches, bench{name: "AllocAsync and FreeAsync", call: func() error {
			m, err := d.AllocAsync(s, p, 4096)
			if err != nil {
				return err
			}
			return d.FreeAsync(s, m)
		}})
	}
	if d.caps.Graphs {
		op := &driver.NodeOp{Kind: driver.KernelNode, Launch: *launch}
		g := newGraph(b, d)
		var n driver.Node
		for range 10 {
			n = addNode(b, d, g, op, nodesOf(n)...)
		}
		x := instantiate(b, d, g)
		benches = append(benches, bench{name: "LaunchGraph of 10 kernels", call: func() error { return d.LaunchGraph(s, x) }},
			bench{name: "SetNode", call: func() error { return d.SetNode(x, n, op) }},
			bench{name: "Instantiate and DestroyExec", bound: true, call: func() error {
				x, err := d.Instantiate(g)
				if err != nil {
					return err
				}
				return d.DestroyExec(x)
			}})
	}
	for _, c := range benches {
		b.Run(c.name, func(b *testing.B) {
			// A sub-benchmark runs on its own goroutine, which needs a lock of its own.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if c.bound {
				ok(b, d.Bind())
				defer d.lib.CtxSetCurrent(0)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
		finish(b, d, s)
	}
}
