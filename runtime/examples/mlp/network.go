package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// A network holds the parameters of its layers in host memory. A layer has a row of weights for
// each output, and then a bias for each output.
type network struct {
	params []float32
}

// newNetwork makes the same weights every time. They are scaled so that all layers' outputs have
// similar magnitudes.
func newNetwork() *network {
	r := rand.New(rand.NewPCG(1, 2))
	var n network
	for range layers {
		for range width * width {
			n.params = append(n.params, (2*r.Float32()-1)*float32(math.Sqrt(6./width)))
		}
		for range width {
			n.params = append(n.params, (2*r.Float32()-1)/10)
		}
	}
	return &n
}

// newInputs makes n batches.
func newInputs(n int) [][]float32 {
	r := rand.New(rand.NewPCG(3, 4))
	inputs := make([][]float32, n)
	for i := range inputs {
		for range batch * width {
			inputs[i] = append(inputs[i], 2*r.Float32()-1)
		}
	}
	return inputs
}

// forward runs a batch through the layers, on the host.
func (n *network) forward(x []float32) []float32 {
	params := n.params
	for range layers {
		w, b := params[:width*width], params[width*width:][:width]
		params = params[width*width+width:]
		y := make([]float32, 0, len(x))
		for len(x) > 0 {
			for j, sum := range b {
				for k, v := range w[j*width:][:width] {
					sum += v * x[k]
				}
				y = append(y, max(sum, 0))
			}
			x = x[width:]
		}
		x = y
	}
	return x
}

// compare returns the largest error of outputs, relative to the host's largest output. It returns
// an error if the largest error exceeds tolerance, or if all outputs of the host for one of the
// inputs are 0.
func (n *network) compare(inputs, outputs [][]float32) (worst float64, err error) {
	for i, x := range inputs {
		want, largest := n.forward(x), 0.
		for _, v := range want {
			largest = max(largest, float64(v))
		}
		if largest == 0 {
			return 0, errors.New("all outputs of the host are 0: there is nothing to compare")
		}
		for k, v := range want {
			e := math.Abs(float64(outputs[i][k])-float64(v)) / largest
			if !(e <= tolerance) {
				return e, fmt.Errorf("execution %d: output %d of sample %d is %v, want %v", i, k%width, k/width, outputs[i][k], v)
			}
			worst = max(worst, e)
		}
	}
	return worst, nil
}
