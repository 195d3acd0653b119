package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
)

const (
	features  = 64
	steps     = 30
	saveEvery = 10 // steps between downloads of the weights
	rate      = 1
	// tolerance is the largest allowed difference between a weight and the host's. The host sums in
	// another order and with higher precision.
	tolerance = 1e-3
)

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -name train kernel.cu kernel.ptx

// samples makes a rank's samples: n rows of features, and a target for each row. The weights to
// find are 0, 1, 2, 3, 0, and so on.
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

// A state is the weights after some steps. Training continues from a state after a failure. The
// host keeps a state for each rank of this process.
type state struct {
	steps   int64
	weights []float32
}

// train trains until all steps are done, with n samples on each rank. It begins with the state that
// agree finds. After each part of the training it stores the new state of each rank in states. If
// train returns an error, states has for each rank the state after some complete part, perhaps not
// the same part for all ranks.
func train(ctx context.Context, communicators []*collective.Communicator, n int, states []state) error {
	ranks := make([]*rank, len(communicators))
	defer func() {
		for _, r := range ranks {
			r.close()
		}
	}()
	for i, c := range communicators {
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
				return err // keep states[i]: the device's weights are undefined now
			}
			states[i] = next[i]
		}
	}
	return nil
}

// agree finds the rank that has done the most steps, and copies that rank's state to all ranks, on
// the device and in states. After a rank has died, the states of the remaining ranks may differ:
// the last part may have succeeded on some ranks and failed on others. A new rank has no state.
func agree(ctx context.Context, ranks []*rank, states []state) error {
	at := make([][]int64, len(ranks)) // for each rank of this process: the step counts of all ranks
	for i, r := range ranks {
		at[i] = make([]int64, r.c.Count())
		r.s.Do(
			r.mine.Upload([]int64{states[i].steps}),
			r.c.GroupContext(ctx, collective.AllGather(r.all.Range(), r.mine.Range(), collective.Int64)),
			r.all.Download(at[i]),
		)
	}
	for _, r := range ranks {
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
	next := make([]state, len(ranks))
	for i, r := range ranks {
		furthest := slices.Max(at[i])
		root := slices.Index(at[i], furthest) // every rank finds the same root
		if len(states[i].weights) > 0 {
			r.s.Do(r.w.Upload(states[i].weights))
		} else {
			r.s.Do(r.w.Fill(0))
		}
		r.s.Do(r.c.GroupContext(ctx, collective.Broadcast(r.w.Range(), r.w.Range(), collective.Float32, root)))
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

// A rank is a device's part in one attempt to train. Each rank allocates new memory: work of an
// earlier attempt may still run after a collective has failed, and write to the earlier attempt's
// memory.
type rank struct {
	c             *collective.Communicator
	n             int
	code          *TrainCode
	s             *gpu.Stream // keeps the first error
	x, t, r, g, w gpu.Slice[float32]
	mine, all     gpu.Slice[int64] // steps done by this rank, and by each rank
	free          []func() error
}

func newRank(c *collective.Communicator, n int) (r *rank, err error) {
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
	r.s.Do(r.x.Upload(x), r.t.Upload(t))
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

// close frees the rank's code and memory once the device no longer uses them.
func (r *rank) close() {
	if r != nil {
		for _, free := range r.free {
			free()
		}
	}
}

// step submits n steps.
func (r *rank) step(ctx context.Context, n int64) {
	for range n {
		r.s.Do(
			r.code.Residual.Launch(gpu.GridFor(r.n, 256), uint64(r.n), features, r.x, r.w, r.t, r.r),
			r.code.Gradient.Launch(gpu.GridFor(features, 64), uint64(r.n), features, r.x, r.r, r.g),
			r.c.GroupContext(ctx, collective.AllReduce(r.g.Range(), r.g.Range(), collective.Float32, collective.Avg())),
			// The device receives this launch before the all-reduce completes. If the all-reduce
			// fails, the launch still runs, with a gradient that is not reduced.
			r.code.Step.Launch(gpu.GridFor(features, 64), features, rate, r.g, r.w),
		)
	}
}

// download returns a slice that holds the weights once the stream has completed, unless the stream
// fails.
func (r *rank) download() []float32 {
	w := make([]float32, features)
	r.s.Do(r.w.Download(w))
	return w
}

// wait waits for the stream.
func (r *rank) wait(ctx context.Context) error {
	if err := r.s.Wait(ctx); err != nil {
		return fmt.Errorf("rank %d: %w", r.c.Rank(), err)
	}
	return nil
}

// check compares a rank's weights with the host's, and reports success to the Writer out.
func check(c *collective.Communicator, weights []float32, want []float64, n int, out io.Writer) error {
	name := c.Device().Info().Name
	for j, got := range weights {
		if !(math.Abs(float64(got)-want[j]) <= tolerance) {
			return fmt.Errorf("rank %d of %d on %s: weight %d is %v, want %v", c.Rank(), c.Count(), name, j, got, want[j])
		}
	}
	fmt.Fprintf(out, "allreduce: rank %d of %d on %s: %d steps with %d samples: ok\n", c.Rank(), c.Count(), name, steps, n)
	return nil
}

// hostWeights computes, on the host, the weights after training with the samples of all ranks.
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
