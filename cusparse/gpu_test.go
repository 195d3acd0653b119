//go:build linux && (amd64 || arm64) && !nogpu

package cusparse

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/toolkittest"
)

// TestGPUSpMV multiplies a matrix of 3 by 4 with five nonzeros and a vector.
func TestGPUSpMV(t *testing.T) {
	g := toolkittest.OpenGPU(t)
	l := toolkittest.Real(t, "cusparse", open, FormatVersion).(*Library)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	offsets := toolkittest.Upload[int32](g, 0, 2, 2, 5)
	columns := toolkittest.Upload[int32](g, 0, 3, 0, 1, 2)
	values := toolkittest.Upload[float32](g, 1, 2, 3, 4, 5)
	m, err := l.CreateCsr(3, 4, 5, offsets, columns, values, Index32i, Index32i, IndexBaseZero, cuda.DataTypeR32F)
	g.Check("CreateCsr", err)
	x, err := l.CreateDnVec(4, toolkittest.Upload[float32](g, 1, 2, 3, 4), cuda.DataTypeR32F)
	g.Check("CreateDnVec", err)
	out := toolkittest.Upload[float32](g, 9, 9, 9)
	y, err := l.CreateDnVec(3, out, cuda.DataTypeR32F)
	g.Check("CreateDnVec", err)
	one, zero := float32(1), float32(0)
	alpha, beta := unsafe.Pointer(&one), unsafe.Pointer(&zero)
	size, err := l.SpMVBufferSize(c.Handle(), OperationNonTranspose, alpha, m, x, beta, y, cuda.DataTypeR32F, SpMVAlgDefault)
	g.Check("SpMVBufferSize", err)
	g.Check("SpMV", l.SpMV(c.Handle(), OperationNonTranspose, alpha, m, x, beta, y, cuda.DataTypeR32F, SpMVAlgDefault, g.Alloc(size)))
	toolkittest.Same(g, "a product", toolkittest.Download[float32](g, out, 3), 9, 0, 26)
	g.Check("DestroyDnVec", l.DestroyDnVec(x))
	g.Check("DestroyDnVec", l.DestroyDnVec(y))
	g.Check("DestroySpMat", l.DestroySpMat(m))
	g.Check("Close", c.Close())
}
