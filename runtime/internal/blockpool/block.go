package blockpool

// A block is the record of a piece of a slab, live or free.
type block struct {
	addr uint64
	size uint64
	seq  uint64 // of the mark from which on it is free; of a live one, was free
	min  uint64 // the smallest seq in the tree from here down

	left, right *block // in a tree of free blocks
	prev, next  *block // neighbours in the slab
	seamPrev    *block // in the list of seams
	seamNext    *block
	parts       *block // of a live block that was joined: the blocks it was made of, linked by next
	slab        *slab

	tl    int32 // of the mark, or unmarked
	prio  uint32
	class uint16 // in which it is in a set
	free  bool   // it is in a set
	seam  bool   // it is in the list of seams: it and the next neighbour are free
}

// unmarked is the timeline of blocks that anybody may use.
const unmarked = -1

func (b *block) mark() Mark {
	if b.tl == unmarked {
		return Mark{}
	}
	return Mark{int(b.tl), b.seq}
}

// recordChunk is how many records are made at a time.
const recordChunk = 64

// record returns a record to fill in, with its priority.
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

// recycle takes back a record that is nowhere linked.
func (p *Pool) recycle(b *block) {
	*b = block{prio: b.prio, next: p.spare}
	p.spare = b
}

// use makes n bytes of a free block live; the rest stays free as it was.
func (p *Pool) use(b *block, n uint64) *block {
	if b.size > n {
		b = p.front(b, n)
	} else {
		p.lift(b)
	}
	p.hand(b)
	return b
}

// front cuts the first n bytes off a free block, and returns them, in no set.
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

// hand enters a block that is in no set among the live ones.
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

// unuse undoes hand, but for the table.
func (p *Pool) unuse(b *block) {
	s := b.slab
	s.used -= b.size
	if s.used == 0 {
		p.addEmpty(s)
	}
	p.stats.Used -= b.size
	p.stats.Live--
}

// place makes a block free, as its mark says. Neighbours with the same mark and it become one, with
// the record of one of them.
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

// joins reports whether a neighbour, if there is one, is free and has the same mark.
func (b *block) joins(n *block) bool {
	return n != nil && n.free && n.tl == b.tl && n.seq == b.seq
}

// absorbFront makes a free block larger by one in front of it that is in no set.
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

// absorbBack makes a free block larger by one behind it that is in no set.
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

// lift takes a free block out of its set.
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

// split cuts a block that is in no set, and returns what is behind the first n bytes.
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
