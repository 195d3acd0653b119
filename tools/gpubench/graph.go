package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// graphBenches returns the benchmarks that execute command buffers, and the one that records
// command buffers. A command buffer has empty kernels, one after the other, and the host waits for
// each execution. The raw side launches the same graph, or the same kernels, and then records an
// event to wait for. The raw time of submitting does not include that event.
func graphBenches() []bench {
	rows := func(what string, max float64) []row {
		g := goal{max: max, of: ofRaw, device: true}
		return []row{{name: "graph/" + what + ": submitting", unit: ns}, {name: "graph/" + what + ": until done", unit: ns, goal: g}}
	}
	return []bench{
		{
			rows:   rows("10 kernels", 1.1),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 10, times: 200})
			},
		},
		{
			rows:   rows("1,000 kernels", 1.1),
			rounds: 15,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 1000, times: 10})
			},
		},
		{
			rows:   rows("10 kernels, each bound anew", 1.2),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 10, times: 200, bound: true})
			},
		},
		{
			rows:   rows("82 kernels, a scalar of one changed", 1.2),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 82, times: 100, changed: 1})
			},
		},
		{
			rows:   rows("82 kernels, a scalar of 48 changed", 1.2),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 82, times: 100, changed: 48})
			},
		},
		{
			rows:   rows("82 kernels, each bound anew", 1.2),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.GraphMode, kernels: 82, times: 100, bound: true})
			},
		},
		{
			rows:   rows("10 kernels, launched one by one", 1.1),
			rounds: 31,
			open: func(e *env) (sides, error) {
				return execute(e, execution{mode: gpu.StreamMode, kernels: 10, times: 200})
			},
		},
		recordBench(),
	}
}

// An execution describes the executions of a round.
type execution struct {
	mode    gpu.Mode
	kernels int
	times   int
	bound   bool // each kernel's argument is a binding, with a new range in each execution
	changed int  // number of kernels whose argument is a parameter, with a new value in each execution
}

// sets returns how many nodes of the graph each execution sets.
func (x *execution) sets() int {
	if x.bound {
		return x.kernels
	}
	return x.changed
}

