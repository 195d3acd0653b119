//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A GPU is the first device of this machine. Its primary context is current on the test's thread
// until the test ends.
type GPU struct {
	t   testing.TB
	lib *cuda.Library
}

// OpenGPU returns the GPU. Without a GPU it skips the test, or fails the test if
// PUREGPU_TEST_REQUIRE_GPU is set.
func OpenGPU(t testing.TB) *GPU {
	t.Helper()
	lib, err := cuda.Open(cuda.Options{})
	if err == nil {
		err = lib.Init(0)
	}
	if err != nil {
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatalf("no GPU: %v", err)
		}
		t.Skipf("no GPU: %v", err)
	}
	g := &GPU{t, lib}
	dev, err := lib.DeviceGet(0)
	g.Check("DeviceGet", err)
	runtime.LockOSThread()
	context, err := lib.DevicePrimaryCtxRetain(dev)
	g.Check("DevicePrimaryCtxRetain", err)
	g.Check("CtxSetCurrent", lib.CtxSetCurrent(context))
	t.Cleanup(func() {
		lib.CtxSetCurrent(0)
		lib.DevicePrimaryCtxRelease(dev)
		runtime.UnlockOSThread()
	})
	return g
}

// Check ends the test if there is an error: the test is skipped if a library is missing on this
// machine, and fails otherwise.
func (g *GPU) Check(what string, err error) {
	g.t.Helper()
	if errors.Is(err, dl.ErrNotFound) {
		g.t.Skip(err)
	}
	if err != nil {
		g.t.Fatalf("%s: %v", what, err)
	}
}

// Alloc returns device memory that is freed when the test ends.
func (g *GPU) Alloc(bytes uint64) cuda.DevicePtr {
	g.t.Helper()
	p, err := g.lib.MemAlloc(max(bytes, 1))
	g.Check("MemAlloc", err)
	g.t.Cleanup(func() { g.lib.MemFree(p) })
	return p
}

// Upload returns device memory with a copy of data.
func Upload[T any](g *GPU, data ...T) cuda.DevicePtr {
	g.t.Helper()
	size := uint64(len(data)) * uint64(unsafe.Sizeof(data[0]))
	p := g.Alloc(size)
	g.Check("MemcpyHtoD", g.lib.MemcpyHtoD(p, unsafe.Pointer(&data[0]), size))
	return p
}

// Download waits for the device, and returns n elements of the device memory at p.
func Download[T any](g *GPU, p cuda.DevicePtr, n int) []T {
	g.t.Helper()
	g.Check("CtxSynchronize", g.lib.CtxSynchronize())
	data := make([]T, n)
	g.Check("MemcpyDtoH", g.lib.MemcpyDtoH(unsafe.Pointer(&data[0]), p, uint64(n)*uint64(unsafe.Sizeof(data[0]))))
	return data
}

// Same checks that results, which must be exact, are as wanted.
func Same[T comparable](g *GPU, what string, got []T, want ...T) {
	g.t.Helper()
	if !slices.Equal(got, want) {
		g.t.Errorf("%s is %v, want %v", what, got, want)
	}
}
