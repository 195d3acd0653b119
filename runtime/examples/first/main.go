// First computes y = a*x + y on the GPU that there is, or on a simulated one.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:embed kernel.ptx
var code []byte

type saxpyArgs struct { // the kernel's parameters, in order
	n    uint64
	a    float32
	x, y gpu.Slice[float32]
}

func main() {
	driver, err := drivers.Best(simulated)
	check(err)
	dev, err := gpu.Open(driver, 0, gpu.Options{})
	check(err)
	defer dev.Close() // with what was loaded and allocated
	exe, err := dev.Load(code)
	check(err)
	kernel, err := exe.Kernel("saxpy")
	check(err)
	saxpy, err := gpu.Typed[saxpyArgs](kernel)
	check(err)

	x, y := []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40}
	s := dev.Queue(0).NewStream()                     // its operations come one after the other,
	xs, _ := gpu.AllocaSlice[float32](s, nil, len(x)) // and an error of one is that of all which follow
	ys, _ := gpu.AllocaSlice[float32](s, nil, len(y))
	xs.Upload(s, x)
	ys.Upload(s, y)
	saxpy.Launch(s, gpu.GridFor(len(x), 256), saxpyArgs{uint64(len(x)), 2, xs, ys})
	ys.Download(s, y)
	check(s.Wait(context.Background()))
	fmt.Println(y, "on", dev.Info().Name) // [12 24 36 48]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
