// Package blockpool hands out blocks of memory in stream order. A block that is freed behind some
// work of a timeline is handed out again at once to whoever comes after that work anyway, and to
// others with one wait at the most.
//
// It is books only: it makes no call of a GPU's API and never touches the memory. Memory comes in
// slabs from a [Source], or is one slab of the caller's.
//
// # Order
//
// A timeline is a stream with its work numbered from 1 on, and a [Mark] is the place behind such a
// piece of work. Free takes the mark after which nobody uses the block any more. Alloc takes the
// timeline whose work will use the block, and an [Order] that knows what is done and what is
// ordered; if that is not enough for any block that is large enough, it returns a mark that the
// timeline must wait for first.
//
// No mark is ever lost: neighbours that are free become one block only when their marks are the
// same or are known to be done, and a block that is made of neighbours with different marks keeps
// them for [Pool.Cancel].
//
// # Cost
//
// Free blocks are kept by timeline and size, so an Alloc that finds a block among those of its own
// timeline asks the order nothing, allocates nothing on the Go heap, and takes time that grows with
// the logarithm of how many blocks are of about that size. What is done is looked at only when that
// fails.
package blockpool

import (
	"fmt"
	"math"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Source is where slabs come from. The pool calls it one call at a time, without holding up Alloc
// and Free of blocks that the pool has. It must not call the pool.
type Source interface {
	// Grow makes a slab of at least size bytes. Its base should be aligned as the pool's blocks
	// are.
	Grow(size uint64) (base, got uint64, err error)
	// Release takes back what Grow made, with no work left on it. It is called once for each slab:
	// if it fails the memory may have been freed or not, and the pool neither uses nor counts it
	// any more.
	Release(base, size uint64) error
}

// Config says how a pool behaves. The zero Config is a pool without a limit.
type Config struct {
	Align    uint64   // of addresses and sizes, a power of two; 0 is 256
	MaxSize  uint64   // bytes that may be reserved; 0 is no limit
	Initial  uint64   // bytes to reserve at once
	SlabSize uint64   // slabs are multiples of it; 0 takes what suits the block
	Waits    WaitRule // whether waiting or growing comes first
}

// A WaitRule says when Alloc makes a timeline wait.
type WaitRule int

// The rules.
const (
	WaitThenGrow WaitRule = iota // rather than ask the source for more
	GrowThenWait                 // only if the source has no more
	NeverWait                    // not at all
)

// A Block is what Alloc hands out.
type Block struct {
	Addr uint64
	Size uint64 // bytes, rounded up to the pool's alignment
	Wait Mark   // the timeline must wait for it before it uses the block, and before the mark at which it frees it
}

// A Pool is a memory pool. Its methods may be called concurrently.
type Pool struct {
	src      Source // nil if the only slab is the caller's
	align    uint64
	shift    uint8 // of the alignment
	limit    uint64
	slabSize uint64
	rule     WaitRule

	sourceMu sync.Mutex // protects the source: one call at a time; taken before mu

	mu        sync.Mutex
	closed    bool
	destroyed bool
	sets      []*set // of free blocks: first of those without a mark, then of each timeline
	live      table
	seams     *block  // free blocks whose next neighbour is free too
	slabs     []*slab // by address
	empty     *slab   // slabs without live blocks
	spare     *block  // records not in use
	rand      uint32  // for their priorities
	query     query   // Alloc's, kept for its memory
	stats     Stats   // without what the method Stats adds
}

// New makes a pool over a source, and lets it make the initial slab.
func New(src Source, c Config) (*Pool, error) {
	p, err := newPool(c)
	if err != nil {
		return nil, err
	}
	p.src = src
	if c.Initial != 0 {
		n, err := p.round(c.Initial)
		if err != nil {
			return nil, err
		}
		p.sourceMu.Lock()
		defer p.sourceMu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.growBy(n, p.align); err != nil {
			return nil, fmt.Errorf("blockpool: the initial slab: %w", p.allocError(n, err))
		}
	}
	return p, nil
}

// Fixed makes a pool over one slab of the caller's. Of c it uses Align and Waits.
func Fixed(base, size uint64, c Config) (*Pool, error) {
	p, err := newPool(Config{Align: c.Align, Waits: c.Waits, MaxSize: size})
	if err != nil {
		return nil, err
	}
	if err := p.check(base, size, p.align); err != nil {
		return nil, fmt.Errorf("blockpool: %w", err)
	}
	p.addSlab(base, size)
	return p, nil
}

func newPool(c Config) (*Pool, error) {
	p := &Pool{align: c.Align, limit: c.MaxSize, slabSize: c.SlabSize, rule: c.Waits, rand: 1}
	if p.align == 0 {
		p.align = 256
	}
	if p.align&(p.align-1) != 0 {
		return nil, fmt.Errorf("blockpool: alignment of %d is not a power of two", p.align)
	}
	if p.limit == 0 {
		p.limit = math.MaxUint64
	}
	for 1<<p.shift < p.align {
		p.shift++
	}
	p.setOf(unmarked)
	return p, nil
}

// Alloc hands out a block of at least size bytes for work of a timeline, from 0 to
// [MaxTimelines]-1. A nil order knows nothing. The error is [ErrSize], [ErrTimeline], [ErrClosed],
// or an [*AllocError].
func (p *Pool) Alloc(size uint64, timeline int, o Order) (Block, error) {
	n, err := p.round(size)
	if err != nil {
		return Block{}, err
	}
	if uint(timeline) >= MaxTimelines {
		return Block{}, timelineError(timeline)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return Block{}, ErrClosed
	}
	b, wait := p.take(n, int32(timeline), o, p.rule == WaitThenGrow)
	if b == nil {
		p.mu.Unlock()
		return p.allocSlow(size, n, int32(timeline), o)
	}
	p.stats.Hits++
	r := Block{b.addr, b.size, wait}
	p.mu.Unlock()
	return r, nil
}

// Near reports whether Alloc would return without a call of the source. It would if the pool has a
// block that was freed behind work of the same timeline, or whose use is known to be over. It also
// would if the pool is closed, or the size is 0.
func (p *Pool) Near(size uint64, timeline int) bool {
	n, err := p.round(size)
	if err != nil || uint(timeline) >= MaxTimelines {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.near(n, int32(timeline)) != nil
}

// allocSlow allocates what the pool had no block for.
func (p *Pool) allocSlow(size, n uint64, on int32, o Order) (Block, error) {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return Block{}, ErrClosed
	}
	b, wait := p.take(n, on, o, p.rule == WaitThenGrow) // others may have grown it meanwhile
	if b != nil {
		p.stats.Hits++
		return Block{b.addr, b.size, wait}, nil
	}
	p.stats.Misses++
	cause := p.growFor(n, o)
	if p.closed {
		return Block{}, ErrClosed
	}
	if b, wait = p.take(n, on, o, p.rule != NeverWait); b == nil {
		p.stats.Failures++
		return Block{}, p.allocError(size, cause)
	}
	return Block{b.addr, b.size, wait}, nil
}

// Free takes back a block whose last use is in front of a mark. With no mark that is over. The work
// in front of the mark must have been issued when work is that uses a block which Alloc returns
// from now on. Free never calls the source. The error is [ErrTimeline], [ErrUnknown], [ErrInside],
// [ErrDoubleFree] or [ErrClosed], and changes nothing. A block that was freed and handed out anew
// at the same address cannot be told from the old one.
func (p *Pool) Free(addr uint64, after Mark) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if after.Seq != 0 && uint(after.Timeline) >= MaxTimelines {
		return timelineError(after.Timeline)
	}
	b := p.live.remove(addr)
	if b == nil {
		return p.freeError(addr)
	}
	p.unuse(b)
	p.dropParts(b)
	b.tl, b.seq = unmarked, 0
	if after.Seq != 0 {
		b.tl, b.seq = int32(after.Timeline), after.Seq
	}
	p.place(b)
	return nil
}

