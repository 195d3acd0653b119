package blockpool

// quickLook is the number of blocks that gather looks at for memory that needs no wait, if take may
// otherwise return memory that needs one.
const quickLook = 128

// gather looks for adjacent free blocks that together have n bytes, although their marks differ. It
// returns the first and the last of these blocks, or nil. gather accepts marks that need no wait
// and, if mayWait is set, also marks of one timeline that need a wait. It looks only at blocks with
// a free neighbour, and at no more of them than look says.
func (p *Pool) gather(n uint64, q *query, mayWait bool, look int) (first, last *block) {
	for x := p.seams; x != nil && look > 0; x = x.seamNext {
		if x.prev != nil && x.prev.seam {
			look--
			continue // not the first of a row of free blocks
		}
		from, sum := x, uint64(0)   // the current candidates: the blocks beginning with from, which have sum bytes
		waits := int32(unmarked)    // the only timeline that the candidates need a wait for, or unmarked
		clear, rest := x, uint64(0) // the candidates behind the last one that needs a wait
		for b := x; ; b = b.next {
			look--
			switch {
			case q.after(b.tl, b.seq):
				sum += b.size
				rest += b.size
			case !mayWait:
				from, sum = b.next, 0
			default:
				if waits != unmarked && waits != b.tl {
					from, sum = clear, rest
				}
				waits = b.tl
				sum += b.size
				clear, rest = b.next, 0
			}
			if sum >= n {
				for sum-from.size >= n {
					sum -= from.size
					from = from.next
				}
				return from, b
			}
			if !b.seam || look <= 0 {
				break
			}
		}
	}
	return nil, nil
}

// join makes one live block of n bytes out of the adjacent free blocks from first to last, and
// keeps them as its parts. The unused rest of last stays free. join also returns the mark that must
// be waited for. The mark's Seq is 0 if no wait is needed.
func (p *Pool) join(first, last *block, n uint64, q *query) (*block, Mark) {
	var wait Mark
	var sum uint64
	for b := first; ; b = b.next {
		if !q.after(b.tl, b.seq) {
			wait = Mark{int(b.tl), max(wait.Seq, b.seq)}
		}
		sum += b.size
		p.lift(b)
		if b == last {
			break
		}
		p.stats.Merges++
	}
	if sum > n {
		p.place(p.split(last, last.size-(sum-n)))
	}
	if wait.Seq != 0 {
		p.stats.Waits++
	}
	l := p.record()
	l.addr, l.size, l.slab = first.addr, n, first.slab
	l.prev, l.next = first.prev, last.next
	p.link(l, l)
	first.prev, last.next = nil, nil
	l.parts = first
	p.hand(l)
	return l, wait
}

// restore undoes join: it makes the parts of the block free again, with the marks that they had.
func (p *Pool) restore(l *block) {
	first, last := l.parts, l.parts
	for last.next != nil {
		last = last.next
	}
	first.prev, last.next = l.prev, l.next
	p.link(first, last)
	behind := l.next
	p.recycle(l)
	for b := first; b != behind; {
		next := b.next
		p.place(b)
		b = next
	}
}

// link sets the pointers to the ends of a row of blocks: in the neighbours of the row, and in the
// slab if the row is at the slab's start.
func (p *Pool) link(first, last *block) {
	if first.prev != nil {
		first.prev.next = first
	} else {
		first.slab.first = first
	}
	if last.next != nil {
		last.next.prev = last
	}
}

// dropParts recycles the parts of a joined block.
func (p *Pool) dropParts(b *block) {
	for c := b.parts; c != nil; {
		next := c.next
		p.recycle(c)
		c = next
	}
	b.parts = nil
}
