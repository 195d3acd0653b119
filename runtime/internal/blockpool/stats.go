package blockpool

// Stats describes the state of a pool and counts its operations. Sizes are in bytes.
type Stats struct {
	Reserved     uint64 // total size of the slabs
	ReservedHigh uint64 // maximum of Reserved
	Used         uint64 // total size of the live blocks; does not count freed blocks that work still uses
	UsedHigh     uint64 // maximum of Used
	Largest      uint64 // size of the largest free block
	Live         int    // number of live blocks
	Free         int    // number of free blocks
	Slabs        int

	Hits     uint64 // calls of Alloc that found a block in the pool
	Misses   uint64 // calls of Alloc that found no block, so that the pool tried to add a slab
	Failures uint64 // misses that returned an AllocError
	Waits    uint64 // calls of Alloc that returned a mark to wait for
	Splits   uint64 // number of times a block was cut in two
	Merges   uint64 // number of times a block was merged with a neighbour
	Grown    uint64 // slabs received from the source
	Released uint64 // slabs returned to the source
}

// Stats returns the current numbers.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Largest = p.largest()
	s.Slabs = len(p.slabs)
	for _, set := range p.sets {
		if set != nil {
			s.Free += set.n
		}
	}
	return s
}

func (p *Pool) largest() (n uint64) {
	for _, s := range p.sets {
		if s != nil {
			n = max(n, s.largest())
		}
	}
	return n
}
