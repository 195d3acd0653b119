package blockpool

// A block describes a piece of a slab. It is live (allocated) or free.
type block struct {
	addr uint64
	size uint64
	// tl and seq are the mark behind which the memory is unused. A live block keeps the mark that
	// it had when it was free. tl may be unmarked.
	seq uint64
	min uint64 // the smallest seq in the subtree of this block

	left, right *block // children in a tree of free blocks: see set
	prev, next  *block // neighbours in the slab, by address
	seamPrev    *block // neighbours in the list of seams
	seamNext    *block
	parts       *block // the free blocks that were joined into this live block, linked by next
	slab        *slab

	tl    int32 // timeline of the mark: see seq
	prio  uint32
	class uint16 // the block's size class, which is the index of its tree in the set
	free  bool   // the block is free and in a set
	// seam says that the block is in the list of seams: the block and its next neighbour are both
	// free, but with different marks.
	seam bool
}

// unmarked is the value of tl for free blocks that no work uses any more. Every timeline may use
// them at once.
const unmarked = -1

func (b *block) mark() Mark {
	if b.tl == unmarked {
		return Mark{}
	}
	return Mark{int(b.tl), b.seq}
}

// recordChunk is the number of block structs that record allocates at a time.
const recordChunk = 64

// record returns an unused block struct. Only the field prio is set.
func (p *Pool) record() *block {
	if p.spare == nil {
		chunk := make([]block, recordChunk)
		for i := range chunk {
			p.rand ^= p.rand << 13
			p.rand ^= p.rand >> 17
			p.rand ^= p.rand << 5
			chunk[i].prio = p.rand
			chunk[i].next, p.spare = p.spare, &chunk[i]
		}
	}
	b := p.spare
	p.spare, b.next = b.next, nil
	return b
}

// recycle puts a block struct, to which nothing points any more, into the list of unused ones.
func (p *Pool) recycle(b *block) {
	*b = block{prio: b.prio, next: p.spare}
	p.spare = b
}

// use makes the first n bytes of a free block live and returns them as a block. The rest stays
// free.
func (p *Pool) use(b *block, n uint64) *block {
	if b.size > n {
		b = p.front(b, n)
	} else {
		p.lift(b)
	}
	p.hand(b)
	return b
}

// front cuts the first n bytes off a free block and returns them as a new block, which is in no
// set.
func (p *Pool) front(b *block, n uint64) *block {
	c := p.record()
	c.addr, c.size = b.addr, n
	c.tl, c.seq, c.slab = b.tl, b.seq, b.slab
	c.prev, c.next = b.prev, b
	p.link(c, c)
	if c.prev != nil && c.prev.seam {
		p.dropSeam(c.prev)
	}
	p.set(b.tl).resize(b, b.addr+n, b.size-n)
	p.stats.Splits++
	return c
}

// hand makes the block b live. The caller has removed it from its set of free blocks.
func (p *Pool) hand(b *block) {
	s := b.slab
	if s.used == 0 {
		p.dropEmpty(s)
	}
	s.used += b.size
	p.stats.Used += b.size
	p.stats.UsedHigh = max(p.stats.UsedHigh, p.stats.Used)
	p.stats.Live++
	p.live.put(b)
}

// unuse undoes hand. The caller has already removed the block from the table p.live.
func (p *Pool) unuse(b *block) {
	s := b.slab
	s.used -= b.size
	if s.used == 0 {
		p.addEmpty(s)
	}
	p.stats.Used -= b.size
	p.stats.Live--
}

// place makes a block free, with the mark in its fields tl and seq. If a neighbour is free with the
// same mark, they are merged into one block.
func (p *Pool) place(b *block) {
	a, c := b.prev, b.next
	before, behind := b.joins(a), b.joins(c)
	if before && behind {
		p.lift(c)
		b.size += c.size
		b.next = c.next
		p.link(b, b)
		p.recycle(c)
		p.stats.Merges++
	}
	switch {
	case before:
		p.absorbBack(a, b)
		return
	case behind:
		p.absorbFront(c, b)
		return
	}
	p.setOf(b.tl).insert(b)
	b.free = true
	if a != nil && a.free {
		p.addSeam(a)
	}
	if c != nil && c.free {
		p.addSeam(b)
	}
}

// joins reports whether the neighbour n exists, is free and has the same mark as b.
func (b *block) joins(n *block) bool {
	return n != nil && n.free && n.tl == b.tl && n.seq == b.seq
}

// absorbFront merges b into c, the free block behind b. b is in no set and is recycled.
func (p *Pool) absorbFront(c, b *block) {
	c.prev = b.prev
	p.link(c, c)
	if c.prev != nil && c.prev.free {
		p.addSeam(c.prev)
	}
	p.set(c.tl).resize(c, b.addr, b.size+c.size)
	p.recycle(b)
	p.stats.Merges++
}

// absorbBack merges b into a, the free block in front of b. b is in no set and is recycled.
func (p *Pool) absorbBack(a, b *block) {
	a.next = b.next
	p.link(a, a)
	if a.next != nil && a.next.free {
		p.addSeam(a)
	}
	p.set(a.tl).resize(a, a.addr, a.size+b.size)
	p.recycle(b)
	p.stats.Merges++
}

// lift removes a free block from its set, and the seams at its ends from the list of seams.
func (p *Pool) lift(b *block) {
	p.set(b.tl).remove(b)
	b.free = false
	if b.seam {
		p.dropSeam(b)
	}
	if b.prev != nil && b.prev.seam {
		p.dropSeam(b.prev)
	}
}

// split cuts a block, which is in no set, behind its first n bytes, and returns the rest as a
// block.
func (p *Pool) split(b *block, n uint64) *block {
	c := p.record()
	c.addr, c.size = b.addr+n, b.size-n
	c.tl, c.seq, c.slab = b.tl, b.seq, b.slab
	c.prev, c.next = b, b.next
	if b.next != nil {
		b.next.prev = c
	}
	b.next, b.size = c, n
	p.stats.Splits++
	return c
}

func (p *Pool) addSeam(b *block) {
	b.seam = true
	b.seamPrev, b.seamNext = nil, p.seams
	if p.seams != nil {
		p.seams.seamPrev = b
	}
	p.seams = b
}

func (p *Pool) dropSeam(b *block) {
	if b.seamPrev != nil {
		b.seamPrev.seamNext = b.seamNext
	} else {
		p.seams = b.seamNext
	}
	if b.seamNext != nil {
		b.seamNext.seamPrev = b.seamPrev
	}
	b.seamPrev, b.seamNext, b.seam = nil, nil, false
}
