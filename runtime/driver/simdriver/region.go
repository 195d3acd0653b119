package simdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// The regions of a pool run ahead of the streams: they show the state after all submitted work has
// executed. Each segment is divided into regions. A region is allocated or free. A free region
// remembers its last free. An allocation may use the region if that free has executed, or is
// ordered before the allocation, or if the allocation waits for that free. The pool's switches can
// forbid such uses in other streams.

// A region is a part of a segment.
type region struct {
	base       driver.Ptr
	size       uint64
	block      *block // the block that is allocated in the region; nil if the region is free
	lane       *lane  // the lane that freed the region with operation seq; nil if any stream may use it
	seq        uint64
	prev, next *region // neighbours in address order
}

// A lane is a stream that has freed memory of a pool.
type lane struct {
	stream      *stream
	done        uint64 // all frees up to this operation of the stream have executed
	first, last *block // list of freed blocks; settle has not yet found their frees executed
}

// settle finds out which frees have executed. The caller holds mu.
func (p *pool) settle() {
	n := 0
	for _, l := range p.lanes {
		for b := l.first; b != nil && b.over(); b = l.first {
			l.first, l.done = b.later, b.freedAt
			p.used.now -= b.room
			b.segment.forget(b)
			p.oldBlock(b)
		}
		if l.first != nil || !l.stream.stopped.Load() {
			p.lanes[n] = l
			n++
		}
	}
	clear(p.lanes[n:])
	p.lanes = p.lanes[:n]
}

// take allocates a block. It also returns the mark that the stream has to wait for; the zero mark
// means none. The caller holds the mutexes of the pool and the stream.
func (p *pool) take(s *stream, size uint64) (*block, mark, error) {
	p.settle()
	room := (min(size, maxMemory) + alignment - 1) / alignment * alignment
	if size > maxMemory {
		return nil, mark{}, fmt.Errorf("%d bytes: %w", size, driver.ErrOutOfMemory)
	}
	g, r, after := p.search(s, room, false)
	for r == nil {
		fresh, err := p.grow(room)
		if err == nil {
			g, r = fresh, fresh.first
			break
		}
		if p.shrink() {
			continue
		}
		if p.switches[driver.PoolReuseInternal] {
			g, r, after = p.search(s, room, true)
		}
		if r == nil {
			return nil, mark{}, err
		}
	}
	p.carve(g, r, room)
	b := p.newBlock()
	b.pool, b.segment, b.region, b.maker = p, g, r, s
	b.base, b.size, b.room = r.base, size, room
	r.block = b
	g.free -= room
	g.remember(b)
	p.used.add(room)
	p.count++
	return b, after, nil
}

// search finds adjacent free regions that together have room for size bytes and that the stream may
// use. It returns the first of them, and its segment. It prefers the regions that the stream itself
// freed most recently, because such reuse exposes mistakes in the order of streams. Otherwise it
// takes the first regions that it finds. If wait is true, frees of one other stream may be pending.
// The result after is the mark that the stream must wait for; the zero mark means none.
func (p *pool) search(s *stream, size uint64, wait bool) (g *segment, r *region, after mark) {
	last := uint64(0)
	for _, seg := range p.segments {
		if seg.free < size {
			continue
		}
		var run struct {
			first *region
			size  uint64
			last  uint64
			after mark
		}
		for q := seg.first; q != nil; q = q.next {
			if q.block != nil {
				run.first = nil
				continue
			}
			p.tidy(q)
			usable := p.usable(s, q)
			if !usable && (!wait || q.lane.stream.stopped.Load() || q.lane.stream.dev.down.Load() != nil) {
				run.first = nil
				continue
			}
			if run.first == nil || !usable && run.after.stream != nil && run.after.stream != q.lane.stream {
				run.first, run.size, run.last, run.after = q, 0, 0, mark{}
			}
			run.size += q.size
			if !usable {
				run.after = mark{q.lane.stream, max(run.after.seq, q.seq)}
			} else if q.lane != nil && q.lane.stream == s {
				run.last = max(run.last, q.seq)
			}
			if run.size >= size {
				if r == nil || run.last > last {
					g, r, last, after = seg, run.first, run.last, run.after
				}
				run.first = nil
			}
		}
	}
	return g, r, after
}

// usable reports whether the stream may use a free region without a wait. The caller holds the
// mutexes of the pool and the stream.
func (p *pool) usable(s *stream, r *region) bool {
	l := r.lane
	return l == nil || l.stream == s || p.switches[driver.PoolReuseEvents] && s.after(l.stream, r.seq)
}

// tidy calls p.open for a free region, and merges the region with the free regions behind it that
// are in the same lane.
func (p *pool) tidy(r *region) {
	p.open(r)
	for n := r.next; n != nil && n.block == nil; n = r.next {
		if p.open(n); n.lane != r.lane {
			return
		}
		p.unite(r, n)
	}
}

// open lets any stream use a free region whose free has executed, if PoolReuseOpportunistic is on
// or the freeing stream was destroyed.
func (p *pool) open(r *region) {
	if l := r.lane; l != nil && l.done >= r.seq && (p.switches[driver.PoolReuseOpportunistic] || l.stream.stopped.Load()) {
		r.lane, r.seq = nil, 0
	}
}

