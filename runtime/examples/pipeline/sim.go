package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// kernels are the Go functions that the simulated GPU runs in place of the kernels.
var kernels = SimScale(twins{})

var simulated = drivers.WithSim(simdriver.Config{Kernels: kernels})

type twins struct{}

func (twins) Scale(g *simdriver.Grid, n uint64, a, b float32, x, y driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n))
	ys, err2 := simdriver.View[float32](g, y, int(n))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		ys[i] = a*xs[i] + b
	}
	return nil
}
