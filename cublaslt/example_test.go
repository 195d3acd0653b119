package cublaslt_test

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that can run without cuBLASLt checks whether it is installed.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUBLASLT_LIBRARY", "/no/such/libcublasLt.so.13") // simulates a machine without cuBLASLt
	defer os.Unsetenv("PUREGPU_CUBLASLT_LIBRARY")

	l, err := cublaslt.Open(cublaslt.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no cuBLASLt here: multiplying on the host")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cuBLASLt", cublaslt.FormatVersion(l.Version()))
	// Output: no cuBLASLt here: multiplying on the host
}

// A product holds the scalars and descriptions of c = a·b for n by n matrices of bfloat16.
type product struct {
	lib       *cublaslt.Library
	one, zero float32
	desc      cublaslt.MatmulDesc
	layout    cublaslt.MatrixLayout
}

// describe makes a product. It needs no device.
func describe(l *cublaslt.Library, n uint64) (*product, error) {
	p := &product{lib: l, one: 1}
	var err error
	if p.desc, err = l.MatmulDescCreate(cublaslt.Compute32f, cuda.DataTypeR32F); err != nil {
		return nil, err
	}
	p.layout, err = l.MatrixLayoutCreate(cuda.DataTypeR16BF, n, n, int64(n))
	return p, err
}

// run computes a product with the algorithm that cuBLASLt ranks first, in order on a stream. A CUDA
// context must be current.
func (p *product) run(c *cublaslt.Context, stream cuda.Stream, out, a, b cuda.DevicePtr) error {
	return p.lib.Matmul(c.Handle(), p.desc, unsafe.Pointer(&p.one), a, p.layout, b, p.layout, unsafe.Pointer(&p.zero), out, p.layout, out, p.layout,
		nil, 0, 0, stream)
}

func ExampleLibrary_Matmul() {
	l, err := cublaslt.Open(cublaslt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	context, err := l.NewContext()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer context.Close()
	p, err := describe(l, 1024)
	if err != nil {
		fmt.Println(err)
		return
	}
	var stream cuda.Stream       // from package cuda
	var a, b, out cuda.DevicePtr // from cuda.Library.MemAlloc
	if err := p.run(context, stream, out, a, b); err != nil {
		fmt.Println(err)
	}
}
