package main

import "time"

// chainBenches time chains of fills: each fill waits for the one before. The host submits all fills
// and then waits for the last. One bench uses one stream, the other alternates between two.
func chainBenches() []bench {
	return []bench{
		{
			rows: []row{
				{name: "chain/2,000 fills: total", unit: ns, goal: goal{max: 1.5, of: ofRaw, device: true}},
				{name: "chain/2,000 fills: submitting", unit: ns, goal: goal{max: 1.7, of: ofRaw, device: true}},
				{name: "chain/2,000 fills: CPU", unit: ns, goal: goal{max: 3000, device: true}},
			},
			rounds: 61,
			open:   func(e *env) (sides, error) { return chain(e, 2000, 1) },
		},
		{
			rows: []row{
				{name: "hop/2,000 fills, two streams: total", unit: ns, goal: goal{max: 1.5, of: ofRaw, device: true}},
				{name: "hop/2,000 fills, two streams: submitting", unit: ns},
				{name: "hop/2,000 fills, two streams: CPU", unit: ns},
			},
			rounds: 61,
			open:   func(e *env) (sides, error) { return chain(e, 2000, 2) },
		},
	}
}

func chain(e *env, n, streams int) (sides, error) {
	r, err := newRig(e, streams)
	if err != nil {
		return sides{}, err
	}
	return sides{
		raw: func(f []float64) error {
			return e.thread.do(func() error {
				return ahead(f, n, func() error { return rawChain(e.raw, n, streams) }, func() error { return e.await((n - 1) % rawEvents) })
			})
		},
		pure:  func(f []float64) error { return e.beside(func() error { return r.chain(e, f, n, streams) }) },
		close: r.close,
	}, nil
}

// chain submits n fills, on the given number of queues in turn, and waits for them.
func (r *rig) chain(e *env, f []float64, n, queues int) error {
	return ahead(f, n, func() error {
		for i := range n {
			if err := r.fill(r.dev.Queue(i%queues), r.sem, r.v, r.sem, r.v+1); err != nil {
				return err
			}
			r.v++
		}
		return nil
	}, func() error { return r.sem.Wait(e.ctx, r.v) })
}

// rawChain submits n fills, on the streams in turn, with an event behind each. If there are several
// streams, each fill waits for the event before it.
func rawChain(a api, n, streams int) error {
	for i := range n {
		s := i % streams
		if i > 0 && streams > 1 {
			if err := a.wait(s, (i-1)%rawEvents); err != nil {
				return err
			}
		}
		if err := a.fill(s); err != nil {
			return err
		}
		if err := a.record(i%rawEvents, s); err != nil {
			return err
		}
	}
	return nil
}

// ahead submits n operations and waits for them. It stores the total time, the time of submitting
// and the processor time of the process, each divided by n.
func ahead(f []float64, n int, submit, wait func() error) error {
	cpu, start := cpuTime(), time.Now()
	if err := submit(); err != nil {
		return err
	}
	submitted := time.Since(start)
	if err := wait(); err != nil {
		return err
	}
	f[0], f[1], f[2] = each(time.Since(start), n), each(submitted, n), each(cpuTime()-cpu, n)
	return nil
}
