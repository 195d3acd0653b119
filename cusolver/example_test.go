package cusolver_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuSOLVER checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUSOLVER_LIBRARY", "/no/such/libcusolver.so.12") // simulates a machine without cuSOLVER
	defer os.Unsetenv("PUREGPU_CUSOLVER_LIBRARY")

	l, err := cusolver.Open(cusolver.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuSOLVER here: solving on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuSOLVER", cusolver.FormatVersion(l.Version()))
	// Output: no cuSOLVER here: solving on the host
}

// solve has the handle's stream solve a·x = b by LU, for an n by n matrix of float64, and write x
// to b. alloc allocates a number of bytes of device memory. A CUDA context must be current. The
// factorization and the solution both write their status to info.
func solve(l *cusolver.Library, c *cusolver.DnContext, a, b, info cuda.DevicePtr, n int32, alloc func(bytes uint64) cuda.DevicePtr) error {
	count, err := l.DnDgetrfBufferSize(c.Handle(), n, n, a, n)
	if err != nil {
		return err
	}
	work, pivots := alloc(8*uint64(count)), alloc(4*uint64(n))
	if err := l.DnDgetrf(c.Handle(), n, n, a, n, work, pivots, info); err != nil {
		return err
	}
	return l.DnDgetrs(c.Handle(), cublas.OpN, n, 1, a, n, pivots, b, n, info)
}

func ExampleLibrary_DnDgetrf() {
	l, err := cusolver.Open(cusolver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := l.NewDnContext()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	var a, b, info cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := solve(l, c, a, b, info, 1000, func(bytes uint64) cuda.DevicePtr { return 0 }); err != nil {
		fmt.Println(err)
	}
}
