//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/solver"
)

// openSolver returns cuSOLVER on the GPU.
func openSolver(t *testing.T) (*gpu.Device, *solver.Library) {
	dev := openGPU(t)
	lib, err := solver.Open(dev, solver.Options{})
	has(t, err)
	t.Cleanup(func() { must(t, lib.Close()) })
	return dev, lib
}

func TestSolver(t *testing.T) {
	dev, lib := openSolver(t)
	Solver(t, dev, lib)
}

func TestSolverRecorded(t *testing.T) {
	dev, lib := openSolver(t)
	SolverRecorded(t, dev, lib)
}

func TestSolverRefused(t *testing.T) {
	dev, lib := openSolver(t)
	SolverRefused(t, dev, lib)
}
