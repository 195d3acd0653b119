// Saxpy computes y = a*x + y for a million floats on the first CUDA device, and checks each result.
// It uses only package cuda, the CUDA driver API.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

//go:embed kernel.ptx
var ptx string

func main() {
	flag.Parse() // -h works without a GPU
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run makes the first device current, computes on it, and checks the result.
func run() (err error) {
	lib, err := cuda.Open(cuda.Options{})
	if err != nil {
		return err
	}
	if err := lib.Init(0); err != nil {
		return fmt.Errorf("start CUDA: %w", err)
	}
	dev, err := lib.DeviceGet(0)
	if err != nil {
		return fmt.Errorf("get device 0: %w", err)
	}
	name, err := lib.DeviceGetName(dev)
	if err != nil {
		return fmt.Errorf("get the device's name: %w", err)
	}
	ctx, err := lib.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return fmt.Errorf("retain the primary context of %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, lib.DevicePrimaryCtxRelease(dev)) }()

	// CUDA keeps the current context per thread, so stay on this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := lib.CtxSetCurrent(ctx); err != nil {
		return fmt.Errorf("make the context current: %w", err)
	}
	defer func() { err = errors.Join(err, lib.CtxSetCurrent(0)) }()

	// With small whole numbers every step is exact, so the device's result must equal the host's.
	const a = 3
	x, y := make([]float32, 1<<20), make([]float32, 1<<20)
	for i := range x {
		x[i], y[i] = float32(i%4096), float32(i%1000)
	}
	if err := saxpy(lib, a, x, y); err != nil {
		return err
	}
	for i := range y {
		if want := a*float32(i%4096) + float32(i%1000); y[i] != want {
			return fmt.Errorf("element %d of %d is %v on %s, want %v", i, len(y), y[i], name, want)
		}
	}
	fmt.Printf("saxpy: %d elements on %s: ok\n", len(y), name)
	return nil
}

// saxpy computes y = a*x + y on the current device. x and y have the same length, which is not 0.
func saxpy(lib *cuda.Library, a float32, x, y []float32) (err error) {
	image := append([]byte(ptx), 0) // the driver reads PTX up to a NUL
	module, err := lib.ModuleLoadData(unsafe.Pointer(&image[0]))
	if err != nil {
		return fmt.Errorf("load the module of the kernel: %w", err)
	}
	defer func() { err = errors.Join(err, lib.ModuleUnload(module)) }()
	kernel, err := lib.ModuleGetFunction(module, "saxpy")
	if err != nil {
		return fmt.Errorf("find the kernel saxpy in the module: %w", err)
	}

	n, size := uint64(len(x)), uint64(len(x))*4
	dx, err := lib.MemAlloc(size)
	if err != nil {
		return fmt.Errorf("allocate %d bytes for x: %w", size, err)
	}
	defer func() { err = errors.Join(err, lib.MemFree(dx)) }()
	dy, err := lib.MemAlloc(size)
	if err != nil {
		return fmt.Errorf("allocate %d bytes for y: %w", size, err)
	}
	defer func() { err = errors.Join(err, lib.MemFree(dy)) }()
	if err := lib.MemcpyHtoD(dx, unsafe.Pointer(&x[0]), size); err != nil {
		return fmt.Errorf("copy x to the device: %w", err)
	}
	if err := lib.MemcpyHtoD(dy, unsafe.Pointer(&y[0]), size); err != nil {
		return fmt.Errorf("copy y to the device: %w", err)
	}

	// LaunchKernel takes each argument's address, and copies the arguments before it returns.
	args := []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&a), unsafe.Pointer(&dx), unsafe.Pointer(&dy)}
	const block = 256
	grid := uint32((n + block - 1) / block)
	if err := lib.LaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, 0, args, nil); err != nil {
		return fmt.Errorf("launch saxpy: %w", err)
	}
	// The copy waits for the kernel, because both are on the default stream. So the copy also
	// returns the kernel's errors.
	if err := lib.MemcpyDtoH(unsafe.Pointer(&y[0]), dy, size); err != nil {
		return fmt.Errorf("run saxpy and copy y back: %w", err)
	}
	return nil
}
