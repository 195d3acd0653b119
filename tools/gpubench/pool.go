package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// poolBenches time memory that is allocated and freed in the order of a queue's work. In the first
// bench the calls have no semaphores, and the raw side records one event behind all calls. In the
// second a fill uses the memory, semaphores order the calls, and the raw side records an event
// behind each free. The portable pool of the third bench has no raw side.
func poolBenches() []bench {
	return []bench{
		{
			rows:   []row{{name: "pool/alloca and dealloca of 1 MiB", unit: ns, goal: goal{max: 1.25, of: ofRaw, device: true}}},
			rounds: 61,
			open: func(e *env) (sides, error) {
				if err := keep(e); err != nil {
					return sides{}, err
				}
				s, err := poolPairs(e)
				s.raw = func(f []float64) error { return e.thread.do(func() error { return rawPairs(e, f) }) }
				return s, err
			},
		},
		{
			rows: []row{
				{name: "pool/alloca, fill, dealloca: total", unit: ns, goal: goal{max: 1.5, of: ofRaw, device: true}},
				{name: "pool/alloca, fill, dealloca: submitting", unit: ns},
				{name: "pool/alloca, fill, dealloca: CPU", unit: ns},
			},
			rounds: 61,
			open:   poolChains,
		},
		{
			rows: []row{
				{name: "pool/portable: alloca of 1 MiB that it has", unit: ns, goal: goal{max: 150}},
				{name: "pool/portable: dealloca", unit: ns},
			},
			rounds: 61,
			open:   poolHits,
		},
	}
}

const allocs = 1000

// keep makes the raw side's pool keep freed memory. It fails if the device has no memory pools.
func keep(e *env) error {
	if !e.caps.Pools {
		return fmt.Errorf("%w: the device has no memory pools", errNotRun)
	}
	if err := e.thread.do(e.raw.keep); err != nil {
		return fmt.Errorf("raw side: %w", err)
	}
	return nil
}

// poolPairs allocates from the current pool and frees, in turn. The time is that of both calls.
func poolPairs(e *env) (sides, error) {
	r, err := newRig(e, 1)
	if err != nil {
		return sides{}, err
	}
	return sides{
		pure:  func(f []float64) error { return e.beside(func() error { return r.pairs(e, f) }) },
		close: r.close,
	}, nil
}

// poolHits allocates a hundred buffers from a portable pool that already has the memory, and then
// frees them, ten times.
func poolHits(e *env) (sides, error) {
	const n, turns = 100, 10
	r, err := newRig(e, 1)
	if err != nil {
		return sides{}, err
	}
	pool, err := r.dev.NewPool(gpu.PoolOptions{Portable: true, InitialSize: n * allocSize})
	if err != nil {
		return sides{}, errors.Join(err, r.close())
	}
	var bufs [n]*gpu.Buffer
	hits := func(f []float64) error {
		var taking, giving time.Duration
		for range turns {
			start := time.Now()
			for i := range bufs {
				if err = r.q.Submit(gpu.Order{}, gpu.Alloc(&bufs[i], pool, allocSize)); err != nil {
					return err
				}
			}
			taken := time.Now()
			for _, b := range bufs {
				if err := r.q.Submit(gpu.Order{}, gpu.Free(b)); err != nil {
					return err
				}
			}
			taking, giving = taking+taken.Sub(start), giving+time.Since(taken)
		}
		f[0], f[1] = each(taking, turns*n), each(giving, turns*n)
		return nil
	}
	return sides{
		pure:  func(f []float64) error { return e.beside(func() error { return hits(f) }) },
		close: r.close,
	}, nil
}

// pairs allocates and frees in turn.
func (r *rig) pairs(e *env, f []float64) error {
	start := time.Now()
	for range allocs {
		var b *gpu.Buffer
		err := r.q.Submit(gpu.Order{}, gpu.Alloc(&b, nil, allocSize))
		if err != nil {
			return err
		}
		if err := r.q.Submit(gpu.Order{}, gpu.Free(b)); err != nil {
			return err
		}
	}
	f[0] = each(time.Since(start), allocs)
	return r.roundTrip(e)
}

func rawPairs(e *env, f []float64) error {
	start := time.Now()
	for range allocs {
		p, err := e.raw.alloc(0)
		if err != nil {
			return err
		}
		if err := e.raw.free(0, p); err != nil {
			return err
		}
	}
	f[0] = each(time.Since(start), allocs)
	if err := e.raw.record(0, 0); err != nil {
		return err
	}
	return e.await(0)
}

// poolChains allocates, fills and frees in turn, all submitted ahead.
func poolChains(e *env) (sides, error) {
	if err := keep(e); err != nil {
		return sides{}, err
	}
	r, err := newRig(e, 1)
	if err != nil {
		return sides{}, err
	}
	return sides{
		raw: func(f []float64) error {
			return e.thread.do(func() error {
				return ahead(f, allocs, func() error {
					for i := range allocs {
						p, err := e.raw.alloc(0)
						if err != nil {
							return err
						}
						if err := e.raw.fillAt(0, p); err != nil {
							return err
						}
						if err := e.raw.free(0, p); err != nil {
							return err
						}
						if err := e.raw.record(i%rawEvents, 0); err != nil {
							return err
						}
					}
					return nil
				}, func() error { return e.await((allocs - 1) % rawEvents) })
			})
		},
		pure:  func(f []float64) error { return e.beside(func() error { return r.poolChain(e, f) }) },
		close: r.close,
	}, nil
}

// poolChain allocates, fills and frees, each after the one before.
func (r *rig) poolChain(e *env, f []float64) error {
	next := func() gpu.Order { r.v++; return r.order(r.sem, r.v-1, r.sem, r.v) }
	return ahead(f, allocs, func() error {
		for range allocs {
			var b *gpu.Buffer
			err := r.q.Submit(next(), gpu.Alloc(&b, nil, allocSize))
			if err != nil {
				return err
			}
			if err := r.q.Submit(next(), gpu.Fill(b.Range(0, fillSize), pattern)); err != nil {
				return err
			}
			if err := r.q.Submit(next(), gpu.Free(b)); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return r.sem.Wait(e.ctx, r.v) })
}
