package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// simulated makes the simulated GPU run a Go function for the kernel of the same name.
var simulated = drivers.WithSim(simdriver.Config{Kernels: SimSaxpy(twins{})})

type twins struct{}

func (twins) Saxpy(g *simdriver.Grid, n uint64, a float32, x, y driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n))
	ys, err2 := simdriver.View[float32](g, y, int(n))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		ys[i] += a * xs[i]
	}
	return nil
}
