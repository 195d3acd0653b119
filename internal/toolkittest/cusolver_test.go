//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"math"
	"testing"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
)

// TestGPUCuSOLVER checks a solution by LU, the code for a singular matrix, and eigenvalues.
func TestGPUCuSOLVER(t *testing.T) {
	g := OpenGPU(t)
	l, err := cusolver.Open(cusolver.Options{})
	g.Check("Open", err)
	c, err := l.NewDnContext()
	g.Check("NewDnContext", err)
	info, pivots := Upload[int32](g, -1), g.Alloc(8)
	solve := func(a, b cuda.DevicePtr) int32 {
		count, err := l.DnDgetrfBufferSize(c.Handle(), 2, 2, a, 2)
		g.Check("DnDgetrfBufferSize", err)
		g.Check("DnDgetrf", l.DnDgetrf(c.Handle(), 2, 2, a, 2, g.Alloc(8*uint64(count)), pivots, info))
		if state := Download[int32](g, info, 1)[0]; state != 0 {
			return state
		}
		g.Check("DnDgetrs", l.DnDgetrs(c.Handle(), cublas.OpN, 2, 1, a, 2, pivots, b, 2, info))
		return Download[int32](g, info, 1)[0]
	}
	b := Upload[float64](g, 5, 10)
	if state := solve(Upload[float64](g, 1, 2, 2, 6), b); state != 0 { // column-major
		t.Errorf("solving says %d", state)
	}
	Same(g, "a solution", Download[float64](g, b, 2), 5, 0)
	if state := solve(Upload[float64](g, 1, 2, 2, 4), b); state != 2 {
		t.Errorf("factoring a singular matrix says %d, want its second pivot", state)
	}

	a, w := Upload[float64](g, 2, 1, 1, 2), g.Alloc(16)
	params, err := l.DnCreateParams()
	g.Check("DnCreateParams", err)
	f64 := cuda.DataTypeR64F
	onDevice, onHost, err := l.DnXsyevdBufferSize(c.Handle(), params, cusolver.EigModeVector, cublas.FillModeUpper, 2, f64, a, 2, f64, w, f64)
	g.Check("DnXsyevdBufferSize", err)
	g.Check("DnXsyevd", l.DnXsyevd(c.Handle(), params, cusolver.EigModeVector, cublas.FillModeUpper, 2, f64, a, 2, f64, w, f64, g.Alloc(onDevice), onDevice, make([]byte, onHost), info))
	if got := Download[float64](g, w, 2); math.Abs(got[0]-1) > 1e-12 || math.Abs(got[1]-3) > 1e-12 {
		t.Errorf("eigenvalues are %v, want 1 and 3", got)
	}
	g.Check("DnDestroyParams", l.DnDestroyParams(params))
	g.Check("Close", c.Close())
}
