package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// simulated has the simulated GPU run Go functions, by the expressions for which the program asks.
var simulated = drivers.WithSim(simdriver.Config{Kernels: map[string]simdriver.Kernel{
	"saxpy<float>":  simdriver.MustKernel(simSaxpy[float32]),
	"saxpy<double>": simdriver.MustKernel(simSaxpy[float64]),
}})

func simSaxpy[T float32 | float64](g *simdriver.Grid, n uint64, a T, x, y driver.Ptr) error {
	xs, err1 := simdriver.View[T](g, x, int(n))
	ys, err2 := simdriver.View[T](g, y, int(n))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		ys[i] += a * xs[i]
	}
	return nil
}
