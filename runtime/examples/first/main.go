// First computes y = a*x + y on the GPU that there is, or on a simulated one.
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
	defer dev.Close() // with what was loaded and allocated
	code, err := LoadSaxpy(dev)
	check(err)

	x, y := []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40}
	s := dev.Queue(0).NewStream()                     // its operations come one after the other,
	xs, _ := gpu.AllocaSlice[float32](s, nil, len(x)) // and an error of one is that of all which follow
	ys, _ := gpu.AllocaSlice[float32](s, nil, len(y))
	xs.Upload(s, x)
	ys.Upload(s, y)
	code.Saxpy.Launch(s, gpu.GridFor(len(x), 256), uint64(len(x)), 2, xs, ys)
	ys.Download(s, y)
	check(s.Wait(context.Background()))
	fmt.Println(y, "on", dev.Info().Name) // [12 24 36 48]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
