package main

import (
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// latencyBenches time single submissions, each of which the host waits for.
func latencyBenches() []bench {
	const n = 1000
	return []bench{
		{
			rows:   []row{{name: "latency/empty submission, p50", unit: ns, goal: goal{max: 3000, device: true}}},
			rounds: 31,
			open: func(e *env) (sides, error) {
				return latency(e, n, func() error { return nil }, func(r *rig) error {
					r.v++
					if err := r.q.Submit(r.order(nil, 0, r.sem, r.v), gpu.Barrier()); err != nil {
						return err
					}
					return r.sem.Wait(e.ctx, r.v)
				})
			},
		},
		{
			rows:   []row{{name: "latency/fill 4 KiB, p50", unit: ns, goal: goal{max: 1.25, of: ofRaw, device: true}}},
			rounds: 31,
			open: func(e *env) (sides, error) {
				return latency(e, n, func() error { return e.raw.fill(0) }, func(r *rig) error { return r.roundTrip(e) })
			},
		},
	}
}

// latency times a round trip on each side. On the raw side a round trip is the work, an event
// behind the work, and polling until the event is complete.
func latency(e *env, n int, work func() error, trip func(*rig) error) (sides, error) {
	r, err := newRig(e, 1)
	if err != nil {
		return sides{}, err
	}
	times := make([]time.Duration, n)
	mark := func() error {
		if err := work(); err != nil {
			return err
		}
		if err := e.raw.record(0, 0); err != nil {
			return err
		}
		return e.await(0)
	}
	return sides{
		raw: func(f []float64) error {
			return e.thread.do(func() (err error) {
				f[0], err = typical(times, mark)
				return err
			})
		},
		pure: func(f []float64) (err error) {
			f[0], err = typical(times, func() error { return trip(r) })
			return err
		},
		close: r.close,
	}, nil
}

// typical returns the median time of fn, called once for each element of times.
func typical(times []time.Duration, fn func() error) (float64, error) {
	for i := range times {
		start := time.Now()
		if err := fn(); err != nil {
			return 0, err
		}
		times[i] = time.Since(start)
	}
	return p50(times), nil
}
