package gpu_test

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// The program calls the device's compiler directly. Package compile does the same in one call, with
// a cache.
func ExampleDevice_Compiler() {
	kernels := map[string]simdriver.Kernel{"axpy<float>": simSaxpy}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{Kernels: kernels}), 0, gpu.Options{})
	check(err)
	defer dev.Close()
	compiler, err := dev.Compiler()
	check(err)
	code, err := compiler.Compile(&driver.Source{Name: "axpy.cu", Names: []string{"axpy<float>"}, Text: `
template <typename T> __global__ void axpy(unsigned long long n, T a, const T *x, T *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] += a * x[i];
}
`})
	check(err)
	program, err := dev.LoadCode(code)
	check(err)
	kernel, err := program.Kernel("axpy<float>")
	check(err)
	fmt.Println(kernel.Name(), kernel.Info().Params)
	// Output:
	// axpy<float> [8 4 8 8]
}