// unite merges two adjacent free regions of the same lane.
func (p *pool) unite(r, n *region) {
	r.size += n.size
	r.seq = max(r.seq, n.seq)
	r.next = n.next
	if r.next != nil {
		r.next.prev = r
	}
	p.oldRegion(n)
}

// carve makes r a region of exactly size bytes. Together r and the free regions behind it must be
// large enough.
func (p *pool) carve(g *segment, r *region, size uint64) {
	for r.size < size {
		n := r.next
		part := min(n.size, size-r.size)
		r.size += part
		if n.base, n.size = n.base+driver.Ptr(part), n.size-part; n.size == 0 {
			r.next = n.next
			if r.next != nil {
				r.next.prev = r
			}
			p.oldRegion(n)
		}
	}
	if r.size > size {
		n := p.newRegion()
		n.base, n.size, n.lane, n.seq = r.base+driver.Ptr(size), r.size-size, r.lane, r.seq
		n.prev, n.next = r, r.next
		if n.next != nil {
			n.next.prev = n
		}
		r.size, r.next = size, n
	}
	r.lane, r.seq = nil, 0
}

// give frees a block. The free is operation seq of stream s. The caller holds mu.
func (p *pool) give(b *block, s *stream, seq uint64) {
	l := p.lane(s)
	b.freedAt = seq
	if l.first == nil {
		l.first = b
	} else {
		l.last.later = b
	}
	l.last = b
	p.vacate(b, l, seq)
}

// abandon frees a block immediately, because no work that could use it will execute. The caller
// holds mu.
func (p *pool) abandon(b *block) {
	b.state.Store(abandoned)
	p.used.now -= b.room
	b.segment.forget(b)
	p.vacate(b, nil, 0)
}

// vacate marks a block's region as free, and merges it with free neighbours of the same lane.
func (p *pool) vacate(b *block, l *lane, seq uint64) {
	r := b.region
	r.block, r.lane, r.seq = nil, l, seq
	b.region = nil
	b.segment.free += r.size
	p.count--
	if n := r.next; n != nil && n.block == nil && n.lane == l {
		p.unite(r, n)
	}
	if q := r.prev; q != nil && q.block == nil && q.lane == l {
		p.unite(q, r)
	}
}

// lane returns the lane of the stream, and makes it if there is none. The caller holds mu.
func (p *pool) lane(s *stream) *lane {
	for _, l := range p.lanes {
		if l.stream == s {
			return l
		}
	}
	l := &lane{stream: s}
	p.lanes = append(p.lanes, l)
	return l
}

// vacant reports whether a whole segment is free and its frees have executed. The caller holds the
// pool's mu.
func (g *segment) vacant() bool {
	if g.free < g.memory.size {
		return false
	}
	for r := g.first; r != nil; r = r.next {
		if r.lane != nil && r.lane.done < r.seq {
			return false
		}
	}
	return true
}

// block finds the block that begins at m.Ptr. The caller holds the pool's mu.
func (g *segment) block(m driver.Mem) (*block, error) {
	if g.gone {
		return nil, fmt.Errorf("memory at %#x: %w: it was freed already", uint64(m.Ptr), ErrInvalidValue)
	}
	r := g.first
	for r.base+driver.Ptr(r.size) <= m.Ptr {
		r = r.next
	}
	switch {
	case r.block == nil:
		return nil, fmt.Errorf("memory at %#x: %w: it was freed already, or never allocated", uint64(m.Ptr), ErrInvalidValue)
	case r.base != m.Ptr:
		return nil, fmt.Errorf("memory at %#x: %w: the allocation begins at %#x", uint64(m.Ptr), ErrInvalidValue, uint64(r.base))
	case m.Kind != g.pool.kind:
		return nil, fmt.Errorf("memory at %#x: %w: it is of kind %d, not %d", uint64(m.Ptr), ErrInvalidValue, g.pool.kind, m.Kind)
	}
	return r.block, nil
}

// newRegion returns an empty region. The caller holds mu, here and below.
func (p *pool) newRegion() *region {
	r := p.regions
	if r == nil {
		return new(region)
	}
	p.regions = r.next
	*r = region{}
	return r
}

// oldRegion keeps an unused region for newRegion.
func (p *pool) oldRegion(r *region) {
	*r = region{next: p.regions}
	p.regions = r
}

// newBlock returns a new block, or one that oldBlock has kept. The caller sets its fields.
func (p *pool) newBlock() *block {
	b := p.blocks
	if b == nil {
		return new(block)
	}
	p.blocks, b.later = b.later, nil
	b.state.Store(submitted)
	return b
}

// oldBlock keeps an unused block for newBlock, except an abandoned one, to which a stream may still
// refer.
func (p *pool) oldBlock(b *block) {
	b.prev, b.next, b.later = nil, nil, nil
	if b.state.Load() == freed {
		b.later, p.blocks = p.blocks, b
	}
}
