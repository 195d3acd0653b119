package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// kernels are the Go functions that the simulated GPU runs in place of the kernels.
var kernels = SimDense(twins{})

type twins struct{}

func (twins) Dense(g *simdriver.Grid, in, out, batch uint64, w, b, x, y driver.Ptr) error {
	ws, err1 := simdriver.View[float32](g, w, int(out*in))
	bs, err2 := simdriver.View[float32](g, b, int(out))
	xs, err3 := simdriver.View[float32](g, x, int(batch*in))
	ys, err4 := simdriver.View[float32](g, y, int(batch*out))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for t := range g.All() {
		j, s := t.Global[0], t.Global[1]
		if j >= out || s >= batch {
			continue
		}
		sum, row := bs[j], xs[s*in:][:in]
		for k, v := range ws[j*in:][:in] {
			sum = float32(float64(v)*float64(row[k]) + float64(sum)) // the product is exact, as in fma.rn.f32
		}
		ys[s*out+j] = max(sum, 0)
	}
	return nil
}
