package blockpool

// quickLook is how many blocks gather looks at where something else may do as well.
const quickLook = 128

// gather looks for free neighbours with different marks that are large enough together, and returns
// the first and the last. Their marks need no wait, or if mayWait is set, only those of one
// timeline do. It looks only at blocks with free neighbours, of which after settle there are no
// more than blocks whose marks are not done.
func (p *Pool) gather(n uint64, q *query, mayWait bool, look int) (first, last *block) {
	for x := p.seams; x != nil && look > 0; x = x.seamNext {
		if x.prev != nil && x.prev.seam {
			look--
			continue // not where a row of free blocks begins
		}
		from, sum := x, uint64(0)   // the blocks that will do so far
		waits := int32(unmarked)    // the timeline that they wait for
		clear, rest := x, uint64(0) // those of them behind the last that waits
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

// join makes one live block of n bytes out of free neighbours, and keeps these as its parts. What
// is left of the last stays free as it was.
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

// restore puts the parts of a joined block back, free as they were.
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

// link makes the neighbours of a row of blocks, and its slab, know the row.
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

// dropParts forgets what a block was made of.
func (p *Pool) dropParts(b *block) {
	for c := b.parts; c != nil; {
		next := c.next
		p.recycle(c)
		c = next
	}
	b.parts = nil
}
