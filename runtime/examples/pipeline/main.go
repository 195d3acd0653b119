// Pipeline sends batches through a GPU in three stages that run at the same time. While the GPU
// computes one batch, the next one is uploaded and the results of the previous one are downloaded.
// Each stage has its own queue. The program submits everything at once. Only semaphores order the
// operations, and the host does nothing until it waits for the last batch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

const (
	batches = 12
	size    = 1 << 18 // floats of a batch
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name scale kernel.cu kernel.ptx

func main() {
	flag.Parse() // -h works without a GPU
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	driver, err := drivers.Best(simulated)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := gpu.Open(driver, 0, gpu.Options{Queues: 3})
	if err != nil {
		log.Fatal(err)
	}
	in := newBatches()
	out, err := pipeline(ctx, dev, in, 2, 1)
	if err = errors.Join(err, dev.Close()); err != nil {
		log.Fatal(err)
	}
	for i := range in {
		for k, x := range in[i] {
			if got, want := out[i][k], 2*x+1; got != want {
				log.Fatalf("batch %d on %s: element %d is %v, want %v", i, dev.Info().Name, k, got, want)
			}
		}
	}
	fmt.Printf("pipeline: %d batches of %d floats on %s: ok\n", batches, size, dev.Info().Name)
}

// newBatches makes batches of small whole numbers. Float arithmetic on them is exact, so the host
// computes the same results.
func newBatches() [][]float32 {
	all := make([][]float32, batches)
	for i := range all {
		all[i] = make([]float32, size)
		for k := range all[i] {
			all[i][k] = float32((k + 31*i) % 4096)
		}
	}
	return all
}

// pipeline returns a*x + b for each x of each batch. All batches have the same size.
func pipeline(ctx context.Context, dev *gpu.Device, in [][]float32, a, b float32) (out [][]float32, err error) {
	code, err := LoadScale(dev)
	if err != nil {
		return nil, err
	}
	defer code.Close()
	n := len(in[0])
	var xs, ys [2]gpu.Slice[float32] // each batch uses other memory than the batch before it
	for i := range 2 {
		var err1, err2 error
		xs[i], err1 = gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
		ys[i], err2 = gpu.AllocSlice[float32](dev, gpu.DeviceMem, n)
		defer xs[i].Close()
		defer ys[i].Close()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}

	// Each stage has a semaphore. The semaphore's value is i+2 when batch i has passed the stage.
	// The value begins at 1, as if two earlier batches had passed.
	var stages [3]*gpu.Semaphore
	for i := range stages {
		if stages[i], err = gpu.NewSemaphore(1); err != nil {
			return nil, err
		}
	}
	up, comp, down := stages[0], stages[1], stages[2]
	for i := range in {
		v := uint64(i)
		x, y := xs[i%2], ys[i%2]
		out = append(out, make([]float32, n))
		// The upload comes after the previous upload, and after the kernel that read batch i-2 from
		// the same memory.
		err1 := dev.Queue(0).Submit(gpu.Order{
			Wait:   []gpu.Point{up.At(v + 1), comp.At(v)},
			Signal: []gpu.Point{up.At(v + 2)},
		}, x.Upload(in[i]))
		// The kernel comes after the upload, after the previous kernel, and after the download of
		// batch i-2 from the memory that the kernel writes.
		err2 := dev.Queue(1).Submit(gpu.Order{
			Wait:   []gpu.Point{up.At(v + 2), comp.At(v + 1), down.At(v)},
			Signal: []gpu.Point{comp.At(v + 2)},
		}, code.Scale.Launch(gpu.GridFor(n, 256), uint64(n), a, b, x, y))
		// The download comes after the kernel and after the previous download.
		err3 := dev.Queue(2).Submit(gpu.Order{
			Wait:   []gpu.Point{comp.At(v + 2), down.At(v + 1)},
			Signal: []gpu.Point{down.At(v + 2)},
		}, y.Download(out[i]))
		if err := errors.Join(err1, err2, err3); err != nil {
			gpu.FailAll(err, up, comp, down) // or the submitted work waits forever
			return nil, err
		}
	}
	return out, down.Wait(ctx, uint64(len(in))+1)
}
