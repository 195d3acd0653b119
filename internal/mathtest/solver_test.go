//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"slices"
	"testing"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
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

// TestSolverCall checks that each execution of a recording runs a function given to Call, which
// factors a diagonal matrix by cusolverDnSpotrf.
func TestSolverCall(t *testing.T) {
	dev, lib := openSolver(t)
	const n = 3
	matrix := []float32{4, 0, 0, 0, 9, 0, 0, 0, 16}
	a, info := slice(t, dev, matrix), slice(t, dev, []int32{-1})
	var elements int32 // of the workspace
	must(t, lib.With(func(l *cusolver.Library, h cusolver.DnHandle) (err error) {
		elements, err = l.DnSpotrfBufferSize(h, cublas.FillModeLower, n, 0, n)
		return err
	}))
	called := 0
	factor := lib.Call("cusolverDnSpotrf", uint64(elements)*4, func(c solver.Call) error {
		called++
		at := func(i int) cuda.DevicePtr { return cuda.DevicePtr(c.Ptrs[i]) }
		return c.DnSpotrf(c.Handle, cublas.FillModeLower, n, at(0), n, at(2), elements, at(1))
	}, a.Range(), info.Range())
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode, InOrder: true})
	must(t, err)
	_, err = rec.Add(factor)
	must(t, err)
	must(t, rec.End())
	st := dev.Queue(0).NewStream()
	for range 3 {
		must(t, st.Do(a.Upload(matrix), gpu.Execute(rec)))
		got, failed := download(t, st, a), download(t, st, info)[0]
		if want := []float32{2, 0, 0, 0, 3, 0, 0, 0, 4}; !slices.Equal(got, want) || failed != 0 {
			t.Errorf("%v, info %d; want %v", got, failed, want)
		}
	}
	if called != 3 {
		t.Errorf("the function was called %d times", called)
	}
	must(t, rec.Close())
}
