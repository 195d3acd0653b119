package main

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// line fits a line through points by least squares. The matrix m has a row 1, x, y for each
// point, so the product mᵀ·m has all sums from which the slope and the intercept follow.
func line(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := blas.Open(dev, blas.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close()
	const n = 1000
	var rows []float64
	for i := range n {
		x, noise := float64(i), [4]float64{1, -1, -1, 1}[i%4] // the noise does not change the line's slope and intercept
		rows = append(rows, 1, x, 2*x+3+noise)
	}
	s := dev.Queue(0).NewStream()
	points, _ := gpu.AllocSliceIn[float64](s, nil, 3*n) // if it fails, so does Wait
	sums, _ := gpu.AllocSliceIn[float64](s, nil, 9)
	defer points.Close()
	defer sums.Close()
	m := blas.Matrix[float64]{Data: points, Rows: n, Cols: 3}
	product := blas.Matrix[float64]{Data: sums, Rows: 3, Cols: 3}
	sum := make([]float64, 9)
	s.Do(points.Upload(rows), blas.Gemm(lib, product, m.T(), m), sums.Download(sum))
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	x, y, xx, xy := sum[1], sum[2], sum[4], sum[5]
	slope := (n*xy - x*y) / (n*xx - x*x)
	text := fmt.Sprintf("the line through %d points is y = %.3f·x + %.3f", n, slope, (y-slope*x)/n)
	if want := "the line through 1000 points is y = 2.000·x + 3.000"; text != want {
		return "", fmt.Errorf("%s; want %s", text, want)
	}
	return text, nil
}
