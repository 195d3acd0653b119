// Ncclrank has NCCL reduce a million floats on the first CUDA device, by sum and by average, and checks every one. It
// makes its communicator, of one rank, in each of three ways.
//
// Without a GPU or NCCL it says what is missing and ends well; with -require-gpu it fails.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/examples/internal/example"
)

func main() { os.Exit(example.Main("ncclrank", os.Args[1:], os.Stdout, os.Stderr, run)) }

// run makes the first device current and reduces on it.
func run(stdout io.Writer) (err error) {
	gpu, err := cuda.Open(cuda.Options{})
	if err != nil {
		return example.Missing(err)
	}
	if err := example.Init(gpu); err != nil {
		return err
	}
	lib, err := nccl.Open(nccl.Options{})
	if err != nil {
		return example.Missing(err)
	}
	version, err := lib.GetVersion()
	if err != nil {
		return fmt.Errorf("ask NCCL for its version: %w", err)
	}
	dev, err := gpu.DeviceGet(0)
	if err != nil {
		return fmt.Errorf("get device 0: %w", err)
	}
	name, err := gpu.DeviceGetName(dev)
	if err != nil {
		return fmt.Errorf("get the device's name: %w", err)
	}

	// NCCL makes a communicator for the device that is current on the calling thread: stay on this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, err := gpu.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return fmt.Errorf("retain the primary context of %s: %w", name, err)
	}
	defer example.Release(&err, "release the primary context", gpu.DevicePrimaryCtxRelease, dev)
	if err := gpu.CtxSetCurrent(ctx); err != nil {
		return fmt.Errorf("make the context current: %w", err)
	}
	defer example.Release(&err, "leave the context", gpu.CtxSetCurrent, 0)

	fmt.Fprintf(stdout, "ncclrank: NCCL %s on %s\n", nccl.FormatVersion(dl.Version(version)), name)
	b, err := newBuffers(gpu, 1<<20)
	if err != nil {
		return err
	}
	defer example.Release(&err, "free the buffers", (*buffers).free, b)
	for _, way := range ways {
		if err := reduce(stdout, lib, b, way); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return nil
}

// A way makes a communicator that has one rank, on device 0.
type way struct {
	name string
	make func(*nccl.Library) (nccl.Comm, error)
}

var ways = []way{
	{"ncclCommInitRank", func(lib *nccl.Library) (nccl.Comm, error) {
		id, err := lib.GetUniqueID()
		if err != nil {
			return 0, fmt.Errorf("get a unique id: %w", err)
		}
		comm := new(nccl.Comm)
		err = lib.CommInitRank(comm, 1, id, 0)
		return *comm, err
	}},
	{"ncclCommInitAll", func(lib *nccl.Library) (nccl.Comm, error) {
		comms := make([]nccl.Comm, 1)
		err := lib.CommInitAll(comms, []int32{0})
		return comms[0], err
	}},
	{"ncclCommInitRankConfig", func(lib *nccl.Library) (nccl.Comm, error) {
		id, err := lib.GetUniqueID()
		if err != nil {
			return 0, fmt.Errorf("get a unique id: %w", err)
		}
		config := lib.NewConfig()
		config.Blocking = 1
		comm := new(nccl.Comm)
		err = lib.CommInitRankConfig(comm, 1, id, 0, &config)
		return *comm, err
	}},
}

// reduce makes a communicator and has it reduce by each operator that this NCCL has.
func reduce(stdout io.Writer, lib *nccl.Library, b *buffers, way way) (err error) {
	comm, err := way.make(lib)
	if errors.Is(err, dl.ErrSymbol) {
		fmt.Fprintf(stdout, "ncclrank: %s: not run: %v\n", way.name, err)
		return nil
	}
	if err != nil {
		return explain(lib, 0, "make a communicator", err)
	}
	defer example.Release(&err, "destroy the communicator", lib.CommDestroy, comm)
	for _, op := range []nccl.RedOp{nccl.Sum, nccl.Avg} {
		if op == nccl.Avg && lib.Version() < avgSince {
			fmt.Fprintf(stdout, "ncclrank: %s, %v: not run: needs NCCL %s\n", way.name, op, nccl.FormatVersion(avgSince))
			continue
		}
		if err := b.clear(); err != nil {
			return err
		}
		err := lib.AllReduce(nccl.DevicePtr(b.send), nccl.DevicePtr(b.recv), uint64(len(b.host)), nccl.Float32, op, comm, nccl.CudaStream(b.stream))
		if err != nil {
			return explain(lib, comm, "reduce by "+op.String(), err)
		}
		if err := b.check(); err != nil {
			return fmt.Errorf("reduce by %v: %w", op, err)
		}
		fmt.Fprintf(stdout, "ncclrank: %s, %v: %d elements: ok\n", way.name, op, len(b.host))
	}
	return nil
}

// avgSince is the release of NCCL that brought ncclAvg.
const avgSince = 21003

// explain adds what NCCL itself has to say of its latest failure.
func explain(lib *nccl.Library, comm nccl.Comm, what string, err error) error {
	if text, e := lib.GetLastError(comm); e == nil && text != "" {
		return fmt.Errorf("%s: %w (%s)", what, err, text)
	}
	return fmt.Errorf("%s: %w", what, err)
}
