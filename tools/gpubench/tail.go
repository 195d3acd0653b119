package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// tailBenches time the slowest cases. The first rows are the 99th percentile and the longest of
// calls that submit fills ahead, many more than a driver takes before it blocks its caller. The
// next rows are a parked fill that the host releases while the driver compiles device code for some
// hundreds of milliseconds: the time from the release until the host knows that the fill is done.
// On the raw side nothing is parked: the host submits the fill at the time of the release.
func tailBenches(e *env) []bench {
	ahead, kernels := 20_000, 200
	if e.opt.sim {
		kernels = 0
	}
	return []bench{
		{
			rows: []row{
				{name: "tail/20,000 fills ahead: p99 of the calls", unit: ns, goal: goal{max: 100_000, device: true}},
				{name: "tail/20,000 fills ahead: longest call", unit: ns},
			},
			rounds: 11,
			open: func(e *env) (sides, error) {
				r, err := newRig(e, 1)
				if err != nil {
					return sides{}, err
				}
				times := make([]time.Duration, ahead)
				return sides{
					raw: func(f []float64) error {
						return e.thread.do(func() error {
							err := timeEach(f, times, func() error {
								if err := e.raw.fill(0); err != nil {
									return err
								}
								return e.raw.record(0, 0)
							})
							return errors.Join(err, e.await(0))
						})
					},
					pure: func(f []float64) error {
						err := timeEach(f, times, func() error {
							r.v++
							return r.fill(r.q, r.sem, r.v-1, r.sem, r.v)
						})
						return errors.Join(err, r.sem.Wait(e.ctx, r.v))
					},
					close: r.close,
				}, nil
			},
		},
		{
			rows: []row{
				{name: "tail/parked fill released during a load: p50", unit: ns, goal: goal{max: 100_000, device: true}},
				{name: "tail/parked fill released during a load: longest", unit: ns},
				{name: "tail/… the load", unit: ns},
			},
			rounds: 3,
			open: func(e *env) (sides, error) {
				if kernels == 0 {
					return sides{}, fmt.Errorf("%w: the simulated GPU compiles nothing", errNotRun)
				}
				r, err := newRig(e, 1)
				if err != nil {
					return sides{}, err
				}
				gates, err := semaphores(1)
				if err != nil {
					return sides{}, errors.Join(err, r.close())
				}
				return sides{
					raw: func(f []float64) error {
						return r.whileLoading(f, kernels, func() (took time.Duration, err error) {
							err = e.thread.do(func() error {
								start := time.Now()
								if err := errors.Join(e.raw.fill(0), e.raw.record(0, 0)); err != nil {
									return err
								}
								err := e.await(0)
								took = time.Since(start)
								return err
							})
							return took, err
						})
					},
					pure: func(f []float64) error {
						return r.whileLoading(f, kernels, func() (time.Duration, error) {
							r.v++
							if err := r.fill(r.q, gates[0], r.v, r.sem, r.v); err != nil {
								return 0, err
							}
							start := time.Now()
							if err := gates[0].Signal(r.v); err != nil {
								return 0, err
							}
							err := r.sem.Wait(e.ctx, r.v)
							return time.Since(start), err
						})
					},
					close: r.close,
				}, nil
			},
		},
	}
}

// timeEach makes a call for each element of times. It stores the 99th percentile and the longest
// time of a call in f.
func timeEach(f []float64, times []time.Duration, call func() error) error {
	for i := range times {
		start := time.Now()
		if err := call(); err != nil {
			return err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	f[0], f[1] = float64(times[len(times)*99/100]), float64(times[len(times)-1])
	return nil
}

// whileLoading starts to load a module on the device. Until the load ends, whileLoading pauses for
// 5 ms and times an operation, again and again. It stores the median, the longest time and the time
// of the load.
func (r *rig) whileLoading(f []float64, kernels int, timed func() (time.Duration, error)) error {
	image, loaded := module(kernels), make(chan error, 1)
	start := time.Now()
	go func() {
		x, err := r.dev.Load(image)
		if err == nil {
			f[2] = float64(time.Since(start))
			err = x.Close()
		}
		loaded <- err
	}()
	var times []time.Duration
	for {
		select {
		case err := <-loaded:
			if len(times) == 0 {
				return errors.Join(err, errors.New("the load ended at once"))
			}
			slices.Sort(times)
			f[0], f[1] = float64(times[len(times)/2]), float64(times[len(times)-1])
			return err
		case <-time.After(5 * time.Millisecond):
		}
		took, err := timed()
		if err != nil {
			return errors.Join(err, <-loaded)
		}
		times = append(times, took)
	}
}
