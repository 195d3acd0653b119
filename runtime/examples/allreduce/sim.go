package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// kernels are the Go functions that the simulated GPU runs in place of the kernels.
var kernels = SimTrain(twins{})

type twins struct{}

func (twins) Residual(g *simdriver.Grid, n, k uint64, x, w, t, r driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n*k))
	ws, err2 := simdriver.View[float32](g, w, int(k))
	ts, err3 := simdriver.View[float32](g, t, int(n))
	rs, err4 := simdriver.View[float32](g, r, int(n))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for i := range min(n, g.Size()) {
		sum := -ts[i]
		for j, v := range xs[i*k:][:k] {
			sum += v * ws[j]
		}
		rs[i] = sum
	}
	return nil
}

func (twins) Gradient(g *simdriver.Grid, n, k uint64, x, r, grad driver.Ptr) error {
	xs, err1 := simdriver.View[float32](g, x, int(n*k))
	rs, err2 := simdriver.View[float32](g, r, int(n))
	gs, err3 := simdriver.View[float32](g, grad, int(k))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	for j := range min(k, g.Size()) {
		sum := float32(0)
		for i, v := range rs {
			sum += xs[uint64(i)*k+j] * v
		}
		gs[j] = sum / float32(n)
	}
	return nil
}

func (twins) Step(g *simdriver.Grid, k uint64, rate float32, grad, w driver.Ptr) error {
	gs, err1 := simdriver.View[float32](g, grad, int(k))
	ws, err2 := simdriver.View[float32](g, w, int(k))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for j := range min(k, g.Size()) {
		ws[j] -= rate * gs[j]
	}
	return nil
}
