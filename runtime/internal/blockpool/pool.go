// Package blockpool is a memory allocator in stream order. A block may be freed while work of a
// timeline still uses it. Work that is ordered after that work anyway can reuse the block at once.
// Other work can reuse the block with at most one wait.
//
// The package only does the bookkeeping. It calls no GPU API and never accesses the memory. Memory
// comes in slabs from a [Source], or is one slab of the caller.
//
// # Order
//
// A timeline is a stream whose work is numbered from 1, and a [Mark] is the place behind the work
// with a number. Free gets the mark behind which nobody uses the block any more. Alloc gets the
// timeline whose work will use the block, and an [Order] that knows which work is done and which
// work is ordered. If no free block that is large enough can be used without a wait, Alloc may
// return a block with a mark (see [WaitRule]). The timeline must wait for the mark before it uses
// the block.
//
// No mark is ever lost. Adjacent free blocks are merged only if their marks are equal or known to
// be done. If Alloc makes a block of adjacent blocks with different marks, it keeps these marks for
// [Pool.Cancel].
//
// # Cost
//
// Free blocks are sorted by timeline and size. An Alloc that finds a block of its own timeline, or
// one that no work uses, does not call the Order. Such an Alloc takes logarithmic time in the
// number of free blocks of about that size. An Alloc that needs no new slab allocates on the Go
// heap only if the pool then has more blocks, or blocks of more timelines, than ever before.
package blockpool

import (
	"fmt"
	"math"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Source, such as an allocator of device memory, provides slabs. The pool makes one call at a
// time. During a call, other goroutines can still allocate blocks that the pool has, and free
// blocks. The Source must not call the pool.
type Source interface {
	// Grow allocates a slab of at least size bytes, and returns its address and its size. The
	// address should be aligned like the pool's blocks.
	Grow(size uint64) (base, got uint64, err error)
	// Release frees a slab that Grow has returned. No work uses the slab any more, except in calls
	// from [Pool.Destroy]. Release is called at most once for each slab. If it fails, the memory
	// may or may not be free; the pool forgets the slab in any case.
	Release(base, size uint64) error
}

// Config has the options of a pool. The zero Config is valid and sets no limit.
type Config struct {
	Align    uint64   // alignment of addresses and sizes, a power of two; 0 means 256
	MaxSize  uint64   // maximum bytes in slabs; 0 means no limit
	Initial  uint64   // size of a slab that New allocates; 0 means none
	SlabSize uint64   // slab sizes are multiples of it, if the source and MaxSize permit; 0 lets the pool choose
	Waits    WaitRule // whether Alloc prefers a wait or a new slab
}

// A WaitRule says when Alloc returns a block with a mark to wait for.
type WaitRule int

// The wait rules. They apply if no block can be used without a wait.
const (
	WaitThenGrow WaitRule = iota // prefer a block with a wait to a new slab
	GrowThenWait                 // return a block with a wait only if the source provides no new slab
	NeverWait                    // never return a block with a wait
)

// A Block is the result of Alloc.
type Block struct {
	Addr uint64
	Size uint64 // bytes, rounded up to the pool's alignment
	Wait Mark   // if Wait.Seq is not 0: the mark to wait for before the block is used or freed
}

// A Pool is a memory pool. Its methods may be called concurrently.
type Pool struct {
	src      Source // nil if the only slab is the caller's: see Fixed
	align    uint64
	shift    uint8 // log2 of align
	limit    uint64
	slabSize uint64
	rule     WaitRule

	sourceMu sync.Mutex // held during a call of src; locked before mu

	mu        sync.Mutex
	closed    bool
	destroyed bool
	// sets has the free blocks: sets[0] the blocks without a mark, sets[i+1] the blocks with a mark
	// of timeline i. Elements may be nil.
	sets  []*set
	live  table
	seams *block  // list of free blocks whose next neighbour is free too
	slabs []*slab // all slabs, ordered by address
	empty *slab   // list of slabs without live blocks
	spare *block  // list of unused block structs
	rand  uint32  // state of the random numbers for block.prio
	query query   // used by Alloc; a field so that its memory is reused
	stats Stats   // without Largest, Free and Slabs, which the method Stats computes
}

// New returns a pool that gets its slabs from src. If c.Initial is not 0, New calls src for a first
// slab.
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

// Fixed returns a pool with one slab, the caller's memory at base. It uses only Align and Waits of
// c.
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

// Alloc allocates a block of at least size bytes for work of a timeline, from 0 to
// [MaxTimelines]-1. It may call the source. A nil Order means that nothing is known to be done or
// ordered. The error is [ErrSize], [ErrTimeline], [ErrClosed] or an [*AllocError].
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

// Near reports whether Alloc would return without a call of the source or of an Order. That is so
// if the pool has a block that was freed on the same timeline or that no work uses any more. It is
// also so if Alloc would return [ErrClosed], [ErrSize] or [ErrTimeline].
func (p *Pool) Near(size uint64, timeline int) bool {
	n, err := p.round(size)
	if err != nil || uint(timeline) >= MaxTimelines {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.near(n, int32(timeline)) != nil
}

// allocSlow allocates a block when the pool had none that was acceptable. It may call the source.
func (p *Pool) allocSlow(size, n uint64, on int32, o Order) (Block, error) {
	p.sourceMu.Lock()
	defer p.sourceMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return Block{}, ErrClosed
	}
	// Try again: another goroutine may have added a slab.
	b, wait := p.take(n, on, o, p.rule == WaitThenGrow)
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

// Free frees the block at addr. after is the mark behind its last use. If after.Seq is 0, that use
// is over. The work in front of the mark must be issued before any work that uses a block which
// Alloc returns from now on. Free never calls the source. The error is [ErrTimeline], [ErrUnknown],
// [ErrInside], [ErrDoubleFree] or [ErrClosed]. With an error nothing has changed. Free cannot
// detect a second free of a block if Alloc has returned the same address again in between.
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

// Cancel undoes an Alloc. Nobody may have used the block, and no stream may have waited for its
// mark. It returns the same errors as Free, except [ErrTimeline].
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

// round rounds a size up to a multiple of the alignment.
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

// take allocates a block from the memory that the pool has. It prefers a block without a wait. If
// mayWait is set, it may return a block with a mark to wait for. It returns nil if there is no
// block.
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

// near returns the smallest free block of at least n bytes that was freed on the given timeline or
// has no mark. Such a block needs no wait and no call of an Order. near returns nil if there is
// none.
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

// ordered returns the smallest free block of at least n bytes that was freed on another timeline
// and that the query's timeline may use without a wait. It returns nil if there is none.
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

// foreign returns the smallest free block of at least n bytes that was freed on another timeline,
// even if it needs a wait. It returns nil if there is none.
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