// execute executes a command buffer on one side and launches a graph, or kernels, on the other.
func execute(e *env, x execution) (s sides, err error) {
	if x.mode == gpu.GraphMode && !e.caps.Graphs {
		return s, fmt.Errorf("%w: the device has no graphs", errNotRun)
	}
	r, err := newRig(e, 1)
	if err != nil {
		return s, err
	}
	var graph rawGraph
	s.close = func() error {
		if graph == nil {
			return r.close()
		}
		return errors.Join(e.thread.do(graph.close), r.close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	c, p, err := record(r, x)
	if err != nil {
		return s, err
	}
	err = e.thread.do(func() (err error) {
		if err = e.raw.load(); err == nil && x.mode == gpu.GraphMode {
			graph, err = e.raw.chain(x.kernels)
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("raw side: %w", err)
	}
	var sets [2][]gpu.Range
	if x.bound {
		for i := range 2 * x.kernels {
			sets[i%2] = append(sets[i%2], gpu.Range{Buffer: r.all.Buffer, Offset: uint64(i) * argSize, Size: argSize})
		}
	}
	turn := uint64(0)
	launch := func() error {
		if x.mode == gpu.GraphMode {
			turn++
			for i := range x.sets() {
				if err := graph.set(i, turn); err != nil {
					return err
				}
			}
			return graph.launch(0)
		}
		for range x.kernels {
			if err := e.raw.launch(0); err != nil {
				return err
			}
		}
		return nil
	}
	mark := func() error {
		if err := e.raw.record(0, 0); err != nil {
			return err
		}
		return e.await(0)
	}
	submitting, total := make([]time.Duration, x.times), make([]time.Duration, x.times)
	s.raw = func(f []float64) error {
		return e.anywhere(func() error { return parts(f, submitting, total, launch, mark) })
	}
	s.pure = func(f []float64) error {
		return parts(f, submitting, total, func() error {
			r.v++
			op := gpu.Execute(c, sets[r.v%2]...)
			if x.changed > 0 {
				op = op.With(p.Value(r.v))
			}
			return r.q.Submit(r.order(nil, 0, r.sem, r.v), op)
		}, func() error { return r.sem.Wait(e.ctx, r.v) })
	}
	return s, nil
}

// argSize is the number of bytes for the argument of each kernel.
const argSize = 16

// record records the kernels of an execution. p is the parameter of the first x.changed kernels.
func record(r *rig, x execution) (c *gpu.CommandBuffer, p gpu.Param[uint64], err error) {
	k, err := emptyKernel[emptyArgs](r)
	if err != nil {
		return nil, p, err
	}
	scalar, err := emptyKernel[scalarArgs](r)
	if err != nil {
		return nil, p, err
	}
	if c, err = r.dev.NewCommandBuffer(gpu.CommandOptions{Mode: x.mode}); err != nil {
		return nil, p, err
	}
	if p, err = gpu.NewParam(c, uint64(0)); err != nil {
		return nil, p, err
	}
	args := emptyArgs{r.all}
	for i := range x.kernels {
		if x.bound {
			b, err := c.Binding()
			if err != nil {
				return nil, p, err
			}
			args.p = gpu.Range{Buffer: b, Size: argSize}
		}
		if _, err := c.Add(gpu.Barrier()); err != nil {
			return nil, p, err
		}
		op := k.Launch(gpu.Grid{}, args)
		if i < x.changed {
			op = scalar.Launch(gpu.Grid{}, scalarArgs{}).Param(0, p)
		}
		if _, err := c.Add(op); err != nil {
			return nil, p, err
		}
	}
	return c, p, c.End()
}

// emptyArgs and scalarArgs are the two forms of the empty kernel's argument.
type (
	emptyArgs  struct{ p gpu.Range }
	scalarArgs struct{ p uint64 } //lint:ignore U1000 the kernel's parameter
)

// emptyKernel loads the empty kernel.
func emptyKernel[A any](r *rig) (*gpu.TypedKernel[A], error) {
	code, err := r.dev.Load(kernels.Empty)
	if err != nil {
		return nil, err
	}
	k, err := code.Kernel("empty")
	if err != nil {
		return nil, err
	}
	return gpu.Typed[A](k)
}

// parts submits and waits once for each element of the list total. It stores the median time of
// submitting, and the median time of submitting and waiting together.
func parts(f []float64, submitting, total []time.Duration, submit, wait func() error) error {
	for i := range total {
		start := time.Now()
		if err := submit(); err != nil {
			return err
		}
		submitting[i] = time.Since(start)
		if err := wait(); err != nil {
			return err
		}
		total[i] = time.Since(start)
	}
	f[0], f[1] = p50(submitting), p50(total)
	return nil
}

// recordBench times CommandBuffer.Add.
func recordBench() bench {
	const n = 1000
	return bench{
		rows:   []row{{name: "graph/recording a kernel", unit: ns, goal: goal{max: 300}}},
		rounds: 31,
		open: func(e *env) (s sides, err error) {
			r, err := newRig(e, 1)
			if err != nil {
				return s, err
			}
			k, err := emptyKernel[emptyArgs](r)
			if err != nil {
				return s, errors.Join(err, r.close())
			}
			return sides{
				pure: func(f []float64) error {
					c, err := r.dev.NewCommandBuffer(gpu.CommandOptions{})
					if err != nil {
						return err
					}
					start := time.Now()
					for range n {
						if _, err := c.Add(k.Launch(gpu.Grid{}, emptyArgs{r.all})); err != nil {
							return err
						}
					}
					f[0] = each(time.Since(start), n)
					return c.Close()
				},
				close: r.close,
			}, nil
		},
	}
}
