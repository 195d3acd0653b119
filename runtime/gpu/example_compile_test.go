package gpu_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A program in CUDA C++, compiled for the device there is. The simulated GPU runs the Go functions of the same names.
func ExampleDevice_Compile() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: map[string]simdriver.Kernel{"saxpy": simSaxpy}}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	code, err := dev.Compile(gpu.Source{
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
	fmt.Println(kernel.Name(), kernel.Info().Params, code.CompileInfo().Target)
	// Output:
	// saxpy [8 4 8 8] sim
}

// What is wrong with a source is in the error, with file and line.
func ExampleDevice_Compile_errors() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	_, err = dev.Compile(gpu.Source{Name: "scale.cu", Text: "// A kernel.\nextern \"C\" __global__ void scale(float *x) {}\n"})
	if e, ok := errors.AsType[*driver.CompileError](err); ok {
		for _, m := range e.Messages {
			fmt.Printf("%s, line %d: %s\n", m.File, m.Line, m.Text)
		}
	}
	// Output:
	// scale.cu, line 2: kernel scale has no Go function in Config.Kernels
}
