package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// A bench times work on two sides, the raw side and puregpu's. Its figures fill in its rows.
type bench struct {
	rows   []row
	rounds int  // the default number of rounds
	cold   bool // there is no round to warm up
	open   func(e *env) (sides, error)
}

// A row describes a line of the table and of the JSON.
type row struct {
	name string // "group/what"
	unit unit
	goal goal
	base int // index of the bench's row to compare with if goal.of is ofBase

	detail bool        // only the JSON has the row, not the table
	of     *allReduce  // nil unless the row is of an all-reduce
	with   *comparison // nil outside the group "others"
}

type unit string

const (
	ns        unit = "ns"
	percent   unit = "%"
	gigabytes unit = "GB/s" // 10⁹ bytes
)

// A goal limits the figure of a row, or its ratio.
type goal struct {
	max    float64 // 0: no limit
	min    float64 // 0: no limit
	of     measure
	device bool // applies only on a real device
}

// A measure is the unit of a goal's limits.
type measure string

const (
	ofItself measure = ""     // the row's own unit
	ofRaw    measure = "raw"  // a multiple of the raw side
	ofBase   measure = "base" // a multiple of another row
)

func (g goal) text(u unit) string {
	sign, limit := "≤", g.max
	if g.min != 0 {
		sign, limit = "≥", g.min
	}
	switch {
	case limit == 0:
		return "-"
	case g.of == ofItself:
		return sign + " " + u.text(limit)
	}
	return fmt.Sprintf("%s %.2f×", sign, limit)
}

// met reports whether a figure meets the goal.
func (g goal) met(v float64) bool { return v >= g.min && (g.max == 0 || v <= g.max) }

// sides are the two sides of an open bench. Each does the work once and stores a figure for each
// row, in the row's unit. NaN means no figure.
type sides struct {
	raw func(f []float64) error // may be nil
	// lone means that this machine lacks the raw side: goals relative to the raw side do not apply.
	lone  bool
	pure  func(f []float64) error
	close func() error // may be nil
}

// errNotRun is the error of a bench that cannot run on this machine or with these flags. It is no
// failure.
var errNotRun = errors.New("not run")

// limit is the time after the start of a bench when the bench's waits fail.
const limit = 10 * time.Minute

func (b *bench) matches(match func(name string) bool) bool {
	return slices.ContainsFunc(b.rows, func(r row) bool { return match(r.name) })
}

// measure runs the sides in turns and returns the rows' results. If the bench fails, the results
// have the error.
func (b *bench) measure(e *env, rounds int, line *progress) []result {
	if rounds == 0 {
		rounds = b.rounds
	}
	t, err := b.turns(e, rounds, line)
	results := make([]result, len(b.rows))
	for i, r := range b.rows {
		results[i] = result{Row: r.name, Unit: r.unit, Of: r.of, With: r.with, detail: r.detail}
		switch {
		case errors.Is(err, errNotRun):
			results[i].NotRun = err.Error()
		case err != nil:
			results[i].Error = err.Error()
		default:
			t.sum(&results[i], r, i, e.opt.sim)
		}
	}
	return results
}

// turns have the figures of all rounds, without the round that warms up.
type turns struct {
	raw, pure [][]float64 // figures by row and round
	lone      bool
}

func (b *bench) turns(e *env, rounds int, line *progress) (t *turns, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	e.ctx = ctx
	s, err := b.open(e)
	if err != nil {
		return nil, err
	}
	if s.close != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	runtime.GC() // the garbage of earlier benches must not count here
	t = &turns{raw: make([][]float64, len(b.rows)), pure: make([][]float64, len(b.rows)), lone: s.lone}
	raw, pure := make([]float64, len(b.rows)), make([]float64, len(b.rows))
	first := -1 // the warm-up round does not count
	if b.cold {
		first = 0
	}
	for r := first; r < rounds; r++ {
		line.show(b.rows[0].name, r+1, rounds)
		for i := range raw {
			raw[i], pure[i] = math.NaN(), math.NaN()
		}
		both := []func() error{
			func() error {
				if s.raw == nil {
					return nil
				}
				return s.raw(raw)
			},
			func() error { return s.pure(pure) },
		}
		if r%2 == 1 { // the sides take turns at going first
			slices.Reverse(both)
		}
		for _, side := range both {
			if err := side(); err != nil {
				return nil, err
			}
		}
		if r < 0 {
			continue
		}
		for i := range raw {
			t.raw[i], t.pure[i] = append(t.raw[i], raw[i]), append(t.pure[i], pure[i])
		}
	}
	return t, nil
}

// sum fills in a row's result. The ratio is the median of the rounds' ratios, so that what disturbs
// both sides of a round cancels out.
func (t *turns) sum(res *result, r row, i int, sim bool) {
	res.Rounds = len(t.pure[i])
	against := t.raw[i]
	if r.goal.of == ofBase {
		against = t.pure[r.base]
		if r.base == i {
			against = nil
		}
	}
	var ratios []float64
	for k, v := range against {
		ratios = append(ratios, t.pure[i][k]/v)
	}
	res.Raw, res.Puregpu, res.Ratio = median(t.raw[i]), median(t.pure[i]), median(ratios)
	g := r.goal
	if g.max == 0 && g.min == 0 || g.device && sim || g.of == ofBase && r.base == i || g.of == ofRaw && t.lone {
		return
	}
	res.Goal = &goalResult{Max: g.max, Min: g.min, Of: g.of}
	got := res.Puregpu
	if g.of != ofItself {
		got = res.Ratio
	}
	res.Goal.OK = got != nil && g.met(*got)
}

// median returns the median of the finite figures, or nil if there are none.
func median(x []float64) *float64 {
	x = slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(x) == 0 {
		return nil
	}
	slices.Sort(x)
	return &x[len(x)/2]
}

// p50 sorts times and returns their median in nanoseconds.
func p50(x []time.Duration) float64 {
	slices.Sort(x)
	return float64(x[len(x)/2])
}

// each returns the time of one of n operations, in nanoseconds.
func each(d time.Duration, n int) float64 { return float64(d) / float64(n) }
