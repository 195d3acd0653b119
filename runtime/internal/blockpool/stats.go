package blockpool

// Stats says what a pool holds and what it has done. Sizes are bytes.
type Stats struct {
	Reserved     uint64 // in slabs
	ReservedHigh uint64 // the most since ResetReservedHigh
	Used         uint64 // in live blocks; a block leaves it when it is freed, not when the work in front of its mark is done
	UsedHigh     uint64 // the most since ResetUsedHigh
	Largest      uint64 // the largest free block
	Live         int    // blocks
	Free         int    // blocks
	Slabs        int

	Hits     uint64 // Allocs that the pool had a block for
	Misses   uint64 // Allocs that it had none for
	Failures uint64 // misses that got none
	Waits    uint64 // Allocs that returned a mark to wait for
	Splits   uint64 // blocks cut in two
	Merges   uint64 // blocks joined to a neighbour
	Grown    uint64 // slabs that the source made
	Released uint64 // slabs that were given back to it
}

// Stats returns the figures of now.
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

// ResetReservedHigh lets ReservedHigh begin anew, at what is reserved.
func (p *Pool) ResetReservedHigh() {
	p.mu.Lock()
	p.stats.ReservedHigh = p.stats.Reserved
	p.mu.Unlock()
}

// ResetUsedHigh lets UsedHigh begin anew, at what is used.
func (p *Pool) ResetUsedHigh() {
	p.mu.Lock()
	p.stats.UsedHigh = p.stats.Used
	p.mu.Unlock()
}

func (p *Pool) largest() (n uint64) {
	for _, s := range p.sets {
		if s != nil {
			n = max(n, s.largest())
		}
	}
	return n
}
