package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/puregpu/puregpu/runtime/gpu"
)

const (
	features  = 64
	steps     = 30
	saveEvery = 10 // steps, after which the host has the weights
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

// A state is what training goes on from: the weights after some steps. The host keeps one for each rank of this process.
type state struct {
	steps   int64
	weights []float32
}

// train trains until all steps are done, with n samples on each rank. It begins with the state that agree finds. After each part of
// the training it puts the new state of each rank into states. After an error states has what the last complete part left.
func train(ctx context.Context, channels []*gpu.Channel, n int, states []state) error {
	ranks := make([]*rank, len(channels))
	defer func() {
		for _, r := range ranks {
			r.close()
		}
	}()
	for i, c := range channels {
		var err error
		if ranks[i], err = newRank(c, n); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
	}
	if err := agree(ctx, ranks, states); err != nil {
		return err
	}
	for done := states[0].steps; done < steps; {
		part := min(saveEvery, steps-done)
		done += part
		next := make([]state, len(ranks))
		for i, r := range ranks {
			r.step(ctx, part)
			next[i] = state{done, r.download()}
		}
		for i, r := range ranks {
			if err := r.wait(ctx); err != nil {
				return err // and states[i] stays: what the device has now is undefined
			}
			states[i] = next[i]
		}
	}
	return nil
}

// agree gives all ranks the state of the rank that is furthest on, on the device and in states. When a rank has died the others have
// different states: some have seen the last part succeed, and others have not. A rank that is new has none.
func agree(ctx context.Context, ranks []*rank, states []state) error {
	at := make([][]int64, len(ranks)) // for each rank here how many steps each of all ranks has done
	for i, r := range ranks {
		at[i] = make([]int64, r.c.Count())
		r.mine.Upload(r.s, []int64{states[i].steps})
		r.collect(ctx, gpu.AllGather(r.all.Range(), r.mine.Range(), gpu.Int64))
		r.all.Download(r.s, at[i])
	}
	for _, r := range ranks {
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
	next := make([]state, len(ranks))
	for i, r := range ranks {
		furthest := slices.Max(at[i])
		root := slices.Index(at[i], furthest) // the same on all ranks
		if len(states[i].weights) > 0 {
			r.w.Upload(r.s, states[i].weights)
		} else {
			r.w.Fill(r.s, 0)
		}
		r.collect(ctx, gpu.Broadcast(r.w.Range(), r.w.Range(), gpu.Float32, root))
		next[i] = state{furthest, r.download()}
	}
	for i, r := range ranks {
		if err := r.wait(ctx); err != nil {
			return err
		}
		states[i] = next[i]
	}
	return nil
}

// A rank is a device's part in the training. All its memory is new: work of an earlier try may still run behind its failed collective,
// and write memory of that try.
type rank struct {
	c             *gpu.Channel
	n             int
	code          *TrainCode
	s             *gpu.Stream // it keeps the first error
	x, t, r, g, w gpu.Slice[float32]
	mine, all     gpu.Slice[int64] // steps done: of this rank, and of all
	free          []func() error
}

func newRank(c *gpu.Channel, n int) (r *rank, err error) {
	r = &rank{c: c, n: n, s: c.Device().Queue(0).NewStream()}
	defer func() {
		if err != nil {
			r.close()
			r = nil
		}
	}()
	if r.code, err = LoadTrain(c.Device()); err != nil {
		return r, err
	}
	r.free = append(r.free, r.code.Close)
	for _, m := range []struct {
		of *gpu.Slice[float32]
		n  int
	}{{&r.x, n * features}, {&r.t, n}, {&r.r, n}, {&r.g, features}, {&r.w, features}} {
		if *m.of, err = alloc[float32](r, m.n); err != nil {
			return r, err
		}
	}
	if r.mine, err = alloc[int64](r, 1); err != nil {
		return r, err
	}
	if r.all, err = alloc[int64](r, c.Count()); err != nil {
		return r, err
	}
	x, t := samples(c.Rank(), n)
	r.x.Upload(r.s, x)
	r.t.Upload(r.s, t)
	return r, nil
}

// alloc allocates memory that is freed when the rank is closed.
func alloc[T any](r *rank, n int) (gpu.Slice[T], error) {
	m, err := gpu.AllocSlice[T](r.c.Device(), gpu.DeviceMem, n)
	if err == nil {
		r.free = append(r.free, m.Close)
	}
	return m, err
}

// close gives back what the rank has, when the device is done with it.
func (r *rank) close() {
	if r != nil {
		for _, free := range r.free {
			free()
		}
	}
}

// step submits some steps.
func (r *rank) step(ctx context.Context, n int64) {
	for range n {
		r.code.Residual.Launch(r.s, gpu.GridFor(r.n, 256), uint64(r.n), features, r.x, r.w, r.t, r.r)
		r.code.Gradient.Launch(r.s, gpu.GridFor(features, 64), uint64(r.n), features, r.x, r.r, r.g)
		r.collect(ctx, gpu.AllReduce(r.g.Range(), r.g.Range(), gpu.Float32, gpu.Avg()))
		// This launch is in the device's stream before the all-reduce is done. If the all-reduce fails it runs all the same, with a
		// gradient that is not reduced.
		r.code.Step.Launch(r.s, gpu.GridFor(features, 64), features, rate, r.g, r.w)
	}
}

// collect makes a collective the stream's next operation.
func (r *rank) collect(ctx context.Context, op gpu.Collective) {
	r.s.Submit(func(o gpu.Order) error { return r.c.Submit(ctx, o, op) })
}

// download returns a slice that has the weights when the stream is done, if it does not fail.
func (r *rank) download() []float32 {
	w := make([]float32, features)
	r.w.Download(r.s, w)
	return w
}

// wait waits until the stream is done.
func (r *rank) wait(ctx context.Context) error {
	if err := r.s.Wait(ctx); err != nil {
		return fmt.Errorf("rank %d: %w", r.c.Rank(), err)
	}
	return nil
}

// check compares a rank's weights with the host's, and says that they are right.
func check(c *gpu.Channel, weights []float32, want []float64, n int, out io.Writer) error {
	name := c.Device().Info().Name
	for j, got := range weights {
		if !(math.Abs(float64(got)-want[j]) <= tolerance) {
			return fmt.Errorf("rank %d of %d on %s: weight %d is %v, want %v", c.Rank(), c.Count(), name, j, got, want[j])
		}
	}
	fmt.Fprintf(out, "allreduce: rank %d of %d on %s: %d steps with %d samples: ok\n", c.Rank(), c.Count(), name, steps, n)
	return nil
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
