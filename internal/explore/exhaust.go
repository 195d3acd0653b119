package explore

import (
	"errors"
	"time"
)

// Delay-bounded exploration (Emmi and others, 2011) runs all schedules that differ from the default
// one in fewer than a given number of decisions. Choices of [T.Choose] do not count against that
// number, and all are tried.
//
// Two schedules that differ only in the order of independent steps reach the same state. When a
// schedule reaches a known state, with the same goroutine running and no more decisions left than
// before, it takes the default from there on.

// A branch is a decision among alternatives: their count (of), and the index of the alternative
// that the run took (taken).
type branch struct {
	taken, of int
	free      bool // this decision does not count against the limit
}

type depthFirst struct {
	path   []branch
	at     int // number of decisions made in this run
	spent  int // number of decisions other than the default, without free ones
	limit  int
	seen   map[uint64]int // by hash of a state: the number of decisions that were left there
	closed bool           // this run has reached a known state and takes the default from there on
}

func (*depthFirst) started(*run, *goroutine) {}

//go:norace
func (d *depthFirst) decide(r *run, n int, free bool) int {
	if d.closed {
		return 0
	}
	if d.at == len(d.path) {
		h := mix(uint64(r.current.id), uint64(len(r.all)))
		for _, g := range r.all {
			h += mix(g.hash, uint64(g.state)<<8|uint64(g.op))
		}
		for _, x := range r.hashes {
			h += x
		}
		left := d.limit - d.spent
		if before, ok := d.seen[h]; ok && before >= left && !free {
			d.closed = true
			return 0
		}
		d.seen[h] = left
		d.path = append(d.path, branch{0, n, free})
	}
	b := d.path[d.at]
	d.at++
	if b.taken > 0 && !b.free {
		d.spent++
	}
	return b.taken
}

//go:norace
func (d *depthFirst) next(r *run, _, _, usual *goroutine) *goroutine {
	i := d.decide(r, len(r.ready), false)
	if i == 0 {
		return usual
	}
	for _, g := range r.ready { // finds the i-th ready goroutine, not counting the goroutine usual
		if g != usual {
			if i--; i == 0 {
				return g
			}
		}
	}
	return usual
}

//go:norace
func (d *depthFirst) pick(r *run, _ *goroutine, n int) int { return d.decide(r, n, r.choosing) }

// again prepares the next run and reports whether there is one.
func (d *depthFirst) again() bool {
	spent := 0
	for _, b := range d.path {
		if b.taken > 0 && !b.free {
			spent++
		}
	}
	for n := len(d.path) - 1; n >= 0; n-- {
		b := &d.path[n]
		if b.taken > 0 && !b.free {
			spent--
		}
		if b.taken+1 < b.of && (b.free || spent+1 < d.limit) {
			b.taken++
			d.path = d.path[:n+1]
			d.at, d.spent, d.closed = 0, 0, false
			return true
		}
	}
	return false
}

// exhaust runs all schedules within the limits of the Config, up to the first failure.
func (e *explorer) exhaust() error {
	if raceEnabled {
		return errors.New("explore: an exhaustive run needs a build without the race detector")
	}
	d := &depthFirst{limit: e.c.Exhaustive, seen: map[uint64]int{}}
	for {
		if e.c.Time > 0 && time.Since(e.began) > e.c.Time || e.c.Schedules > 0 && e.report.Schedules > e.c.Schedules {
			return nil
		}
		if r := e.once(d, false); r.failure != nil {
			deeds := r.deeds
			return e.failed(r, "exhaust", 0, func() strategy { return &replay{deeds: deeds} })
		}
		if !d.again() {
			e.report.All = true
			return nil
		}
	}
}
