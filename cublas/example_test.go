package cublas_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuBLAS checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUBLAS_LIBRARY", "/no/such/libcublas.so.13") // simulates a machine without cuBLAS
	defer os.Unsetenv("PUREGPU_CUBLAS_LIBRARY")

	l, err := cublas.Open(cublas.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuBLAS here: multiplying on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuBLAS", cublas.FormatVersion(l.Version()))
	// Output: no cuBLAS here: multiplying on the host
}

// multiply computes c = a·b for n by n matrices of float32, in order on a stream. A CUDA context
// must be current.
func multiply(l *cublas.Library, stream cuda.Stream, c, a, b cuda.DevicePtr, n int32) error {
	blas, err := l.NewContext()
	if err != nil {
		return err
	}
	defer blas.Close()
	if err := l.SetStream(blas.Handle(), stream); err != nil {
		return err
	}
	one, zero := float32(1), float32(0)
	return l.Sgemm(blas.Handle(), cublas.OpN, cublas.OpN, n, n, n, &one, a, n, b, n, &zero, c, n)
}

func ExampleLibrary_Sgemm() {
	l, err := cublas.Open(cublas.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream cuda.Stream     // from package cuda
	var a, b, c cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := multiply(l, stream, c, a, b, 1024); err != nil {
		fmt.Println(err)
	}
}
