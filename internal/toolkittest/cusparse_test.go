//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusparse"
)

// TestGPUCuSPARSE checks the product of a 3 by 4 matrix with five nonzeros and a vector.
func TestGPUCuSPARSE(t *testing.T) {
	g := OpenGPU(t)
	l, err := cusparse.Open(cusparse.Options{})
	g.Check("Open", err)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	offsets := Upload[int32](g, 0, 2, 2, 5)
	columns := Upload[int32](g, 0, 3, 0, 1, 2)
	values := Upload[float32](g, 1, 2, 3, 4, 5)
	m, err := l.CreateCsr(3, 4, 5, offsets, columns, values, cusparse.Index32i, cusparse.Index32i, cusparse.IndexBaseZero, cuda.DataTypeR32F)
	g.Check("CreateCsr", err)
	x, err := l.CreateDnVec(4, Upload[float32](g, 1, 2, 3, 4), cuda.DataTypeR32F)
	g.Check("CreateDnVec", err)
	out := Upload[float32](g, 9, 9, 9)
	y, err := l.CreateDnVec(3, out, cuda.DataTypeR32F)
	g.Check("CreateDnVec", err)
	one, zero := float32(1), float32(0)
	alpha, beta := unsafe.Pointer(&one), unsafe.Pointer(&zero)
	size, err := l.SpMVBufferSize(c.Handle(), cusparse.OperationNonTranspose, alpha, m, x, beta, y, cuda.DataTypeR32F, cusparse.SpMVAlgDefault)
	g.Check("SpMVBufferSize", err)
	g.Check("SpMV", l.SpMV(c.Handle(), cusparse.OperationNonTranspose, alpha, m, x, beta, y, cuda.DataTypeR32F, cusparse.SpMVAlgDefault, g.Alloc(size)))
	Same(g, "a product", Download[float32](g, out, 3), 9, 0, 26)
	g.Check("DestroyDnVec", l.DestroyDnVec(x))
	g.Check("DestroyDnVec", l.DestroyDnVec(y))
	g.Check("DestroySpMat", l.DestroySpMat(m))
	g.Check("Close", c.Close())
}
