package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// pythonPy is what the process of Python runs.
//
//go:embed python.py
var pythonPy string

// pythonWorks are what the Python libraries are compared in, by the names that python.py has.
var pythonWorks = []struct{ name, work string }{
	{"launch a kernel", "launch"},
	{"fill 4 KiB", "fill"},
	{"allocate 1 MiB, fill 4 KiB, free", "allocate"},
}

var pythonLibraries = []string{"PyTorch", "CuPy", "cuda.core"}

func pythonBenches() (all []bench) {
	for _, w := range pythonWorks {
		for _, lib := range pythonLibraries {
			all = append(all, bench{
				rows: []row{
					{name: fmt.Sprintf("python/%s, wait, p50: %s", w.name, lib), unit: ns, goal: goal{max: 1, of: ofRaw, device: true}},
					{name: fmt.Sprintf("python/%s, 2,000 ahead: %s", w.name, lib), unit: ns, goal: goal{max: 1, of: ofRaw, device: true}},
				},
				rounds: 15,
				open:   func(e *env) (sides, error) { return beside(e, lib, w.work) },
			})
		}
	}
	return all
}

// beside has a Python library do some work, and a stream.
func beside(e *env, library, work string) (s sides, err error) {
	if e.opt.sim {
		return s, fmt.Errorf("%w: Python libraries know no simulated GPU", errNotRun)
	}
	n := counts{Warm: 200, Timed: 500, Ahead: 2000}
	python := startTeam(library, exec.Command(e.opt.python, "-c", pythonPy))
	ask := func(f []float64) error {
		all, err := python.askAll(e.ctx, order{Do: "measure", Library: library, Work: work, counts: n})
		if err != nil {
			return err
		}
		f[0], f[1] = all[0].P50, all[0].Each
		return nil
	}
	var f [2]float64
	if err := ask(f[:]); err != nil {
		var missing *missingError
		if errors.As(err, &missing) {
			err = fmt.Errorf("%w: %s", errNotRun, missing.what)
		}
		return s, errors.Join(err, python.close())
	}
	r, err := newRig(e, 1)
	if err != nil {
		return s, errors.Join(err, python.close())
	}
	s.close = func() error { return errors.Join(r.close(), python.close()) }
	st := r.q.NewStream()
	do, err := pythonWork(r, st, work)
	if err != nil {
		return s, errors.Join(err, s.close())
	}
	times := make([]time.Duration, n.Timed)
	s.raw = ask
	s.pure = func(f []float64) (err error) {
		f[0], err = typical(times, func() error {
			if err := do(); err != nil {
				return err
			}
			return st.Wait(e.ctx)
		})
		if err != nil {
			return err
		}
		start := time.Now()
		for range n.Ahead {
			if err := do(); err != nil {
				return err
			}
		}
		if err := st.Wait(e.ctx); err != nil {
			return err
		}
		f[1] = each(time.Since(start), n.Ahead)
		return nil
	}
	return s, nil
}

// pythonWork returns what a stream does where the libraries do some work.
func pythonWork(r *rig, st *gpu.Stream, work string) (func() error, error) {
	switch work {
	case "launch":
		d, err := emptyDispatch(r)
		return func() error { return st.Dispatch(d) }, err
	case "fill":
		return func() error { return st.Fill(r.all, pattern) }, nil
	}
	return func() error {
		b, err := st.Alloca(nil, allocSize)
		if err != nil {
			return err
		}
		if err := st.Fill(b.Range(0, fillSize), pattern); err != nil {
			return err
		}
		return st.Dealloca(b)
	}, nil
}
