// Ncclrank sums a million floats with NCCL on the first CUDA device, as the only rank of a
// communicator, and checks each result. The program uses only the bindings cuda and nccl. With
// several ranks, one rank would get the communicator's unique id and send the id to the others.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
)

func main() {
	flag.Parse() // -h works without a GPU
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run opens both libraries, makes the first device current, and reduces on it.
func run() (err error) {
	gpu, err := cuda.Open(cuda.Options{})
	if err != nil {
		return err
	}
	lib, err := nccl.Open(nccl.Options{})
	if err != nil {
		return err
	}
	if err := gpu.Init(0); err != nil {
		return fmt.Errorf("start CUDA: %w", err)
	}
	dev, err := gpu.DeviceGet(0)
	if err != nil {
		return fmt.Errorf("get device 0: %w", err)
	}
	name, err := gpu.DeviceGetName(dev)
	if err != nil {
		return fmt.Errorf("get the device's name: %w", err)
	}

	// NCCL makes a communicator for the calling thread's current device, so stay on this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, err := gpu.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return fmt.Errorf("retain the primary context of %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, gpu.DevicePrimaryCtxRelease(dev)) }()
	if err := gpu.CtxSetCurrent(ctx); err != nil {
		return fmt.Errorf("make the context current: %w", err)
	}
	defer func() { err = errors.Join(err, gpu.CtxSetCurrent(0)) }()

	const n = 1 << 20
	if err := reduce(gpu, lib, n); err != nil {
		return err
	}
	fmt.Printf("ncclrank: %d elements by NCCL %s on %s: ok\n", n, nccl.FormatVersion(dl.Version(lib.Version())), name)
	return nil
}

// reduce sums n floats of the current device over all ranks of a communicator, and checks the
// result. With one rank the result equals the input.
func reduce(gpu *cuda.Library, lib *nccl.Library, n int) (err error) {
	id, err := lib.GetUniqueID()
	if err != nil {
		return fmt.Errorf("get a unique id: %w", explain(lib, 0, err))
	}
	comm := new(nccl.Comm) // on the heap: with nonblocking communicators NCCL writes to it later
	if err := lib.CommInitRank(comm, 1, id, 0); err != nil {
		return fmt.Errorf("make a communicator: %w", explain(lib, 0, err))
	}
	defer func() { err = errors.Join(err, lib.CommDestroy(*comm)) }()
	stream, err := gpu.StreamCreate(0)
	if err != nil {
		return fmt.Errorf("create a stream: %w", err)
	}
	defer func() { err = errors.Join(err, gpu.StreamDestroy(stream)) }()
	size := 4 * uint64(n)
	send, err := gpu.MemAlloc(size)
	if err != nil {
		return fmt.Errorf("allocate %d bytes: %w", size, err)
	}
	defer func() { err = errors.Join(err, gpu.MemFree(send)) }()
	recv, err := gpu.MemAlloc(size)
	if err != nil {
		return fmt.Errorf("allocate %d bytes: %w", size, err)
	}
	defer func() { err = errors.Join(err, gpu.MemFree(recv)) }()

	host := make([]float32, n)
	for i := range host {
		host[i] = float32(i) // exact up to 1<<24
	}
	if err := gpu.MemcpyHtoD(send, unsafe.Pointer(&host[0]), size); err != nil {
		return fmt.Errorf("copy to the device: %w", err)
	}
	err = lib.AllReduce(nccl.DevicePtr(send), nccl.DevicePtr(recv), uint64(n), nccl.Float32, nccl.Sum, *comm, nccl.CudaStream(stream))
	if err != nil {
		return fmt.Errorf("reduce: %w", explain(lib, *comm, err))
	}
	if err := gpu.StreamSynchronize(stream); err != nil {
		return fmt.Errorf("wait for the stream: %w", err)
	}
	clear(host)
	if err := gpu.MemcpyDtoH(unsafe.Pointer(&host[0]), recv, size); err != nil {
		return fmt.Errorf("copy from the device: %w", err)
	}
	for i, got := range host {
		if got != float32(i) {
			return fmt.Errorf("element %d of %d is %v, want %d", i, n, got, i)
		}
	}
	return nil
}

// explain adds NCCL's own text about its latest failure.
func explain(lib *nccl.Library, comm nccl.Comm, err error) error {
	if text, e := lib.GetLastError(comm); e == nil && text != "" {
		return fmt.Errorf("%w (%s)", err, text)
	}
	return err
}
