package main

import (
	"errors"
	"io"
	"strings"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// traceLevels are what traces note, apart from which there is the device without a trace.
var traceLevels = [...]struct {
	name  string
	times gpu.TraceTimes
}{{"no times", gpu.NoTimes}, {"device times", gpu.SubmissionTimes}}

// traceFigures are what is told of each level: the time that the host takes for a submission, what the trace adds to that, the time in which all were
// done, by their number, and that of processors.
var traceFigures = [...]string{"submitting each", "added to each", "total each", "CPU each"}

// traceBenches tell what a trace costs: the raw side is a device without one, puregpu's one with one, which is written to nowhere. The work is
// submitted ahead, each operation behind the one before. The levels take turns.
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
		b := bench{rounds: 31, open: func(e *env) (sides, error) { return traceSides(e, x.make) }}
		for _, level := range traceLevels {
			for _, figure := range traceFigures {
				r := row{name: "trace/2,000 " + x.name + ", " + level.name + ": " + figure, unit: ns}
				if strings.HasPrefix(figure, "added") {
					r.goal = goal{max: 1000, device: true}
				}
				b.rows = append(b.rows, r)
			}
		}
		all = append(all, b)
	}
	return all
}

func traceSides(e *env, make func(*rig) (func(gpu.Order) error, error)) (s sides, err error) {
	const n = 2000
	var rigs []*rig
	var traces []*trace.Trace
	s.close = func() error {
		var errs []error
		for _, r := range rigs {
			errs = append(errs, r.close())
		}
		for _, t := range traces {
			errs = append(errs, t.Close())
		}
		return errors.Join(errs...)
	}
	// open returns a function that does the work on a device with a tracer, and says how long each submission took the host, and the whole, and the CPU.
	open := func(tracer *gpu.Tracer) (func() ([3]float64, error), error) {
		r, err := openRig(e.drv, e.index, gpu.Options{Tracer: tracer})
		if err != nil {
			return nil, err
		}
		rigs = append(rigs, r)
		submit, err := make(r)
		return func() (f [3]float64, err error) { // total, submitting, CPU
			err = e.beside(func() error {
				return ahead(f[:], n, func() error {
					for range n {
						if err := submit(r.order(r.sem, r.v, r.sem, r.v+1)); err != nil {
							return err
						}
						r.v++
					}
					return nil
				}, func() error { return r.sem.Wait(e.ctx, r.v) })
			})
			return f, err
		}, err
	}
	off, err := open(nil)
	if err != nil {
		return s, errors.Join(err, s.close())
	}
	var on [len(traceLevels)]func() ([3]float64, error)
	for i, level := range traceLevels {
		t, err := trace.Start(io.Discard, trace.Options{Times: level.times})
		if err == nil {
			traces = append(traces, t)
			on[i], err = open(t.Tracer())
		}
		if err != nil {
			return s, errors.Join(err, s.close())
		}
	}
	var without [3]float64
	tell := func(f []float64, level int, x [3]float64, added float64) {
		copy(f[level*len(traceFigures):], []float64{x[1], added, x[0], x[2]})
	}
	s.raw = func(f []float64) (err error) {
		without, err = off()
		for level := range traceLevels {
			tell(f, level, without, without[1])
		}
		return err
	}
	s.pure = func(f []float64) error {
		for level := range traceLevels {
			x, err := on[level]()
			if err == nil {
				err = traces[level].Flush() // so that nothing of it is in the next one's way
			}
			if err != nil {
				return err
			}
			tell(f, level, x, x[1]-without[1])
		}
		return nil
	}
	return s, nil
}
