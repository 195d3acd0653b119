package main

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/solver"
)

// rod computes the temperatures of a rod whose ends have 0 and 100 degrees. Each point between them
// has the mean of its neighbours' temperatures: 2·t[i] - t[i-1] - t[i+1] = 0.
func rod(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := solver.Open(dev, solver.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close()
	const n = 9
	var equations [n][n]float64
	var ends, temperatures [n]float64
	for i := range n {
		equations[i][i] = 2
		if i > 0 {
			equations[i][i-1], equations[i-1][i] = -1, -1
		}
	}
	ends[n-1] = 100
	s := dev.Queue(0).NewStream()
	matrix, _ := gpu.AllocSliceIn[float64](s, nil, n*n) // if it fails, so does Wait
	vector, _ := gpu.AllocSliceIn[float64](s, nil, n)
	info, _ := gpu.AllocSliceIn[int32](s, nil, 1)
	defer matrix.Close()
	defer vector.Close()
	defer info.Close()
	a := blas.Matrix[float64]{Data: matrix, Rows: n, Cols: n}
	b := blas.Matrix[float64]{Data: vector, Rows: 1, Cols: n} // a right-hand side, then the solution
	var outcome [1]int32
	s.Do(
		gpu.Upload(matrix.Range(), gpu.BytesOf(equations[:])), vector.Upload(ends[:]),
		solver.Cholesky(lib, a, info), info.Download(outcome[:]),
		solver.CholeskySolve(lib, a, b, info), vector.Download(temperatures[:]),
	)
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	text := fmt.Sprintf("the rod has %.1f degrees", temperatures)
	if want := "the rod has [10.0 20.0 30.0 40.0 50.0 60.0 70.0 80.0 90.0] degrees"; outcome[0] != 0 || text != want {
		return "", fmt.Errorf("info %d, %s; want %s", outcome[0], text, want)
	}
	return text, nil
}
