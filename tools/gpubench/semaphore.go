package main

import (
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// semaphoreBench times semaphores on the host alone.
func semaphoreBench() bench {
	return bench{
		rows: []row{
			{name: "semaphore/create and close", unit: ns, goal: goal{max: 111}},
			{name: "semaphore/signal and query", unit: ns, goal: goal{max: 44}},
			{name: "semaphore/query", unit: ns, goal: goal{max: 2.7}},
			{name: "semaphore/wait for what is reached", unit: ns, goal: goal{max: 4.4}},
		},
		rounds: 31,
		open: func(e *env) (sides, error) {
			s, err := gpu.NewSemaphore(0)
			v := uint64(0)
			work := []func() error{
				func() error {
					s, err := gpu.NewSemaphore(0)
					if err != nil {
						return err
					}
					return s.Close()
				},
				func() error {
					v++
					if err := s.Signal(v); err != nil {
						return err
					}
					_, err := s.Query()
					return err
				},
			}
			return sides{pure: func(f []float64) error {
				const n = 100_000
				for i, fn := range work {
					start := time.Now()
					for range n {
						if err := fn(); err != nil {
							return err
						}
					}
					f[i] = each(time.Since(start), n)
				}
				// Call the methods directly here: an indirect call would add to the figures.
				start := time.Now()
				for range n {
					if _, err := s.Query(); err != nil {
						return err
					}
				}
				f[2] = each(time.Since(start), n)
				start = time.Now()
				for range n {
					if err := s.Wait(e.ctx, v); err != nil {
						return err
					}
				}
				f[3] = each(time.Since(start), n)
				return nil
			}}, err
		},
	}
}
