package blockpool

import (
	"errors"
	"fmt"
	"slices"
)

// Maintain gives slabs back to the source that are wholly free and done, as long as keep bytes stay
// reserved; of a closed pool all such. It is to be called when work has been found done, and costs
// little if there is nothing to do. The error is the source's: what it would not take back the pool
// has no more.
func (p *Pool) Maintain(keep uint64, o Order) error {
	p.mu.Lock()
	if p.closed {
		keep = 0
	}
	nothing := p.empty == nil || p.stats.Reserved <= keep || p.src == nil && !p.closed
	p.mu.Unlock()
	if nothing {
		return nil
	}
	return p.Trim(keep, o)
}

// Trim gives slabs back to the source that are wholly free and done, as long as keep bytes stay
// reserved. The error is the source's. It leaves a slab of the caller's alone.
func (p *Pool) Trim(keep uint64, o Order) error {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.src == nil && !p.closed {
		return nil
	}
	if err := p.release(keep, keep, o); err != nil {
		return fmt.Errorf("blockpool: %w", err)
	}
	return nil
}

// Close ends allocating and gives back the slabs that are wholly free and done. It returns how many
// blocks are live. These are to be freed as ever, and Maintain gives their slabs back when the work
// on them is done. The error is the source's.
func (p *Pool) Close(o Order) (live int, err error) {
	p.mu.Lock()
	p.closed = true
	live = p.stats.Live
	p.mu.Unlock()
	return live, p.Trim(0, o)
}

// Destroy closes a pool and gives all slabs back, whatever is live in them and whatever works on
// them. It returns how many blocks were live; freeing them fails from now on. The error is the
// source's: what it would not take back the pool has no more.
func (p *Pool) Destroy() (live int, err error) {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	live = p.stats.Live
	p.closed, p.destroyed = true, true
	p.sets, p.live, p.seams, p.empty, p.spare = make([]*set, 1), table{}, nil, nil, nil // who trims it, or asks, still looks
	p.stats.Used, p.stats.Live = 0, 0
	for _, s := range p.slabs {
		s.first, s.used, s.prev, s.next = nil, 0, nil, nil
	}
	if err = p.releaseAll(); err != nil {
		err = fmt.Errorf("blockpool: %w", err)
	}
	return live, err
}

// releaseAll gives back all slabs of a destroyed pool.
func (p *Pool) releaseAll() error {
	var errs []error
	for _, s := range slices.Clone(p.slabs) {
		errs = append(errs, p.giveBack(s.base, s.size))
		p.dropSlab(s)
	}
	return errors.Join(errs...)
}
