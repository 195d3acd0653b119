// Pipeline computes y = a*x + y on a GPU. It submits an upload, a kernel and a download at once, ordered by the values of a
// semaphore alone, and waits for the last of them.
//
// It runs on the GPU that there is, and otherwise on the simulated one; with -driver cuda it takes no other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/examples/internal/ondriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program with its arguments and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	return ondriver.Main("pipeline", args, stdout, stderr, simulation, pipeline)
}

func pipeline(ctx context.Context, d driver.Driver, w io.Writer) error {
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer dev.Close() // what was loaded and allocated goes with it
	code, err := dev.Load(kernels.Saxpy)
	if err != nil {
		return err
	}
	saxpy, err1 := code.Kernel("saxpy")
	mem, err2 := dev.Alloc(gpu.DeviceMem, 32)
	done, err3 := gpu.NewSemaphore(0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	in, out := []float32{1, 2, 3, 4, 10, 20, 30, 40}, make([]float32, 4) // x and y; the new y
	n, a, x, y := uint64(4), float32(2), mem.Ptr(), mem.Ptr()+16
	q := dev.Queue(0)
	err = errors.Join( // each returns at once; only the values order them, and the host takes no part in it
		q.Update(gpu.Order{Signal: at(done, 1)}, mem.All(), raw(in)),
		q.Dispatch(gpu.Order{Wait: at(done, 1), Signal: at(done, 2)}, gpu.Dispatch{
			Kernel: saxpy, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
			Args: []unsafe.Pointer{unsafe.Pointer(&n), unsafe.Pointer(&a), unsafe.Pointer(&x), unsafe.Pointer(&y)}}),
		q.Download(gpu.Order{Wait: at(done, 2), Signal: at(done, 3)}, raw(out), mem.Range(16, 16)))
	if err != nil {
		return err
	}
	if err = done.Wait(ctx, 3); err == nil {
		fmt.Fprintln(w, "pipeline:", out)
	}
	return err
}

// at is a list of one point.
func at(s *gpu.Semaphore, value uint64) []gpu.Point { return []gpu.Point{{Semaphore: s, Value: value}} }

// raw is the memory of floats.
func raw(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}
