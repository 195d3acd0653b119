package compile_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// The program compiles CUDA C++ for a device. The simulated GPU does not run the compiled code: it
// runs Go functions registered under the names of the kernels.
func ExampleCompile() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"saxpy": simSaxpy}}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	code, info, err := compile.Compile(dev, compile.Source{
		Name:    "saxpy.cu",
		Headers: map[string]string{"axpy.h": "__device__ float axpy(float a, float x, float y) { return a * x + y; }\n"},
		Options: []string{"--std=c++17"},
		Text: `#include "axpy.h"
extern "C" __global__ void saxpy(unsigned long long n, float a, const float *x, float *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = axpy(a, x[i], y[i]);
}
`})
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := code.Kernel("saxpy")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kernel.Name(), kernel.Info().Params, info.Target)
	// Output:
	// saxpy [8 4 8 8] sim
}

// The error has the compiler's messages, with file and line.
func ExampleCompile_errors() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	_, _, err = compile.Compile(dev, compile.Source{Name: "scale.cu", Text: "// A kernel.\nextern \"C\" __global__ void scale(float *x) {}\n"})
	if e, ok := errors.AsType[*driver.CompileError](err); ok {
		for _, m := range e.Messages {
			fmt.Printf("%s, line %d: %s\n", m.File, m.Line, m.Text)
		}
	}
	// Output:
	// scale.cu, line 2: kernel scale has no Go function in Config.Kernels
}

// simSaxpy is the Go function that the simulated GPU runs for saxpy.
var simSaxpy = simdriver.MustKernel(func(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
	xs, errX := simdriver.View[float32](g, x, int(n))
	ys, errY := simdriver.View[float32](g, y, int(n))
	for i := range xs {
		ys[i] += a * xs[i]
	}
	return errors.Join(errX, errY)
})
