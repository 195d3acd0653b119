// Compile compiles a template of CUDA C++ at run time for the GPU of the machine, and computes
// y = a*x + y with two instances of it.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var (
	//go:embed kernel.cu
	text string
	//go:embed axpy.h
	axpy string
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	d, err := drivers.Best(simulated)
	if err != nil {
		return err
	}
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	code, info, err := compile.Compile(dev, compile.Source{
		Name:    "kernel.cu",
		Text:    text,
		Headers: map[string]string{"axpy.h": axpy},
		Names:   []string{"saxpy<float>", "saxpy<double>"}, // each instance must be named
	})
	if e, ok := errors.AsType[*driver.CompileError](err); ok {
		for _, m := range e.Messages {
			fmt.Println(m) // kernel.cu(7): error: …
		}
	}
	if errors.Is(err, gpu.ErrUnsupported) {
		fmt.Println("compile: not run:", err) // the error says what is missing
		return nil
	}
	if err != nil {
		return err
	}
	defer code.Close()
	fmt.Printf("%s for %s, from the cache: %v\n", info.Compiler, info.Target, info.Cached)
	single, err := saxpy(dev, code, "saxpy<float>", 2, []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40})
	if err != nil {
		return err
	}
	double, err := saxpy(dev, code, "saxpy<double>", 0.5, []float64{1, 2, 3, 4}, []float64{0, 0, 0, 0})
	if err != nil {
		return err
	}
	fmt.Println(single, double, "on", dev.Info().Name) // [12 24 36 48] [0.5 1 1.5 2]
	return nil
}

// saxpy runs an instance of the kernel.
func saxpy[T float32 | float64](dev *gpu.Device, code *gpu.Module, name string, a T, x, y []T) ([]T, error) {
	type args struct { // the kernel's parameters, in order
		n    uint64
		a    T
		x, y gpu.Slice[T]
	}
	kernel, err := code.Kernel(name)
	if err != nil {
		return nil, err
	}
	saxpy, err := gpu.Typed[args](kernel)
	if err != nil {
		return nil, err
	}
	s := dev.Queue(0).NewStream() // runs operations in order; Wait returns the first error
	xs, _ := gpu.AllocSliceIn[T](s, nil, len(x))
	ys, _ := gpu.AllocSliceIn[T](s, nil, len(y))
	defer xs.Close() // frees the memory once the stream has done its work
	defer ys.Close()
	s.Do(
		xs.Upload(x),
		ys.Upload(y),
		saxpy.Launch(gpu.GridFor(len(x), 256), args{uint64(len(x)), a, xs, ys}),
		ys.Download(y),
	)
	return y, s.Wait(context.Background())
}
