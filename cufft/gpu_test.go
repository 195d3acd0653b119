//go:build linux && (amd64 || arm64) && !nogpu

package cufft

import (
	"testing"

	"github.com/puregpu/puregpu/internal/toolkittest"
)

// TestGPUTransforms transforms an impulse, which gives a constant, and back, which is not scaled.
func TestGPUTransforms(t *testing.T) {
	g := toolkittest.OpenGPU(t)
	l := toolkittest.Real(t, "cufft", open, FormatVersion).(*Library)
	p, err := l.NewPlan()
	g.Check("NewPlan", err)
	size := make([]uint64, 1)
	g.Check("MakePlan1d", l.MakePlan1d(p.Handle(), 4, C2C, 1, size))
	data := toolkittest.Upload[complex64](g, 1, 0, 0, 0)
	g.Check("ExecC2C", l.ExecC2C(p.Handle(), data, data, Forward))
	toolkittest.Same(g, "the transform of an impulse", toolkittest.Download[complex64](g, data, 4), 1, 1, 1, 1)
	g.Check("ExecC2C", l.ExecC2C(p.Handle(), data, data, Inverse))
	toolkittest.Same(g, "the transform and back", toolkittest.Download[complex64](g, data, 4), 4, 0, 0, 0)
	g.Check("Close", p.Close())

	p, err = l.NewPlan()
	g.Check("NewPlan", err)
	n := []int32{2, 2}
	g.Check("MakePlanMany", l.MakePlanMany(p.Handle(), n, nil, 1, 4, nil, 1, 4, Z2Z, 2, size))
	planes := toolkittest.Upload[complex128](g, 1, 0, 0, 0, 1, 1, 1, 1)
	g.Check("ExecZ2Z", l.ExecZ2Z(p.Handle(), planes, planes, Forward))
	toolkittest.Same(g, "the transform of two planes", toolkittest.Download[complex128](g, planes, 8), 1, 1, 1, 1, 4, 0, 0, 0)
	g.Check("Close", p.Close())
}
