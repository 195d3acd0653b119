package main

import (
	"errors"
	"io"
	"math"
	"strings"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

// traceLevels are the levels of detail of traces. A device without a trace is measured too.
var traceLevels = [...]struct {
	name  string
	times trace.Times
}{{"no times", trace.NoTimes}, {"device times", trace.SubmissionTimes}}

// traceFigures are the figures of each level: the host's time for a submission, the trace's
// addition to that time, the total time of a submission, and the processor time. Device times need
// a timing event behind each submission. So there are two more rows: the host's time that such an
// event adds to each raw call, and the rest of the time that the trace adds.
var traceFigures = [...]string{"submitting each", "added to each", "total each", "CPU each"}

// traceBenches measure the cost of a trace. The raw side is a device without a trace, puregpu's
// side a device with a trace whose output is discarded. The work is submitted ahead, each operation
// after the one before. The levels take turns.
func traceBenches() (all []bench) {
	for _, x := range []struct {
		name string
		make func(*rig) (func(gpu.Order) error, error)
		raw  func(api) error
	}{
		{"fills", func(r *rig) (func(gpu.Order) error, error) {
			return func(o gpu.Order) error { return r.q.Submit(o, gpu.Fill(r.all, pattern)) }, nil
		}, func(a api) error { return a.fill(0) }},
		{"launches", func(r *rig) (func(gpu.Order) error, error) {
			k, err := emptyKernel[emptyArgs](r)
			return func(o gpu.Order) error { return r.q.Submit(o, k.Launch(gpu.Grid{}, emptyArgs{r.all})) }, err
		}, func(a api) error { return a.launch(0) }},
	} {
		b := bench{rounds: 31, open: func(e *env) (sides, error) { return traceSides(e, x.make, x.raw) }}
		for _, level := range traceLevels {
			for _, figure := range traceFigures {
				r := row{name: "trace/2,000 " + x.name + ", " + level.name + ": " + figure, unit: ns}
				if strings.HasPrefix(figure, "added") {
					r.goal = goal{max: 1000, device: true}
				}
				b.rows = append(b.rows, r)
			}
		}
		b.rows = append(b.rows,
			row{name: "trace/2,000 " + x.name + ", raw: added to each by an event", unit: ns},
			row{name: "trace/2,000 " + x.name + ", device times: added beyond that", unit: ns})
		all = append(all, b)
	}
	return all
}

func traceSides(e *env, make func(*rig) (func(gpu.Order) error, error), raw func(api) error) (s sides, err error) {
	const n = 2000
	const byEvent, beyond = len(traceLevels) * len(traceFigures), len(traceLevels)*len(traceFigures) + 1 // the rows after the rows of the levels
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
	// open opens a device with a tracer and returns a function that does the work there. The
	// function returns the total time, the time of submitting and the processor time, each for one
	// submission.
	open := func(tracer *trace.Tracer) (func() ([3]float64, error), error) {
		r, err := openRig(e.drv, e.index, gpu.Options{Tracer: tracer})
		if err != nil {
			return nil, err
		}
		rigs = append(rigs, r)
		submit, err := make(r)
		return func() (f [3]float64, err error) {
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
		f[byEvent], f[beyond] = math.NaN(), math.NaN()
		return err
	}
	// rawly returns the host's time for one raw call, with or without a timing event behind the
	// call.
	rawly := func(event bool) (float64, error) {
		var x [3]float64
		err := e.thread.do(func() error {
			return ahead(x[:], n, func() error {
				for range n {
					err := raw(e.raw)
					if err == nil && event {
						err = e.raw.recordTime(0)
					}
					if err != nil {
						return err
					}
				}
				return e.raw.record(0, 0)
			}, func() error { return e.await(0) })
		})
		return x[1], err
	}
	if err := e.thread.do(e.raw.load); err != nil {
		return s, errors.Join(err, s.close())
	}
	s.pure = func(f []float64) error {
		calls, err1 := rawly(false)
		events, err2 := rawly(true)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		for level := range traceLevels {
			x, err := on[level]()
			if err == nil {
				err = traces[level].Flush() // keeps the trace's output out of the next level's time
			}
			if err != nil {
				return err
			}
			tell(f, level, x, x[1]-without[1])
			if traceLevels[level].times != trace.NoTimes {
				f[byEvent] = events - calls
				f[beyond] = x[1] - without[1] - f[byEvent]
			}
		}
		return nil
	}
	return s, nil
}
