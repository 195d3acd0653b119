//go:build linux && (amd64 || arm64) && !nogpu

package cublaslt

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/toolkittest"
)

// TestGPUMatmul multiplies matrices of float32 by an algorithm that the library proposes, and adds a bias.
func TestGPUMatmul(t *testing.T) {
	g := toolkittest.OpenGPU(t)
	l := toolkittest.Real(t, "cublaslt", open, FormatVersion).(*Library)
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
	a, b, out, add := toolkittest.Upload(g, identity...), toolkittest.Upload(g, numbers...), g.Alloc(4*n*n), toolkittest.Upload(g, bias...)
	layout, err := l.MatrixLayoutCreate(cuda.DataTypeR32F, n, n, n)
	g.Check("MatrixLayoutCreate", err)
	defer l.MatrixLayoutDestroy(layout)
	desc, err := l.MatmulDescCreate(Compute32f, cuda.DataTypeR32F)
	g.Check("MatmulDescCreate", err)
	defer l.MatmulDescDestroy(desc)
	epilogue := EpilogueBias
	g.Check("epilogue", l.MatmulDescSetAttribute(desc, MatmulDescEpilogue, unsafe.Pointer(&epilogue), uint64(unsafe.Sizeof(epilogue))))
	g.Check("bias", l.MatmulDescSetAttribute(desc, MatmulDescBiasPointer, unsafe.Pointer(&add), uint64(unsafe.Sizeof(add))))
	pref, err := l.MatmulPreferenceCreate()
	g.Check("MatmulPreferenceCreate", err)
	defer l.MatmulPreferenceDestroy(pref)
	found := make([]MatmulHeuristicResult, 4)
	count, err := l.MatmulAlgoGetHeuristic(c.Handle(), desc, layout, layout, layout, layout, pref, found)
	g.Check("MatmulAlgoGetHeuristic", err)
	if count == 0 {
		t.Fatal("the library proposes no algorithm")
	}
	one, zero := float32(1), float32(0)
	g.Check("Matmul", l.Matmul(c.Handle(), desc, unsafe.Pointer(&one), a, layout, b, layout, unsafe.Pointer(&zero), out, layout, out, layout, &found[0].Algo, 0, 0, 0))
	toolkittest.Same(g, "a product with bias", toolkittest.Download[float32](g, out, n*n), want...)
	g.Check("Close", c.Close())
}
