package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// simulated makes the simulated GPU run Go functions for the kernel's instances.
var simulated = drivers.WithSim(simdriver.Config{Kernels: SimSaxpy(twins{})})

type twins struct{}

func (twins) SaxpyFloat(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
	return simSaxpy(g, n, a, x, y)
}

func (twins) SaxpyDouble(g *simdriver.Grid, n uint64, a float64, x, y driver.Ptr) error {
	return simSaxpy(g, n, a, x, y)
}

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
