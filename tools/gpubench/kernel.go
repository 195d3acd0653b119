package main

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// kernelBenches time launches of a kernel with four arguments on a queue. Each launch runs after
// the one before, and a program can wait for each launch. The raw side is a loop of cuLaunchKernel,
// in C if -c names the C loops, with an event behind the last launch only. In the rows named "raw
// with an event behind each", and in the last row, the raw side is a Go loop that records an event
// behind each launch, so that a program could wait for each launch on that side too.
func kernelBenches() []bench {
	const n = 2000
	rows := func(events string) []row {
		name := "kernel/2,000 launches" + events + ": "
		return []row{{name: name + "total", unit: ns}, {name: name + "submitting", unit: ns}, {name: name + "CPU", unit: ns}}
	}
	bare := rows("")
	bare[1].goal = goal{max: 1.2, of: ofRaw, device: true}
	return []bench{
		{rows: bare, rounds: 61, open: func(e *env) (sides, error) { return launches(e, n, false) }},
		{rows: rows(", raw with an event behind each"), rounds: 61, open: func(e *env) (sides, error) { return launches(e, n, true) }},
		{
			rows:   []row{{name: "kernel/launch, p50 to wait", unit: ns, goal: goal{max: 1.15, of: ofRaw, device: true}}},
			rounds: 31,
			open: func(e *env) (sides, error) {
				x, err := newLauncher(e)
				if err != nil {
					return sides{}, err
				}
				times := make([]time.Duration, 1000)
				return sides{
					raw: func(f []float64) error {
						return e.anywhere(func() (err error) {
							f[0], err = typical(times, func() error {
								if err := x.raw(1, true); err != nil {
									return err
								}
								return e.await(x.mark)
							})
							return err
						})
					},
					pure: func(f []float64) (err error) {
						f[0], err = typical(times, func() error {
							x.r.v++
							if err := x.r.q.Submit(x.r.order(nil, 0, x.r.sem, x.r.v), x.op()); err != nil {
								return err
							}
							return x.r.sem.Wait(e.ctx, x.r.v)
						})
						return err
					},
					close: x.close,
				}, nil
			},
		},
	}
}

// launches returns both sides of a benchmark that submits n launches ahead. If events is set, the
// raw side records an event behind each launch, otherwise only behind the last one.
func launches(e *env, n int, events bool) (sides, error) {
	x, err := newLauncher(e)
	if err != nil {
		return sides{}, err
	}
	return sides{
		raw: func(f []float64) error {
			return e.thread.do(func() error {
				return ahead(f, n, func() error { return x.raw(n, events) }, func() error { return e.await(x.mark) })
			})
		},
		pure: func(f []float64) error {
			return x.r.ahead(e, f, n, func(o gpu.Order) error { return x.r.q.Submit(o, x.op()) })
		},
		close: x.close,
	}, nil
}

// A launcher launches a kernel on both sides of a benchmark.
type launcher struct {
	e      *env
	r      *rig
	k      *gpu.TypedKernel[indexArgs]
	args   indexArgs
	mod    cuda.Module
	fn     cuda.Function
	params []unsafe.Pointer
	mark   int   // the last event that the raw side recorded
	c      *loop // nil without -c
	launch uintptr
}

// indexArgs are the arguments of the kernel.
type indexArgs struct {
	n           uint64 //lint:ignore U1000 the kernel reads it
	first, step uint32 //lint:ignore U1000 the kernel reads them
	out         gpu.Range
}

// op makes a launch.
func (x *launcher) op() gpu.Op { return x.k.Launch(gpu.Grid{}, x.args) }

// newLauncher loads the kernel on both sides. The arguments are the same, and for zero elements, so
// that the kernel ends at once.
func newLauncher(e *env) (x *launcher, err error) {
	if e.lib == nil {
		return nil, fmt.Errorf("%w: the raw side calls the CUDA driver", errNotRun)
	}
	r, err := newRig(e, 1)
	if err != nil {
		return nil, err
	}
	x = &launcher{e: e, r: r}
	if err = x.open(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *launcher) open() (err error) {
	if x.e.opt.cloop != "" {
		if x.c, err = openLoop(x.e.opt.cloop); err != nil {
			return err
		}
		if x.launch, err = address(x.e.lib, "cuLaunchKernel"); err != nil {
			return err
		}
	}
	code, err := x.r.dev.Load(kernels.Basic)
	if err != nil {
		return err
	}
	args := &struct {
		n           uint64
		first, step uint32
		out         uint64
	}{out: uint64(x.r.all.Buffer.Ptr())}
	x.params = []unsafe.Pointer{unsafe.Pointer(&args.n), unsafe.Pointer(&args.first), unsafe.Pointer(&args.step), unsafe.Pointer(&args.out)}
	k, err := code.Kernel("index")
	if err != nil {
		return err
	}
	if x.k, err = gpu.Typed[indexArgs](k); err != nil {
		return err
	}
	x.args.out = x.r.all
	return x.e.thread.do(func() error {
		if x.mod, err = x.e.lib.ModuleLoadData(unsafe.Pointer(&kernels.Basic[0])); err == nil {
			x.fn, err = x.e.lib.ModuleGetFunction(x.mod, "index")
		}
		return err
	})
}

// raw launches n kernels, with an event behind each, or behind the last.
func (x *launcher) raw(n int, events bool) error {
	stream := x.e.raw.(*rawCUDA).stream[0]
	if x.c != nil && !events {
		if _, err := x.c.launch(x.launch, x.fn, stream, &x.params[0], uint64(n)); err != nil {
			return err
		}
		return x.record()
	}
	for i := range n {
		if err := x.e.lib.LaunchKernel(x.fn, 1, 1, 1, 1, 1, 1, 0, stream, x.params, nil); err != nil {
			return err
		}
		if events || i == n-1 {
			if err := x.record(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *launcher) record() error {
	x.mark = (x.mark + 1) % rawEvents
	return x.e.raw.record(x.mark, 0)
}

func (x *launcher) close() error {
	err := x.r.close()
	if x.mod != 0 {
		err = errors.Join(err, x.e.thread.do(func() error { return x.e.lib.ModuleUnload(x.mod) }))
	}
	return err
}
