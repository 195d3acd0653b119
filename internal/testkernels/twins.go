// Package testkernels has CUDA C++ kernels for tests, which launch them as Go functions on real and
// simulated GPUs.
package testkernels

import (
	"errors"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -pkg testkernels -runtime -arch compute_75 kernels.cu

// Twins implements the kernels in Go, for simulated GPUs.
type Twins struct{}

var _ KernelsTwins = Twins{}

func (Twins) VectorAdd(g *simdriver.Grid, n uint32, x, y, out driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n))
	ys, err2 := simdriver.View[float32](g, y, int(n))
	outs, err3 := simdriver.View[float32](g, out, int(n))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	for i := range min(uint64(n), g.Size()) {
		outs[i] = xs[i] + ys[i]
	}
	return nil
}

func (Twins) Softmax(g *simdriver.Grid, columns uint32, scale float32, x, out driver.Ptr) error {
	n := int(g.Blocks[0]) * int(columns)
	xs, err1 := simdriver.View[float32](g, x, n)
	outs, err2 := simdriver.View[float32](g, out, n)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if g.Shared < 4*g.Threads[0] {
		return errors.New("too little dynamic shared memory")
	}
	for len(xs) > 0 {
		row, to := xs[:columns], outs[:columns]
		xs, outs = xs[columns:], outs[columns:]
		most := float32(math.Inf(-1))
		for _, v := range row {
			most = max(most, scale*v)
		}
		sum := float32(0)
		for i, v := range row {
			to[i] = float32(math.Exp(float64(scale*v - most)))
			sum += to[i]
		}
		for i := range to {
			to[i] /= sum
		}
	}
	return nil
}

func (Twins) Matmul(g *simdriver.Grid, m, n, k int32, a, b, c driver.Ptr) error {
	as, err1 := simdriver.View[float32](g, a, int(m)*int(k))
	bs, err2 := simdriver.View[float32](g, b, int(k)*int(n))
	cs, err3 := simdriver.View[float32](g, c, int(m)*int(n))
	at, _, ok := g.Global("factor")
	factor, err4 := simdriver.View[float32](g, at, 1)
	if err := errors.Join(err1, err2, err3, err4); err != nil || !ok {
		return errors.Join(errors.New("matmul: arguments or its variable"), err)
	}
	for t := range g.All() {
		row, column := int(t.Global[1]), int(t.Global[0])
		if row >= int(m) || column >= int(n) {
			continue
		}
		sum := float32(0)
		for i := range int(k) {
			sum = float32(float64(as[row*int(k)+i])*float64(bs[i*int(n)+column]) + float64(sum)) // rounded once, as fmaf is
		}
		cs[row*int(n)+column] = factor[0] * sum
	}
	return nil
}
