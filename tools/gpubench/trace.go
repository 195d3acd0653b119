package main

import (
	"errors"
	"io"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// traceBenches tell what a trace costs: the raw side is a device without one, puregpu's one with one, which is written to nowhere. The work is
// submitted ahead, each operation behind the one before. The last row is what it adds to a submission.
func traceBenches() (all []bench) {
	for _, x := range []struct {
		name string
		make func(*rig) (func(gpu.Order) error, error)
	}{
		{"fills", func(r *rig) (func(gpu.Order) error, error) {
			return func(o gpu.Order) error { return r.q.Fill(o, r.all, pattern) }, nil
		}},
		{"launches", func(r *rig) (func(gpu.Order) error, error) {
			d, err := emptyDispatch(r)
			return func(o gpu.Order) error { return r.q.Dispatch(o, d) }, err
		}},
	} {
		for _, level := range []struct {
			name  string
			times gpu.TraceTimes
		}{{"no device times", gpu.NoTimes}, {"device times", gpu.SubmissionTimes}} {
			name := "trace/2,000 " + x.name + ", " + level.name
			all = append(all, bench{
				rows: []row{
					{name: name + ": total", unit: ns},
					{name: name + ": submitting", unit: ns},
					{name: name + ": CPU", unit: ns},
					{name: name + ": added to a submission", unit: ns, goal: goal{max: 1000, device: true}},
				},
				rounds: 31,
				open:   func(e *env) (sides, error) { return traceSides(e, level.times, x.make) },
			})
		}
	}
	return all
}

func traceSides(e *env, times gpu.TraceTimes, make func(*rig) (func(gpu.Order) error, error)) (s sides, err error) {
	const n = 2000
	t, err := trace.Start(io.Discard, trace.Options{Times: times})
	if err != nil {
		return s, err
	}
	var rigs []*rig
	s.close = func() error {
		var errs []error
		for _, r := range rigs {
			errs = append(errs, r.close())
		}
		return errors.Join(append(errs, t.Close())...)
	}
	var run [2]func(f []float64) error
	for i, tracer := range []*gpu.Tracer{nil, t.Tracer()} {
		r, err := openRig(e.drv, e.index, gpu.Options{Tracer: tracer})
		if err != nil {
			return s, errors.Join(err, s.close())
		}
		rigs = append(rigs, r)
		submit, err := make(r)
		if err != nil {
			return s, errors.Join(err, s.close())
		}
		run[i] = func(f []float64) error {
			return e.beside(func() error {
				return ahead(f, n, func() error {
					for range n {
						if err := submit(r.order(r.sem, r.v, r.sem, r.v+1)); err != nil {
							return err
						}
						r.v++
					}
					return nil
				}, func() error { return r.sem.Wait(e.ctx, r.v) })
			})
		}
	}
	var without float64 // to submit one
	s.raw = func(f []float64) error {
		err := run[0](f)
		without, f[3] = f[1], f[1]
		return err
	}
	s.pure = func(f []float64) error {
		err := run[1](f)
		f[3] = f[1] - without
		return err
	}
	return s, nil
}
