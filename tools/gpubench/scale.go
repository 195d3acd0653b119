package main

import (
	"fmt"
	"strings"
	"time"
)

// flat limits the time of work that should not depend on the scale. The time may be at most flat
// times the time at the smallest scale.
const flat = 1.3

// futureBench times fills that are parked, each on a value of its own. The host then signals the
// values one by one.
func futureBench(e *env) bench {
	scales := []int{100, 1000, 5000, 100_000}
	b := bench{rounds: 11}
	if e.opt.long {
		scales, b.rounds = append(scales, 1_000_000), 5
	}
	for _, n := range scales {
		b.rows = append(b.rows,
			row{name: fmt.Sprintf("future/%s parked on a value each", thousands(n)), unit: ns, goal: goal{max: flat, of: ofBase}, base: 0},
			row{name: fmt.Sprintf("future/%s … submitting", thousands(n)), unit: ns, goal: goal{of: ofBase}, base: 1})
	}
	most := scales[len(scales)-1]
	b.open = func(e *env) (sides, error) {
		r, err := newRig(e, 1)
		if err != nil {
			return sides{}, err
		}
		p, err := newParking(r, most)
		if err != nil {
			return sides{}, err
		}
		return sides{
			pure: func(f []float64) error {
				for i, n := range scales {
					var total, submitting time.Duration
					// Repeat small scales more often, so that each is timed for long enough.
					times := max(1, 5000/n)
					for range times {
						start := time.Now()
						if err := p.park(n, true); err != nil {
							return err
						}
						submitting += time.Since(start)
						if err := p.release(e, n, true); err != nil {
							return err
						}
						total += time.Since(start)
					}
					f[2*i], f[2*i+1] = each(total, times*n), each(submitting, times*n)
				}
				return nil
			},
			close: r.close,
		}, nil
	}
	return b
}

// unrelatedBench times round trips while other submissions are parked.
func unrelatedBench(e *env) bench {
	const trips = 500
	scales := []int{0, 100, 1000, 100_000}
	b := bench{rounds: 7}
	if e.opt.long {
		scales, b.rounds = append(scales, 1_000_000), 3
	}
	for _, n := range scales {
		b.rows = append(b.rows, row{name: fmt.Sprintf("unrelated/round trip behind %s parked, p50", thousands(n)), unit: ns, goal: goal{max: flat, of: ofBase}, base: 0})
	}
	most := scales[len(scales)-1]
	b.open = func(e *env) (sides, error) {
		r, err := newRig(e, 1)
		if err != nil {
			return sides{}, err
		}
		p, err := newParking(r, most)
		if err != nil {
			return sides{}, err
		}
		times := make([]time.Duration, trips)
		return sides{
			pure: func(f []float64) (err error) {
				for i, n := range scales {
					if err := p.park(n, false); err != nil {
						return err
					}
					if f[i], err = typical(times, func() error { return r.roundTrip(e) }); err != nil {
						return err
					}
					if err := p.release(e, n, false); err != nil {
						return err
					}
				}
				return nil
			},
			close: r.close,
		}, nil
	}
	return b
}

// thousands writes 100000 as 100,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), ",")
}
