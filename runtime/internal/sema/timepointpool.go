package sema

import "sync"

// PoolStats counts the objects of a pool: timepoints, events or records.
type PoolStats struct {
	Made int // made since the beginning
	Held int // exist now, in use or free; Trim drops free ones
	Free int // not in use
}

// A TimepointPool recycles the timepoints of waiters. The zero TimepointPool is empty.
type TimepointPool struct {
	mu    sync.Mutex // protects the following fields; a leaf
	free  *Timepoint
	stats PoolStats
}

// Get returns a free or a new timepoint for the waiter w.
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

// Put gives a timepoint back. The timepoint must not be registered.
func (p *TimepointPool) Put(t *Timepoint) {
	*t = Timepoint{}
	p.mu.Lock()
	t.next, p.free = p.free, t
	p.stats.Free++
	p.mu.Unlock()
}

// Trim drops the free timepoints.
func (p *TimepointPool) Trim() {
	p.mu.Lock()
	p.free = nil
	p.stats.Held -= p.stats.Free
	p.stats.Free = 0
	p.mu.Unlock()
}

// Stats returns the counts.
func (p *TimepointPool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}
