//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"testing"

	"github.com/puregpu/puregpu/cublas"
)

// TestGPUCuBLAS checks the product of a 2 by 3 and a 3 by 2 matrix in column-major order.
func TestGPUCuBLAS(t *testing.T) {
	g := OpenGPU(t)
	l, err := cublas.Open(cublas.Options{})
	g.Check("Open", err)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	a := Upload[float32](g, 1, 2, 3, 4, 5, 6)
	b := Upload[float32](g, 1, 0, 2, -1, 1, 0)
	out := Upload[float32](g, 9, 9, 9, 9)
	one, zero := float32(1), float32(0)
	g.Check("Sgemm", l.Sgemm(c.Handle(), cublas.OpN, cublas.OpN, 2, 2, 3, &one, a, 2, b, 3, &zero, out, 2))
	Same(g, "a product", Download[float32](g, out, 4), 11, 14, 2, 2)
	dot, err := l.Sdot(c.Handle(), 6, a, 1, a, 1)
	g.Check("Sdot", err)
	Same(g, "a dot product", []float32{dot}, 91)
	g.Check("Close", c.Close())
}
