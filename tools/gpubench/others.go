package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// pythonPy is the program of the Python process.
//
//go:embed python.py
var pythonPy string

// otherWorks are the kinds of work to compare. work is the name in python.py.
var otherWorks = []struct{ name, work string }{
	{"launch a kernel", "launch"},
	{"fill 4 KiB", "fill"},
	{"allocate 1 MiB, fill 4 KiB, free", "allocate"},
}

// byHand is the loop over the driver, which is the raw side of most other groups of rows.
const byHand = "a loop over the driver"

// byHandMarked is the loop over the driver with an event behind each operation. The events tell a
// program which operations are done, as a queue does. byHand tells only when all of them are done.
// The chart leaves byHandMarked out.
const byHandMarked = "a loop over the driver, with events"

var others = []string{byHand, "cuda.core", "CuPy", "PyTorch"}

// A comparison describes a row of the group "others": the work, whether it is submitted ahead, and
// with what a Stream is compared.
type comparison struct {
	Work  string `json:"work"`
	Ahead bool   `json:"ahead"` // 2,000 submitted ahead; otherwise each waited for
	With  string `json:"with"`
}

func (c comparison) row() row {
	how := "wait, p50"
	if c.Ahead {
		how = "2,000 ahead"
	}
	return row{name: fmt.Sprintf("others/%s, %s: %s", c.Work, how, c.With), unit: ns, with: &c}
}

func otherBenches() (all []bench) {
	for _, w := range otherWorks {
		for _, with := range append(slices.Clip(others), byHandMarked) {
			all = append(all, bench{
				rows:   []row{comparison{w.name, false, with}.row(), comparison{w.name, true, with}.row()},
				rounds: 15,
				open:   func(e *env) (sides, error) { return beside(e, with, w.work) },
			})
		}
	}
	return all
}

// often says how many times a side does the work.
var often = counts{Warm: 200, Timed: 500, Ahead: 2000}

// beside compares a Stream with one of the ways in the list others, or with byHandMarked.
func beside(e *env, with, work string) (s sides, err error) {
	open := besidePython
	if with == byHand || with == byHandMarked {
		open = besideLoop
	}
	raw, end, err := open(e, with, work)
	if err != nil {
		return s, err
	}
	r, err := newRig(e, 1)
	if err != nil {
		return s, errors.Join(err, end())
	}
	s.close = func() error { return errors.Join(r.close(), end()) }
	st := r.q.NewStream()
	do, err := streamWork(r, st, work)
	if err != nil {
		return s, errors.Join(err, s.close())
	}
	s.raw = raw
	s.pure = func(f []float64) error { return both(f, do, func() error { return st.Wait(e.ctx) }) }
	return s, nil
}

// both does the work often.Timed times, and waits for it each time. Then it does the work
// often.Ahead times, and waits once.
func both(f []float64, do, wait func() error) (err error) {
	f[0], err = typical(make([]time.Duration, often.Timed), func() error {
		if err := do(); err != nil {
			return err
		}
		return wait()
	})
	if err != nil {
		return err
	}
	start := time.Now()
	for range often.Ahead {
		if err := do(); err != nil {
			return err
		}
	}
	if err := wait(); err != nil {
		return err
	}
	f[1] = each(time.Since(start), often.Ahead)
	return nil
}

// besideLoop returns a raw side that does the work with calls of the driver, and an end function
// that does nothing.
func besideLoop(e *env, with, work string) (raw func([]float64) error, end func() error, err error) {
	var do func() error
	switch work {
	case "launch":
		err, do = e.thread.do(e.raw.load), func() error { return e.raw.launch(0) }
	case "fill":
		do = func() error { return e.raw.fill(0) }
	default:
		if !e.caps.Pools {
			return nil, nil, fmt.Errorf("%w: the device has no memory pools", errNotRun)
		}
		err = e.thread.do(e.raw.keep)
		do = func() error {
			at, err := e.raw.alloc(0)
			if err != nil {
				return err
			}
			return errors.Join(e.raw.fillAt(0, at), e.raw.free(0, at))
		}
	}
	mark := func() error {
		if err := e.raw.record(0, 0); err != nil {
			return err
		}
		return e.await(0)
	}
	if with == byHandMarked {
		bare, n := do, 0
		do = func() error {
			n++
			return errors.Join(bare(), e.raw.record(n%rawEvents, 0))
		}
	}
	return func(f []float64) error {
		return e.anywhere(func() error { return both(f, do, mark) })
	}, func() error { return nil }, err
}

// besidePython returns a raw side that does the work with a Python library, and a function that
// ends the Python process.
func besidePython(e *env, library, work string) (raw func([]float64) error, end func() error, err error) {
	if e.opt.sim {
		return nil, nil, fmt.Errorf("%w: Python libraries cannot use a simulated GPU", errNotRun)
	}
	python := startTeam(library, exec.Command(e.opt.python, "-c", pythonPy))
	raw = func(f []float64) error {
		all, err := python.askAll(e.ctx, order{Do: "measure", Library: library, Work: work, counts: often})
		if err != nil {
			return err
		}
		f[0], f[1] = all[0].P50, all[0].Each
		return nil
	}
	var f [2]float64
	if err := raw(f[:]); err != nil { // a first round, to find out what is missing
		var missing *missingError
		if errors.As(err, &missing) {
			err = fmt.Errorf("%w: %s", errNotRun, missing.what)
		}
		return nil, nil, errors.Join(err, python.close())
	}
	return raw, python.close, nil
}

// streamWork returns a function that does the work with a stream.
func streamWork(r *rig, st *gpu.Stream, work string) (func() error, error) {
	switch work {
	case "launch":
		k, err := emptyKernel[emptyArgs](r)
		return func() error { return st.Do(k.Launch(gpu.Grid{}, emptyArgs{r.all})) }, err
	case "fill":
		return func() error { return st.Fill(r.all, pattern) }, nil
	}
	return func() error {
		b, err := st.Alloc(nil, allocSize)
		if err != nil {
			return err
		}
		if err := st.Fill(b.Range(0, fillSize), pattern); err != nil {
			return err
		}
		return st.Free(b)
	}, nil
}
