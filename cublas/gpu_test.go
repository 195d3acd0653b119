//go:build linux && (amd64 || arm64) && !nogpu

package cublas

import (
	"testing"

	"github.com/puregpu/puregpu/internal/toolkittest"
)

// TestGPUSgemm multiplies a matrix of 2 by 3 and one of 3 by 2, which lie in columns.
func TestGPUSgemm(t *testing.T) {
	g := toolkittest.OpenGPU(t)
	l := toolkittest.Real(t, "cublas", open, FormatVersion).(*Library)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	a := toolkittest.Upload[float32](g, 1, 2, 3, 4, 5, 6)
	b := toolkittest.Upload[float32](g, 1, 0, 2, -1, 1, 0)
	out := toolkittest.Upload[float32](g, 9, 9, 9, 9)
	one, zero := float32(1), float32(0)
	g.Check("Sgemm", l.Sgemm(c.Handle(), OpN, OpN, 2, 2, 3, &one, a, 2, b, 3, &zero, out, 2))
	toolkittest.Same(g, "a product", toolkittest.Download[float32](g, out, 4), 11, 14, 2, 2)
	dot, err := l.Sdot(c.Handle(), 6, a, 1, a, 1)
	g.Check("Sdot", err)
	toolkittest.Same(g, "a dot product", []float32{dot}, 91)
	g.Check("Close", c.Close())
}
