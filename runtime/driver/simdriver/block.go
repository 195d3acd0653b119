package simdriver

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A block is an allocation of a pool.
type block struct {
	pool    *pool
	segment *segment
	region  *region // nil after FreeAsync; protected by pool.mu
	maker   *stream // the stream that executes the allocation
	base    driver.Ptr
	size    uint64
	room    uint64 // size with padding, in bytes

	state atomic.Uint32

	freedAt    uint64 // number of the free in the stream of its lane; protected by pool.mu
	later      *block // next freed block of the lane; protected by pool.mu
	prev, next *block // neighbours in the segment's list of blocks; protected by segment.mu
}

// The states of a block. A stream changes the state when it executes the allocation and the free.
const (
	submitted uint32 = iota // the stream has not executed the allocation
	live
	freed
	abandoned // the allocation or the free was dropped
)

// A segment is memory that a pool has reserved. AllocAsync may run ahead of the streams, so several
// blocks may have the same addresses. At most one of these blocks is live.
type segment struct {
	pool   *pool
	memory *allocation

	// Protected by pool.mu:
	free  uint64  // free bytes
	first *region // first region in address order
	gone  bool    // the pool has given the segment back

	mu     sync.RWMutex
	oldest *block // list in the order of AllocAsync; settle removes the blocks that have ended
	newest *block
	graves [16]struct {
		base driver.Ptr
		size uint64
	}
	dug int // number of ended blocks that were noted in graves
}

// scraps is the maximum number of bytes of a block that are overwritten when the block is freed.
const scraps = 4 << 10

// mem returns the block as AllocAsync returns it.
func (b *block) mem() driver.Mem {
	m := driver.Mem{Kind: b.pool.kind, Ptr: b.base, Size: b.size}
	if h := b.segment.memory.host; h != nil {
		m.Host = unsafe.Add(h, uint64(b.base-b.segment.memory.base))
	}
	return m
}

// begin is called when the stream executes the allocation. It makes a submitted block live.
func (b *block) begin() { b.state.CompareAndSwap(submitted, live) }

// yield is called when a stream executes the free. It returns an error if the stream of the
// allocation has not executed the allocation but still can. Otherwise yield overwrites the
// beginning of the block.
func (b *block) yield() *AccessError {
	if b.state.Load() == submitted && b.maker.dev.down.Load() == nil && !b.maker.stopped.Load() {
		return &AccessError{Addr: b.base, Size: b.size, Base: b.base, Length: b.size, Early: true}
	}
	// From here on the contents are undefined. The write makes the race detector report goroutines
	// that still use the memory.
	if p := b.segment.memory.data.Load(); p != nil {
		at := unsafe.Add(unsafe.Pointer(p), uint64(b.base-b.segment.memory.base))
		fill(unsafe.Slice((*byte)(at), min(b.size, scraps)), 0xdb, 1)
	}
	return nil
}

// end ends the block, because the block's free has executed, or will never execute. The caller must
// not use b afterwards.
func (b *block) end() {
	p := b.pool
	if !b.state.CompareAndSwap(live, freed) {
		b.state.Store(abandoned)
	}
	if p.dying.Load() {
		p.expire()
	}
}

// over reports whether the block has ended.
func (b *block) over() bool { return b.state.Load() >= freed }

// remember adds a block to the segment's list.
func (g *segment) remember(b *block) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b.prev, b.next = g.newest, nil
	if b.prev != nil {
		b.prev.next = b
	} else {
		g.oldest = b
	}
	g.newest = b
}

// forget removes a block that has ended from the segment's list.
func (g *segment) forget(b *block) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		g.oldest = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		g.newest = b.prev
	}
	grave := &g.graves[g.dug%len(g.graves)]
	grave.base, grave.size = b.base, b.size
	g.dug++
}

// allows returns an error if the device must not access n bytes at p now. p must be in the segment,
// and n must not be 0.
func (g *segment) allows(v *device, p driver.Ptr, n uint64) *AccessError {
	has, may := g.has(p, n), g.pool.users[v.index].Load()
	if has && may {
		return nil
	}
	e := &AccessError{Addr: p, Size: n}
	g.explain(e)
	if at := uint64(p - e.Base); !e.Freed && !e.Early && at < e.Length && n <= e.Length-at {
		e.Barred, e.Early = !may, may // if may is true, the block became live after the call of has
	}
	return e
}

// has reports whether n bytes at p are in a live block.
//
//go:norace
func (g *segment) has(p driver.Ptr, n uint64) bool {
	hush() // hide the lock from the race detector, which would take it for an order of streams
	defer unhush()
	g.mu.RLock()
	defer g.mu.RUnlock()
	for b := g.oldest; b != nil; b = b.next {
		if p >= b.base && uint64(p-b.base) < b.size && b.state.Load() == live {
			return n <= b.size-uint64(p-b.base)
		}
	}
	return false
}

// explain sets the fields of e that describe the memory around a refused access.
func (g *segment) explain(e *AccessError) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	e.Base, e.Length = 0, 0
	inside := func(base driver.Ptr, size uint64) bool { return e.Addr >= base && uint64(e.Addr-base) < size }
	var ahead, near *block
	nearest := ^uint64(0)
	for b := g.oldest; b != nil; b = b.next {
		switch in := inside(b.base, b.size); {
		case in && b.over():
			e.Base, e.Length, e.Freed = b.base, b.size, true
			return
		case in && b.state.Load() == live:
			e.Base, e.Length = b.base, b.size
			return
		case in && ahead == nil:
			ahead = b
		case !in:
			gap := uint64(b.base - e.Addr)
			if e.Addr > b.base {
				gap = uint64(e.Addr-b.base) - b.size
			}
			if gap < nearest {
				near, nearest = b, gap
			}
		}
	}
	if ahead != nil {
		e.Base, e.Length, e.Early = ahead.base, ahead.size, true
		return
	}
	for i := g.dug - 1; i >= max(g.dug-len(g.graves), 0); i-- {
		if grave := &g.graves[i%len(g.graves)]; inside(grave.base, grave.size) {
			e.Base, e.Length, e.Freed = grave.base, grave.size, true
			return
		}
	}
	if near != nil {
		e.Base, e.Length = near.base, near.size
	}
}
