package main

import (
	"math"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// parkedBench times fills that all wait for one value of the host. The raw side cannot park fills:
// when the value comes, it issues the fills and waits for them.
func parkedBench() bench {
	const n = 1000
	return bench{
		rows: []row{
			{name: "parked/1,000 fills on one value: submitting", unit: ns, goal: goal{max: 1000}},
			{name: "parked/… signalled, until all are done", unit: ns, goal: goal{max: 2200, device: true}},
		},
		rounds: 31,
		open: func(e *env) (sides, error) {
			r, err := newRig(e, 1)
			if err != nil {
				return sides{}, err
			}
			p, err := newParking(r, n)
			if err != nil {
				return sides{}, err
			}
			return sides{
				raw: func(f []float64) error {
					return e.thread.do(func() error {
						start := time.Now()
						if err := rawChain(e.raw, n, 1); err != nil {
							return err
						}
						err := e.await((n - 1) % rawEvents)
						f[0], f[1] = math.NaN(), each(time.Since(start), n)
						return err
					})
				},
				pure: func(f []float64) error {
					start := time.Now()
					if err := p.park(n, false); err != nil {
						return err
					}
					f[0] = each(time.Since(start), n)
					start = time.Now()
					if err := p.release(e, n, false); err != nil {
						return err
					}
					f[1] = each(time.Since(start), n)
					return nil
				},
				close: r.close,
			}, nil
		},
	}
}

// A parking parks fills on a semaphore of the host. The fills have no order, so each fill signals
// its own semaphore.
type parking struct {
	r    *rig
	host *gpu.Semaphore
	v    uint64 // the value of the semaphore host
	done []*gpu.Semaphore
	turn uint64 // the value that the semaphores in the list done reach next
}

func newParking(r *rig, most int) (*parking, error) {
	host, err := gpu.NewSemaphore(0)
	if err != nil {
		return nil, err
	}
	done, err := semaphores(most)
	return &parking{r: r, host: host, done: done}, err
}

// park submits n fills that all wait for the next value of the semaphore host. If values is set,
// each fill waits for a value of its own, one of the next n.
func (p *parking) park(n int, values bool) error {
	p.turn++
	at := p.v + 1
	for i := range n {
		if values {
			at = p.v + 1 + uint64(i)
		}
		if err := p.r.fill(p.r.q, p.host, at, p.done[i], p.turn); err != nil {
			return err
		}
	}
	return nil
}

// release signals the values that n parked fills wait for, and waits until the fills are done.
func (p *parking) release(e *env, n int, values bool) error {
	signals := 1
	if values {
		signals = n
	}
	for range signals {
		p.v++
		if err := p.host.Signal(p.v); err != nil {
			return err
		}
	}
	return waitEach(e, p.done[:n], p.turn)
}