// Cancel undoes an Alloc whose block nobody has used and whose wait nobody has made. The errors are
// those of Free.
func (p *Pool) Cancel(addr uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.live.remove(addr)
	if b == nil {
		return p.freeError(addr)
	}
	p.unuse(b)
	if b.parts == nil {
		p.place(b)
		return nil
	}
	p.restore(b)
	return nil
}

// round rounds a size up to the alignment.
func (p *Pool) round(size uint64) (uint64, error) {
	n := (size + p.align - 1) &^ (p.align - 1)
	switch {
	case size == 0:
		return 0, fmt.Errorf("blockpool: no bytes: %w", ErrSize)
	case n < size:
		return 0, fmt.Errorf("blockpool: %d bytes: %w: %w", size, ErrSize, driver.ErrOutOfMemory)
	}
	return n, nil
}

// take hands out a block that the pool has, if it can: with no wait, or else with one.
func (p *Pool) take(n uint64, on int32, o Order, mayWait bool) (*block, Mark) {
	if b := p.near(n, on); b != nil {
		return p.use(b, n), Mark{}
	}
	q := &p.query
	q.start(on, o, len(p.sets))
	if b := p.ordered(n, q); b != nil {
		return p.use(b, n), Mark{}
	}
	if p.settle(o) {
		if b := p.near(n, on); b != nil {
			return p.use(b, n), Mark{}
		}
	}
	if p.seams != nil {
		look := math.MaxInt
		if mayWait {
			look = quickLook
		}
		if first, last := p.gather(n, q, false, look); first != nil {
			return p.join(first, last, n, q)
		}
	}
	if !mayWait {
		return nil, Mark{}
	}
	if b := p.foreign(n, on); b != nil {
		p.stats.Waits++
		wait := b.mark()
		return p.use(b, n), wait
	}
	if p.seams != nil {
		if first, last := p.gather(n, q, true, math.MaxInt); first != nil {
			return p.join(first, last, n, q)
		}
	}
	return nil, Mark{}
}

// near returns the best block that needs no question: one of the timeline's own or one without a
// mark.
func (p *Pool) near(n uint64, on int32) *block {
	var b *block
	if s := p.set(on); s != nil {
		b = s.fit(n)
		if b != nil && b.size == n {
			return b
		}
	}
	if c := p.set(unmarked).fit(n); c != nil && (b == nil || c.size < b.size) {
		return c
	}
	return b
}

// ordered returns the best block of another timeline that this one comes after.
func (p *Pool) ordered(n uint64, q *query) (best *block) {
	for i, s := range p.sets[1:] {
		if s == nil || s.n == 0 || int32(i) == q.on {
			continue
		}
		if b := s.fitOrdered(n, q, int32(i)); b != nil && (best == nil || b.size < best.size) {
			best = b
		}
	}
	return best
}

// foreign returns the best block of another timeline, wait or not.
func (p *Pool) foreign(n uint64, on int32) (best *block) {
	for i, s := range p.sets[1:] {
		if s == nil || s.n == 0 || int32(i) == on {
			continue
		}
		if b := s.fit(n); b != nil && (best == nil || b.size < best.size) {
			best = b
		}
	}
	return best
}
