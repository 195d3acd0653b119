package main

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// simulation says what the simulated GPU runs where a GPU would run the PTX kernel of the same name.
var simulation = drivers.WithSim(simdriver.Config{
	Kernels: map[string]simdriver.Kernel{"saxpy": simdriver.MustKernel(saxpy)},
})

func saxpy(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
	xs, err := simdriver.View[float32](g, x, int(n))
	if err != nil {
		return err
	}
	ys, err := simdriver.View[float32](g, y, int(n))
	if err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		ys[i] += a * xs[i]
	}
	return nil
}
