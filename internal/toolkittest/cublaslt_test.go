//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
)

// TestGPUCuBLASLt checks the product of float32 matrices plus a bias, by an algorithm that the
// library proposes.
func TestGPUCuBLASLt(t *testing.T) {
	g := OpenGPU(t)
	l, err := cublaslt.Open(cublaslt.Options{})
	g.Check("Open", err)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	const n = 16 // rows and columns
	var identity, numbers, want []float32
	for i := range n * n {
		one := float32(0)
		if i%(n+1) == 0 {
			one = 1
		}
		identity, numbers, want = append(identity, one), append(numbers, float32(i)), append(want, float32(i)+float32(i%n))
	}
	var bias []float32
	for i := range n {
		bias = append(bias, float32(i))
	}
	a, b, out, add := Upload(g, identity...), Upload(g, numbers...), g.Alloc(4*n*n), Upload(g, bias...)
	layout, err := l.MatrixLayoutCreate(cuda.DataTypeR32F, n, n, n)
	g.Check("MatrixLayoutCreate", err)
	defer l.MatrixLayoutDestroy(layout)
	desc, err := l.MatmulDescCreate(cublaslt.Compute32f, cuda.DataTypeR32F)
	g.Check("MatmulDescCreate", err)
	defer l.MatmulDescDestroy(desc)
	epilogue := cublaslt.EpilogueBias
	g.Check("epilogue", l.MatmulDescSetAttribute(desc, cublaslt.MatmulDescEpilogue, unsafe.Pointer(&epilogue), uint64(unsafe.Sizeof(epilogue))))
	g.Check("bias", l.MatmulDescSetAttribute(desc, cublaslt.MatmulDescBiasPointer, unsafe.Pointer(&add), uint64(unsafe.Sizeof(add))))
	pref, err := l.MatmulPreferenceCreate()
	g.Check("MatmulPreferenceCreate", err)
	defer l.MatmulPreferenceDestroy(pref)
	found := make([]cublaslt.MatmulHeuristicResult, 4)
	count, err := l.MatmulAlgoGetHeuristic(c.Handle(), desc, layout, layout, layout, layout, pref, found)
	g.Check("MatmulAlgoGetHeuristic", err)
	if count == 0 {
		t.Fatal("the library proposes no algorithm")
	}
	one, zero := float32(1), float32(0)
	g.Check("Matmul", l.Matmul(c.Handle(), desc, unsafe.Pointer(&one), a, layout, b, layout, unsafe.Pointer(&zero), out, layout, out, layout, &found[0].Algo, 0, 0, 0))
	Same(g, "a product with bias", Download[float32](g, out, n*n), want...)
	g.Check("Close", c.Close())
}
