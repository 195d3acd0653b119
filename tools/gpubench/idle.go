package main

import (
	"math"
	"runtime/debug"
	"time"
)

// idleBench measures the processor time of the process while nothing is in flight. The raw side has
// only a context. puregpu's side also has an open device, a parked submission, and a goroutine that
// waits for the submission. Both sides include threads of the driver, so the goal is for the
// difference.
func idleBench() bench {
	return bench{
		rows: []row{{name: "idle/CPU over 2 s, of one core", unit: percent},
			{name: "idle/… added to that by the runtime", unit: percent, goal: goal{max: 0.01}}},
		rounds: 1,
		cold:   true,
		open: func(e *env) (sides, error) {
			gate, err := semaphores(1)
			var without float64
			return sides{
				raw: func(f []float64) error {
					without = idle()
					f[0], f[1] = without, math.NaN()
					return nil
				},
				pure: func(f []float64) error {
					r, err := newRig(e, 1)
					if err != nil {
						return err
					}
					defer r.close()
					if err := r.roundTrip(e); err != nil {
						return err
					}
					r.v++
					if err := r.fill(r.q, gate[0], r.v, r.sem, r.v); err != nil {
						return err
					}
					done := make(chan error, 1)
					go func() { done <- r.sem.Wait(e.ctx, r.v) }()
					f[0] = idle()
					f[1] = f[0] - without
					if err := gate[0].Signal(r.v); err != nil {
						return err
					}
					return <-done
				},
			}, err
		},
	}
}

func idle() float64 {
	const long = 2 * time.Second
	debug.FreeOSMemory()
	time.Sleep(500 * time.Millisecond) // lets the garbage collector and spinning threads come to rest
	cpu, start := cpuTime(), time.Now()
	time.Sleep(long)
	return 100 * float64(cpuTime()-cpu) / float64(time.Since(start))
}
