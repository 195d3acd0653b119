// Compile compiles a template of CUDA C++ at run time for the machine's GPU, and computes y = a*x +
// y with two instances of the template.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -name saxpy -instance saxpy<float> -instance saxpy<double> kernel.cu

func main() {
	if err := run(); err != nil {
		log.Fatal(err) // if the source has an error, err has the compiler's messages: kernel.cu(7): error: …
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
	code, info, err := CompileSaxpy(dev, compile.Options{})
	if errors.Is(err, gpu.ErrUnsupported) {
		fmt.Println("compile: not run:", err) // the error says what is missing
		return nil
	}
	if err != nil {
		return err
	}
	defer code.Close()
	fmt.Printf("%s for %s, from the cache: %v\n", info.Compiler, info.Target, info.Cached)
	s := dev.Queue(0).NewStream() // runs operations in order; Wait returns the first error
	single := axpy(s, code.SaxpyFloat, 2, []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40})
	double := axpy(s, code.SaxpyDouble, 0.5, []float64{1, 2, 3, 4}, []float64{0, 0, 0, 0})
	if err := s.Wait(context.Background()); err != nil {
		return err
	}
	fmt.Println(single, double, "on", dev.Info().Name) // [12 24 36 48] [0.5 1 1.5 2]
	return nil
}

// A saxpy is an instance of the kernel's template for elements of type T.
type saxpy[T any] interface {
	Launch(grid gpu.Grid, n uint64, a T, x, y gpu.Slice[T]) gpu.Op
}

// axpy returns y, which holds the result after the stream's next Wait.
func axpy[T float32 | float64](s *gpu.Stream, kernel saxpy[T], a T, x, y []T) []T {
	xs, _ := gpu.AllocSliceIn[T](s, nil, len(x))
	ys, _ := gpu.AllocSliceIn[T](s, nil, len(y))
	defer xs.Close() // frees the memory after the stream's work
	defer ys.Close()
	s.Do(
		xs.Upload(x),
		ys.Upload(y),
		kernel.Launch(gpu.GridFor(len(x), 256), uint64(len(x)), a, xs, ys),
		ys.Download(y),
	)
	return y
}
