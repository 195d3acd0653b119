package main

import (
	"context"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/sparse"
)

// pageRank ranks five web pages. A visitor follows one of a page's links with probability 0.85, and
// otherwise goes to any page. Row i of the matrix has the links of page i, so the matrix's
// transpose moves the visitors.
func pageRank(ctx context.Context, dev *gpu.Device) (string, error) {
	lib, err := sparse.Open(dev, sparse.Options{})
	if err != nil {
		return "", err
	}
	defer lib.Close()
	const n, damping = 5, 0.85
	starts := []int32{0, 3, 5, 6, 8, 9}           // page 0 has links 0 to 2, page 1 has links 3 and 4
	columns := []int32{1, 2, 3, 0, 2, 0, 0, 4, 0} // which page each link goes to
	values := []float64{1. / 3, 1. / 3, 1. / 3, 1. / 2, 1. / 2, 1, 1. / 2, 1. / 2, 1}
	s := dev.Queue(0).NewStream()
	m := sparse.Matrix[float64]{Rows: n, Cols: n}
	m.RowStarts, _ = gpu.AllocSliceIn[int32](s, nil, len(starts)) // if the allocation fails, s.Wait fails too
	m.Columns, _ = gpu.AllocSliceIn[int32](s, nil, len(columns))
	m.Values, _ = gpu.AllocSliceIn[float64](s, nil, len(values))
	x, _ := gpu.AllocSliceIn[float64](s, nil, n)
	y, _ := gpu.AllocSliceIn[float64](s, nil, n)
	s.Do(m.RowStarts.Upload(starts), m.Columns.Upload(columns), m.Values.Upload(values), x.Fill(1./n))
	for range 100 {
		s.Do(y.Fill(1./n), sparse.MatVecWith(lib, y, m.T(), x, sparse.VecOptions{Alpha: damping, Beta: 1 - damping}))
		x, y = y, x
	}
	var ranks, next [n]float64 // next holds the ranks after one more step, which must change nothing
	s.Do(x.Download(ranks[:]), m.RowStarts.Free(), m.Columns.Free(), m.Values.Free(), x.Free(), y.Free())
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	for page, rank := range ranks {
		for k := starts[page]; k < starts[page+1]; k++ {
			next[columns[k]] += damping * values[k] * rank
		}
	}
	for page, rank := range ranks {
		if want := next[page] + (1-damping)/n; !(math.Abs(rank-want) < 1e-9) { // NaN is wrong too
			return "", fmt.Errorf("the rank of page %d is %v, want %v", page, rank, want)
		}
	}
	return fmt.Sprintf("the ranks of five pages are %.3f", ranks), nil
}
