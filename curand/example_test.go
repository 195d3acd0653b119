package curand_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuRAND checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CURAND_LIBRARY", "/no/such/libcurand.so.10") // simulates a machine without cuRAND
	defer os.Unsetenv("PUREGPU_CURAND_LIBRARY")

	l, err := curand.Open(curand.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuRAND here: drawing on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuRAND", curand.FormatVersion(l.Version()))
	// Output: no cuRAND here: drawing on the host
}

// normal writes n numbers to device memory, on a stream. A CUDA context must be current.
func normal(l *curand.Library, stream cuda.Stream, data cuda.DevicePtr, n, seed uint64) error {
	g, err := l.NewGenerator(curand.RNGPseudoPhilox4_32_10)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := l.SetPseudoRandomGeneratorSeed(g.Handle(), seed); err != nil {
		return err
	}
	if err := l.SetStream(g.Handle(), stream); err != nil {
		return err
	}
	return l.GenerateNormal(g.Handle(), data, n, 0, 1)
}

func ExampleLibrary_GenerateNormal() {
	l, err := curand.Open(curand.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream cuda.Stream  // from package cuda
	var data cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := normal(l, stream, data, 1<<20, 42); err != nil {
		fmt.Println(err)
	}
}
