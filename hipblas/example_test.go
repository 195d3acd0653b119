package hipblas_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hipblas"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without hipBLAS checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_HIPBLAS_LIBRARY", "/no/such/libhipblas.so.3") // simulates a machine without hipBLAS
	defer os.Unsetenv("PUREGPU_HIPBLAS_LIBRARY")

	l, err := hipblas.Open(hipblas.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no hipBLAS here: multiplying on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("hipBLAS", hipblas.FormatVersion(l.Version()))
	// Output: no hipBLAS here: multiplying on the host
}

// multiply has a stream compute c = a·b for n by n matrices of float32. A device must be current.
func multiply(l *hipblas.Library, stream hip.Stream, c, a, b hip.DevicePtr, n int32) error {
	blas, err := l.NewContext()
	if err != nil {
		return err
	}
	defer blas.Close()
	if err := l.SetStream(blas.Handle(), stream); err != nil {
		return err
	}
	one, zero := float32(1), float32(0)
	return l.Sgemm(blas.Handle(), hipblas.OpN, hipblas.OpN, n, n, n, &one, a, n, b, n, &zero, c, n)
}

func ExampleLibrary_Sgemm() {
	l, err := hipblas.Open(hipblas.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream hip.Stream     // from package hip
	var a, b, c hip.DevicePtr // from hip.Library.Malloc
	if err := multiply(l, stream, c, a, b, 1024); err != nil {
		fmt.Println(err)
	}
}
