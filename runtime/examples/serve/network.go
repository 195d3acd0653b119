package main

import (
	"math"
	"math/rand/v2"
)

// A layer holds its parameters in host memory: for each output a row of weights and a bias.
type layer struct {
	in, out int
	w, b    []float32
}

// newNetwork makes layers with the given numbers of inputs and outputs, the same every time. A real
// server reads a file here.
func newNetwork(sizes ...int) []layer {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int, scale float64) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = float32(scale * (2*r.Float64() - 1))
		}
		return all
	}
	var layers []layer
	for i, out := range sizes[1:] {
		in := sizes[i]
		layers = append(layers, layer{in, out, random(in*out, math.Sqrt(6/float64(in))), random(out, 0.1)})
	}
	return layers
}
