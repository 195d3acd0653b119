// First computes y = a*x + y on a GPU, or on a simulated one if the machine has none.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name saxpy kernel.cu kernel.ptx

func main() {
	driver, err := drivers.Best(simulated)
	check(err)
	dev, err := gpu.Open(driver, 0, gpu.Options{})
	check(err)
	defer dev.Close()
	code, err := LoadSaxpy(dev)
	check(err)
	defer code.Close()

	x, y := []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40}
	s := dev.Queue(0).NewStream() // runs operations in order; Wait returns the first error
	xs, _ := gpu.AllocSliceIn[float32](s, nil, len(x))
	ys, _ := gpu.AllocSliceIn[float32](s, nil, len(y))
	defer xs.Close() // frees the memory after the stream's work
	defer ys.Close()
	s.Do(
		xs.Upload(x),
		ys.Upload(y),
		code.Saxpy.Launch(gpu.GridFor(len(x), 256), uint64(len(x)), 2, xs, ys),
		ys.Download(y),
	)
	check(s.Wait(context.Background()))
	fmt.Println(y, "on", dev.Info().Name) // [12 24 36 48]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
