package cusparse_test

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuSPARSE checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUSPARSE_LIBRARY", "/no/such/libcusparse.so.12") // simulates a machine without cuSPARSE
	defer os.Unsetenv("PUREGPU_CUSPARSE_LIBRARY")

	l, err := cusparse.Open(cusparse.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuSPARSE here: multiplying on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuSPARSE", cusparse.FormatVersion(l.Version()))
	// Output: no cuSPARSE here: multiplying on the host
}

// A matrix is a CSR matrix in device memory.
type matrix struct {
	rows, cols, nonzeros int64

	offsets, columns, values cuda.DevicePtr // int32, int32 and float32 elements
}

// multiply computes y = a·x on the handle's stream. buffer returns work memory of a given size. A
// CUDA context must be current.
func multiply(l *cusparse.Library, c *cusparse.Context, y cuda.DevicePtr, a matrix, x cuda.DevicePtr, buffer func(size uint64) cuda.DevicePtr) error {
	m, err := l.CreateCsr(a.rows, a.cols, a.nonzeros, a.offsets, a.columns, a.values,
		cusparse.Index32i, cusparse.Index32i, cusparse.IndexBaseZero, cuda.DataTypeR32F)
	if err != nil {
		return err
	}
	defer l.DestroySpMat(m)
	in, err := l.CreateDnVec(a.cols, x, cuda.DataTypeR32F)
	if err != nil {
		return err
	}
	defer l.DestroyDnVec(in)
	out, err := l.CreateDnVec(a.rows, y, cuda.DataTypeR32F)
	if err != nil {
		return err
	}
	defer l.DestroyDnVec(out)
	one, zero := float32(1), float32(0)
	alpha, beta := unsafe.Pointer(&one), unsafe.Pointer(&zero)
	size, err := l.SpMVBufferSize(c.Handle(), cusparse.OperationNonTranspose, alpha, m, in, beta, out, cuda.DataTypeR32F, cusparse.SpMVAlgDefault)
	if err != nil {
		return err
	}
	return l.SpMV(c.Handle(), cusparse.OperationNonTranspose, alpha, m, in, beta, out, cuda.DataTypeR32F, cusparse.SpMVAlgDefault, buffer(size))
}

func ExampleLibrary_SpMV() {
	l, err := cusparse.Open(cusparse.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := l.NewContext()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	var x, y cuda.DevicePtr // from cuda.Library.MemAlloc, like the buffer
	a := matrix{rows: 1000, cols: 1000, nonzeros: 5000}
	if err := multiply(l, c, y, a, x, func(size uint64) cuda.DevicePtr { return 0 }); err != nil {
		fmt.Println(err)
	}
}
