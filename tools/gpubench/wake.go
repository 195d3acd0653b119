package main

import "time"

// wakeBench times how long a parked waiter takes to wake. For the first row the goroutine that signals then waits itself,
// for the second it goes on computing, and for the third a device signals, after a fill that the host has released.
func wakeBench() bench {
	const n = 100
	return bench{
		rows: []row{
			{name: "wake/host signals and waits, p50", unit: ns},
			{name: "wake/host signals and computes, p50", unit: ns},
			{name: "wake/fill released, done, device signals, p50", unit: ns},
		},
		rounds: 7,
		open: func(e *env) (sides, error) {
			r, err := newRig(e, 1)
			if err != nil {
				return sides{}, err
			}
			gate, err := semaphores(1)
			if err != nil {
				return sides{}, err
			}
			host := func(then func()) func() error {
				return func() error {
					err := r.sem.Signal(r.v)
					then()
					return err
				}
			}
			times := make([]time.Duration, n)
			measure := func(prepare, signal func() error) (float64, error) {
				for i := range times {
					r.v++
					if err := prepare(); err != nil {
						return 0, err
					}
					var err error
					if times[i], err = wakeUp(e, r, signal); err != nil {
						return 0, err
					}
				}
				return p50(times), nil
			}
			nothing := func() error { return nil }
			return sides{
				pure: func(f []float64) (err error) {
					if f[0], err = measure(nothing, host(func() {})); err != nil {
						return err
					}
					if f[1], err = measure(nothing, host(func() { compute(200 * time.Microsecond) })); err != nil {
						return err
					}
					f[2], err = measure(
						func() error { return r.fill(r.q, gate[0], r.v, r.sem, r.v) },
						func() error { return gate[0].Signal(r.v) })
					return err
				},
				close: r.close,
			}, nil
		},
	}
}

// wakeUp has a goroutine park until r.sem is at r.v and returns how long after the beginning of signal it runs.
func wakeUp(e *env, r *rig, signal func() error) (time.Duration, error) {
	type waking struct {
		at  time.Time
		err error
	}
	woken := make(chan waking, 1)
	go func(v uint64) {
		err := r.sem.Wait(e.ctx, v)
		woken <- waking{time.Now(), err}
	}(r.v)
	time.Sleep(300 * time.Microsecond) // more than a wait asks by itself
	start := time.Now()
	if err := signal(); err != nil {
		return 0, err
	}
	w := <-woken
	return w.at.Sub(start), w.err
}

// compute keeps the goroutine's thread busy.
func compute(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}
