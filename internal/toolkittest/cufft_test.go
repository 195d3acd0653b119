//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"testing"

	"github.com/puregpu/puregpu/cufft"
)

// TestGPUCuFFT checks that an impulse is transformed to a constant and back, without scaling.
func TestGPUCuFFT(t *testing.T) {
	g := OpenGPU(t)
	l, err := cufft.Open(cufft.Options{})
	g.Check("Open", err)
	p, err := l.NewPlan()
	g.Check("NewPlan", err)
	size := make([]uint64, 1)
	g.Check("MakePlan1d", l.MakePlan1d(p.Handle(), 4, cufft.C2C, 1, size))
	data := Upload[complex64](g, 1, 0, 0, 0)
	g.Check("ExecC2C", l.ExecC2C(p.Handle(), data, data, cufft.Forward))
	Same(g, "the transform of an impulse", Download[complex64](g, data, 4), 1, 1, 1, 1)
	g.Check("ExecC2C", l.ExecC2C(p.Handle(), data, data, cufft.Inverse))
	Same(g, "the transform and back", Download[complex64](g, data, 4), 4, 0, 0, 0)
	g.Check("Close", p.Close())

	p, err = l.NewPlan()
	g.Check("NewPlan", err)
	n := []int32{2, 2}
	g.Check("MakePlanMany", l.MakePlanMany(p.Handle(), n, nil, 1, 4, nil, 1, 4, cufft.Z2Z, 2, size))
	planes := Upload[complex128](g, 1, 0, 0, 0, 1, 1, 1, 1)
	g.Check("ExecZ2Z", l.ExecZ2Z(p.Handle(), planes, planes, cufft.Forward))
	Same(g, "the transform of two planes", Download[complex128](g, planes, 8), 1, 1, 1, 1, 4, 0, 0, 0)
	g.Check("Close", p.Close())
}
