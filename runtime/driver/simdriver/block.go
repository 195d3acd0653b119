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
	region  *region // until FreeAsync; under the pool's mu
	maker   *stream // which allocates it
	base    driver.Ptr
	size    uint64
	room    uint64 // bytes that it takes

	state atomic.Uint32

	freedAt    uint64 // by which operation of its lane's stream; under the pool's mu
	later      *block // next of the lane; likewise
	prev, next *block // of the segment's; under the segment's mu
}

// The states of a block, as streams see them.
const (
	submitted uint32 = iota // its stream has not reached it
	live
	freed
	abandoned // its free, or its allocation, was dropped
)

// A segment is memory that a pool has reserved. Several blocks may have the same place in it, as long as streams have not
// executed what was submitted: at most one of them is live.
type segment struct {
	pool   *pool
	memory *allocation

	// Under the pool's mu:
	free  uint64  // bytes
	first *region // by address
	gone  bool    // it was given back

	mu     sync.RWMutex
	oldest *block // those that are not over, in the order of AllocAsync
	newest *block
	graves [16]struct {
		base driver.Ptr
		size uint64
	}
	dug int // blocks that went into graves
}

// scraps is how much of a block is overwritten when it is freed.
const scraps = 4 << 10

// mem describes the block to the program.
func (b *block) mem() driver.Mem {
	m := driver.Mem{Kind: b.pool.kind, Ptr: b.base, Size: b.size}
	if h := b.segment.memory.host; h != nil {
		m.Host = unsafe.Add(h, uint64(b.base-b.segment.memory.base))
	}
	return m
}

// begin makes the block live: its stream has reached it.
func (b *block) begin() { b.state.CompareAndSwap(submitted, live) }

// yield prepares the end of the block: a stream has reached that.
func (b *block) yield() *AccessError {
	if b.state.Load() == submitted && b.maker.dev.down.Load() == nil && !b.maker.stopped.Load() {
		return &AccessError{Addr: b.base, Size: b.size, Base: b.base, Length: b.size, Early: true}
	}
	// Nobody may count on what is in it, and the race detector finds who is at it still.
	if p := b.segment.memory.data.Load(); p != nil {
		at := unsafe.Add(unsafe.Pointer(p), uint64(b.base-b.segment.memory.base))
		fill(unsafe.Slice((*byte)(at), min(b.size, scraps)), 0xdb, 1)
	}
	return nil
}

// end ends the block: its free has executed, or will not. Nobody may use b afterwards.
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

// remember adds a block.
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

// forget removes a block that is over.
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

// allows says why the device must not access n bytes at p now. That p is in the segment is known, and n is not 0.
func (g *segment) allows(v *device, p driver.Ptr, n uint64) *AccessError {
	has, may := g.has(p, n), g.pool.users[v.index].Load()
	if has && may {
		return nil
	}
	e := &AccessError{Addr: p, Size: n}
	g.explain(e)
	if at := uint64(p - e.Base); !e.Freed && !e.Early && at < e.Length && n <= e.Length-at {
		e.Barred, e.Early = !may, may // or it has begun since
	}
	return e
}

// has reports whether n bytes at p are in a live block.
//
//go:norace
func (g *segment) has(p driver.Ptr, n uint64) bool {
	hush() // or what streams have in common would look like an order between them
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

// explain says in e what an access has missed that is not allowed, or goes beyond the segment.
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
