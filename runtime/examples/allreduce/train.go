package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/puregpu/puregpu/runtime/gpu"
)

const (
	features  = 64
	steps     = 30
	rate      = 1
	tolerance = 1e-3 // how far a weight may be from the host's, which adds up in another order and with more digits
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name train kernel.cu kernel.ptx

// samples makes a rank's samples: n rows of features, and the target of each. The weights to be found are 0, 1, 2, 3, 0, and so on.
func samples(rank, n int) (x, targets []float32) {
	r := rand.New(rand.NewPCG(uint64(rank), 1))
	x, targets = make([]float32, n*features), make([]float32, n)
	for i := range targets {
		for j := range features {
			v := 2*r.Float32() - 1
			x[i*features+j] = v
			targets[i] += v * float32(j%4)
		}
	}
	return x, targets
}

// train has the devices of this process take part in the training, with n samples each, waits, and compares the weights that each of them
// ends up with.
func train(ctx context.Context, channels []*gpu.Channel, n int, out io.Writer) error {
	streams := make([]*gpu.Stream, len(channels))
	weights := make([][]float32, len(channels))
	for i, c := range channels {
		weights[i] = make([]float32, features)
		var err error
		if streams[i], err = submit(ctx, c, n, weights[i]); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
	}
	want := hostWeights(channels[0].Count(), n)
	for i, c := range channels {
		name := c.Device().Info().Name
		if err := streams[i].Wait(ctx); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
		for j, got := range weights[i] {
			if !(math.Abs(float64(got)-want[j]) <= tolerance) {
				return fmt.Errorf("rank %d of %d on %s: weight %d is %v, want %v", c.Rank(), c.Count(), name, j, got, want[j])
			}
		}
		fmt.Fprintf(out, "allreduce: rank %d of %d on %s: %d steps with %d samples: ok\n", c.Rank(), c.Count(), name, steps, n)
	}
	return nil
}

// submit submits all steps of a rank to a stream of its device. When the stream is done the weights are in w.
func submit(ctx context.Context, c *gpu.Channel, n int, w []float32) (*gpu.Stream, error) {
	dev := c.Device()
	code, err := LoadTrain(dev)
	if err != nil {
		return nil, err
	}
	hostX, hostT := samples(c.Rank(), n)
	s := dev.Queue(0).NewStream() // it keeps the first error
	x, _ := gpu.AllocaSlice[float32](s, nil, len(hostX))
	t, _ := gpu.AllocaSlice[float32](s, nil, n)
	r, _ := gpu.AllocaSlice[float32](s, nil, n)
	g, _ := gpu.AllocaSlice[float32](s, nil, features)
	ws, _ := gpu.AllocaSlice[float32](s, nil, features)
	x.Upload(s, hostX)
	t.Upload(s, hostT)
	ws.Fill(s, 0)
	for range steps {
		code.Residual.Launch(s, gpu.GridFor(n, 256), uint64(n), features, x, ws, t, r)
		code.Gradient.Launch(s, gpu.GridFor(features, 64), uint64(n), features, x, r, g)
		s.Submit(func(o gpu.Order) error {
			return c.Submit(ctx, o, gpu.AllReduce(g.Range(), g.Range(), gpu.Float32, gpu.Avg()))
		})
		code.Step.Launch(s, gpu.GridFor(features, 64), features, rate, g, ws)
	}
	ws.Download(s, w)
	for _, m := range []gpu.Slice[float32]{x, t, r, g, ws} {
		m.Dealloca(s)
	}
	return s, nil
}

// hostWeights returns the weights that training with the samples of all ranks comes to.
func hostWeights(ranks, n int) []float64 {
	w := make([]float64, features)
	xs, ts := make([][]float32, ranks), make([][]float32, ranks)
	for rank := range ranks {
		xs[rank], ts[rank] = samples(rank, n)
	}
	for range steps {
		g := make([]float64, features)
		for rank := range ranks {
			for i, t := range ts[rank] {
				row, r := xs[rank][i*features:][:features], -float64(t)
				for j, v := range row {
					r += float64(v) * w[j]
				}
				for j, v := range row {
					g[j] += float64(v) * r
				}
			}
		}
		for j := range w {
			w[j] -= rate * g[j] / float64(ranks*n)
		}
	}
	return w
}
