package blockpool

import (
	"errors"
	"fmt"
	"slices"
)

// Maintain returns unused slabs to the source, but leaves at least keep bytes reserved. A closed
// pool returns all unused slabs. A slab is unused if it is entirely free and all work that used it
// is done. Call Maintain when work has been found done. A call costs little if there is nothing to
// do. The error is the source's. A slab that the source refuses leaves the pool too.
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

// Trim returns unused slabs to the source, but leaves at least keep bytes reserved. The error is
// the source's. The slab of a pool made by Fixed stays in the pool until the pool is closed.
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

// Close makes Alloc fail from now on, and returns unused slabs to the source. It returns the number
// of live blocks. The caller frees the live blocks as usual, and Maintain returns their slabs when
// the work on them is done. The error is the source's.
func (p *Pool) Close(o Order) (live int, err error) {
	p.mu.Lock()
	p.closed = true
	live = p.stats.Live
	p.mu.Unlock()
	return live, p.Trim(0, o)
}

// Destroy closes a pool and returns all slabs to the source, even if blocks in them are live or in
// use by work. It returns the number of live blocks. Freeing a live block fails from now on. The
// error is the source's. A slab that the source refuses leaves the pool too.
func (p *Pool) Destroy() (live int, err error) {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	live = p.stats.Live
	p.closed, p.destroyed = true, true
	// p.sets has one element, because Trim still slices p.sets from the second element on.
	p.sets, p.live, p.seams, p.empty, p.spare = make([]*set, 1), table{}, nil, nil, nil
	p.stats.Used, p.stats.Live = 0, 0
	for _, s := range p.slabs {
		s.first, s.used, s.prev, s.next = nil, 0, nil, nil
	}
	if err = p.releaseAll(); err != nil {
		err = fmt.Errorf("blockpool: %w", err)
	}
	return live, err
}

// releaseAll returns all slabs of a destroyed pool to the source.
func (p *Pool) releaseAll() error {
	var errs []error
	for _, s := range slices.Clone(p.slabs) {
		errs = append(errs, p.giveBack(s.base, s.size))
		p.dropSlab(s)
	}
	return errors.Join(errs...)
}
