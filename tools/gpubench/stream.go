package main

import (
	"errors"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// streamBenches compare a stream's calls with a queue's calls, which are the raw side. The work is
// submitted ahead, and each operation waits for the one before.
func streamBenches() (all []bench) {
	for _, x := range []struct {
		name string
		make func(*rig) (queue func(gpu.Order) error, stream func(*gpu.Stream) error, err error)
	}{
		{"fills", func(r *rig) (func(gpu.Order) error, func(*gpu.Stream) error, error) {
			return func(o gpu.Order) error { return r.q.Submit(o, gpu.Fill(r.all, pattern)) },
				func(s *gpu.Stream) error { return s.Fill(r.all, pattern) }, nil
		}},
		{"launches", func(r *rig) (func(gpu.Order) error, func(*gpu.Stream) error, error) {
			k, err := emptyKernel[emptyArgs](r)
			op := k.Launch(gpu.Grid{}, emptyArgs{r.all})
			return func(o gpu.Order) error { return r.q.Submit(o, op) },
				func(s *gpu.Stream) error { return s.Do(op) }, err
		}},
		{"launches with typed arguments", func(r *rig) (func(gpu.Order) error, func(*gpu.Stream) error, error) {
			k, err := emptyKernel[emptyArgs](r)
			op := k.Launch(gpu.Grid{}, emptyArgs{r.all})
			return func(o gpu.Order) error { return r.q.Submit(o, op) },
				func(s *gpu.Stream) error { return s.Do(k.Launch(gpu.Grid{}, emptyArgs{r.all})) }, err
		}},
	} {
		all = append(all, bench{
			rows: []row{
				{name: "stream/2,000 " + x.name + ": total", unit: ns},
				{name: "stream/2,000 " + x.name + ": submitting", unit: ns, goal: goal{max: 1.05, of: ofRaw, device: true}},
				{name: "stream/2,000 " + x.name + ": CPU", unit: ns},
			},
			rounds: 61,
			open: func(e *env) (s sides, err error) {
				r, err := newRig(e, 1)
				if err != nil {
					return s, err
				}
				queue, stream, err := x.make(r)
				if err != nil {
					return s, errors.Join(err, r.close())
				}
				const n = 2000
				st := r.q.NewStream()
				return sides{
					raw: func(f []float64) error { return r.ahead(e, f, n, queue) },
					pure: func(f []float64) error {
						return e.beside(func() error {
							return ahead(f, n, func() error {
								for range n {
									if err := stream(st); err != nil {
										return err
									}
								}
								return nil
							}, func() error { return st.Wait(e.ctx) })
						})
					},
					close: r.close,
				}, nil
			},
		})
	}
	return all
}
