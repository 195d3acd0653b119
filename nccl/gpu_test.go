package nccl

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// These tests need NCCL and a GPU. Without NCCL or a GPU they are skipped, or fail if
// PUREGPU_TEST_REQUIRE_GPU is set.

func skipNoGPU(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
		t.Fatalf("no GPU: %v", err)
	}
	t.Skipf("no GPU: %v", err)
}

func ok(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// openGPU opens both libraries and makes device 0 current on the test's thread, until the test
// ends.
func openGPU(t testing.TB) (*Library, *cuda.Library) {
	t.Helper()
	gpu, err := cuda.Open(cuda.Options{})
	if err != nil {
		skipNoGPU(t, err)
	}
	if err := gpu.Init(0); err != nil {
		skipNoGPU(t, err)
	}
	l, err := Open(Options{})
	if err != nil {
		skipNoGPU(t, err)
	}
	dev, err := gpu.DeviceGet(0)
	ok(t, "DeviceGet", err)
	runtime.LockOSThread()
	ctx, err := gpu.DevicePrimaryCtxRetain(dev)
	ok(t, "DevicePrimaryCtxRetain", err)
	ok(t, "CtxSetCurrent", gpu.CtxSetCurrent(ctx))
	t.Cleanup(func() {
		gpu.CtxSetCurrent(0)
		gpu.DevicePrimaryCtxRelease(dev)
		runtime.UnlockOSThread()
	})
	return l, gpu
}

func TestGPUSymbols(t *testing.T) {
	l, _ := openGPU(t)
	t.Logf("\n%s", l.Explain())
	v, err := l.GetVersion()
	if ok(t, "GetVersion", err); dl.Version(v) != l.Version() || v < floor {
		t.Errorf("version %d, at Open %d", v, l.Version())
	}
	for _, m := range l.Missing() {
		if m.Since <= l.Version() && !isRCCLSet(m.Set) {
			t.Errorf("%s, since %s, is missing: %s", m.Name, FormatVersion(m.Since), m.Why)
		}
	}
	for i := range symbols {
		if sym := &symbols[i]; l.Addr(i) != 0 && (sym.Since > l.Version() || isRCCLSet(sets[sym.Set].Name)) {
			t.Errorf("%s resolves, though the table says since %s, set %s", sym.Name, FormatVersion(sym.Since), sets[sym.Set].Name)
		}
	}
}

func isRCCLSet(set string) bool { return len(set) >= 4 && set[:4] == "rccl" }

func TestGPUTexts(t *testing.T) {
	l, _ := openGPU(t)
	for r := Success; r <= ErrorRemote; r++ {
		if text, err := l.GetErrorString(r); text == "" || err != nil {
			t.Errorf("GetErrorString(%v) = %q, %v", r, text, err)
		}
	}
	// A failure leaves an error text in the library.
	if err := l.CommInitRank(new(Comm), 0, UniqueID{}, 0); err == nil {
		t.Error("a communicator of no ranks")
	} else if !errors.Is(err, ErrorInvalidArgument) {
		t.Errorf("CommInitRank of no ranks: %v", err)
	}
	if !l.Has("last-error") {
		return
	}
	text, err := l.GetLastError(0)
	if ok(t, "GetLastError", err); text == "" {
		t.Error("no text for the last error")
	}
	t.Logf("last error: %s", text)
}

// TestGPUAllReduce makes communicators of one rank in every way, and reduces on each.
func TestGPUAllReduce(t *testing.T) {
	l, gpu := openGPU(t)
	stream, err := gpu.StreamCreate(cuda.StreamNonBlocking)
	ok(t, "StreamCreate", err)
	defer gpu.StreamDestroy(stream)
	id := func() UniqueID {
		id, err := l.GetUniqueID()
		if ok(t, "GetUniqueID", err); id == (UniqueID{}) {
			t.Error("a zero identity")
		}
		return id
	}
	for _, c := range []struct {
		name string
		make func() (Comm, error)
	}{
		{"ncclCommInitRank", func() (comm Comm, err error) {
			err = l.CommInitRank(&comm, 1, id(), 0)
			return comm, err
		}},
		{"ncclCommInitRankConfig", func() (comm Comm, err error) {
			config := l.NewConfig()
			config.Blocking = 1
			ok(t, "CheckConfig", l.CheckConfig(&config))
			err = l.CommInitRankConfig(&comm, 1, id(), 0, &config)
			return comm, err
		}},
		{"ncclCommInitRankConfig without settings", func() (comm Comm, err error) {
			err = l.CommInitRankConfig(&comm, 1, id(), 0, nil)
			return comm, err
		}},
		{"ncclCommInitRankConfig, nonblocking", func() (Comm, error) {
			config := l.NewConfig()
			config.Blocking = 0
			comm := new(Comm)
			err := l.CommInitRankConfig(comm, 1, id(), 0, &config)
			err = settle(l, *comm, err)
			return *comm, err
		}},
		{"ncclCommInitRankScalable", func() (Comm, error) { return l.CommInitRankScalable(1, 0, []UniqueID{id()}, nil) }},
		{"ncclCommInitAll", func() (Comm, error) {
			comms := make([]Comm, 1)
			err := l.CommInitAll(comms, []int32{0})
			return comms[0], err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A subtest runs on its own goroutine.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			dev, err := gpu.DeviceGet(0)
			ok(t, "DeviceGet", err)
			ctx, err := gpu.DevicePrimaryCtxRetain(dev)
			ok(t, "DevicePrimaryCtxRetain", err)
			defer gpu.DevicePrimaryCtxRelease(dev)
			ok(t, "CtxSetCurrent", gpu.CtxSetCurrent(ctx))
			defer gpu.CtxSetCurrent(0)

			comm, err := c.make()
			if errors.Is(err, dl.ErrSymbol) {
				t.Skip(err)
			}
			ok(t, c.name, err)
			defer func() { ok(t, "CommDestroy", settle(l, comm, l.CommDestroy(comm))) }()
			if n, err := l.CommCount(comm); n != 1 || err != nil {
				t.Errorf("CommCount = %d, %v", n, err)
			}
			if r, err := l.CommUserRank(comm); r != 0 || err != nil {
				t.Errorf("CommUserRank = %d, %v", r, err)
			}
			if d, err := l.CommCuDevice(comm); d != 0 || err != nil {
				t.Errorf("CommCuDevice = %d, %v", d, err)
			}
			if l.Has("abort") {
				if state, err := l.CommGetAsyncError(comm); state != Success || err != nil {
					t.Errorf("CommGetAsyncError = %v, %v", state, err)
				}
			}
			reduce(t, l, gpu, comm, stream)
		})
	}
}

// settle waits until a nonblocking communicator has finished its operation.
func settle(l *Library, comm Comm, err error) error {
	for end := time.Now().Add(time.Minute); err == ErrorInProgress && time.Now().Before(end); time.Sleep(time.Millisecond) {
		var state Result
		if state, err = l.CommGetAsyncError(comm); err == nil {
			err = state.asError()
		}
	}
	return err
}

func reduce(t *testing.T, l *Library, gpu *cuda.Library, comm Comm, stream cuda.Stream) {
	t.Helper()
	const n = 1000
	in, out := make([]float32, n), make([]float32, n)
	for i := range in {
		in[i] = float32(i) / 4
	}
	p, err := gpu.MemAlloc(8 * n)
	ok(t, "MemAlloc", err)
	defer gpu.MemFree(p)
	q := p + 4*n
	ok(t, "MemcpyHtoD", gpu.MemcpyHtoD(p, unsafe.Pointer(&in[0]), 4*n))
	ok(t, "CtxSynchronize", gpu.CtxSynchronize()) // the copy may return before it is done, and other streams do not wait for it
	ok(t, "GroupStart", l.GroupStart())
	ok(t, "AllReduce", settle(l, comm, l.AllReduce(DevicePtr(p), DevicePtr(q), n, Float32, Sum, comm, CudaStream(stream))))
	ok(t, "GroupEnd", settle(l, comm, l.GroupEnd()))
	ok(t, "StreamSynchronize", gpu.StreamSynchronize(stream))
	ok(t, "MemcpyDtoH", gpu.MemcpyDtoH(unsafe.Pointer(&out[0]), q, 4*n))
	for i := range out {
		if out[i] != in[i] {
			t.Fatalf("element %d is %v, want %v", i, out[i], in[i])
		}
	}
}

func TestGPUMemAlloc(t *testing.T) {
	l, gpu := openGPU(t)
	if !l.Has("registration") {
		t.Skip("this NCCL does not allocate")
	}
	p, err := l.MemAlloc(1 << 20)
	if ok(t, "MemAlloc", err); p == 0 {
		t.Fatal("MemAlloc gives no address")
	}
	ok(t, "MemsetD8", gpu.MemsetD8(cuda.DevicePtr(p), 1, 1<<20))
	ok(t, "CtxSynchronize", gpu.CtxSynchronize())
	ok(t, "MemFree", l.MemFree(p))
}
