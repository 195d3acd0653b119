package sema

import "sync"

// PoolStats counts the objects of a pool: timepoints, events or submissions.
type PoolStats struct {
	Made int // objects made since the pool was created
	Held int // objects that exist now, in use or free; Trim discards free ones
	Free int // objects that are not in use
}

// A TimepointPool recycles the timepoints of waiters. The zero TimepointPool is empty.
type TimepointPool struct {
	mu    sync.Mutex // protects the following fields; no other lock is taken while it is held
	free  *Timepoint
	stats PoolStats
}

// Get returns a timepoint whose owner is w: a free one, or a new one if none is free.
func (p *TimepointPool) Get(w Waiter) *Timepoint {
	p.mu.Lock()
	t := p.free
	if t != nil {
		p.free = t.next
		p.stats.Free--
	} else {
		p.stats.Made++
		p.stats.Held++
	}
	p.mu.Unlock()
	if t == nil {
		t = new(Timepoint)
	}
	t.next = nil
	t.Init(w)
	return t
}

// Put returns a timepoint to the pool. The timepoint must not be registered.
func (p *TimepointPool) Put(t *Timepoint) {
	*t = Timepoint{}
	p.mu.Lock()
	t.next, p.free = p.free, t
	p.stats.Free++
	p.mu.Unlock()
}

// Trim discards the free timepoints, for the garbage collector to free.
func (p *TimepointPool) Trim() {
	p.mu.Lock()
	p.free = nil
	p.stats.Held -= p.stats.Free
	p.stats.Free = 0
	p.mu.Unlock()
}

// Stats returns the current counts.
func (p *TimepointPool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
