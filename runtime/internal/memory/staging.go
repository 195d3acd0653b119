package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Staging is the part of a submission's record for data that goes through pinned memory.
type Staging struct {
	Host  []byte // the destination of a download
	Block *Block // pinned memory of an upload, a download or a piece of a transfer
	touch touch  // tells the race detector that a download writes Host
}

// Issue stores the addresses of the block in x, for the native calls. For a download it tells the
// race detector that the operation writes Host. Issue is called before the native calls are made.
func (p *Staging) Issue(x *work.Extra) {
	if p.Block != nil {
		p.Block.Give(x)
	}
	if p.Host != nil {
		p.touch = touchWritten(p.Host)
	}
}

// Deliver tells the race detector that the download no longer writes Host (see touch). If arrived
// is set, Deliver then copies the data of the download to Host.
func (p *Staging) Deliver(arrived bool) {
	p.touch.over()
	if arrived && p.Host != nil {
		Land(p.Host, p.Block.Bytes())
	}
	p.Host = nil
}

// Release releases the pinned memory, and empties p.
func (p *Staging) Release() {
	if p.Block != nil {
		p.Block.Free()
	}
	*p = Staging{}
}

// StageStats count the bytes of pinned memory.
type StageStats struct {
	Held uint64 // bytes that are pinned
	Used uint64 // bytes of blocks in use
	Peak uint64 // highest value of Used
}

// A Stage is a device's pinned host memory for transfers. The sizes of its blocks are powers of
// two. Blocks are recycled.
type Stage struct {
	dev  *Device
	size int // the least number of bytes to pin at once
	// mu protects the following fields, Block.next and stageSlab.nfree. No other lock is taken
	// while it is held.
	mu    sync.Mutex
	sizes [40]stageClass // index: log2 of the size
	slabs []*stageSlab
	stat  StageStats
}

// A stageClass has the blocks of one size.
type stageClass struct {
	free    *Block
	nfree   int
	made    int
	growing bool
}

// A stageSlab is pinned memory, cut into blocks of one class.
type stageSlab struct {
	mem   driver.Mem
	size  int
	made  int // number of blocks
	nfree int // number of free blocks; protected by the stage's mu
}

// Statistics returns the current figures.
func (s *Stage) Statistics() StageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stat
}

// A Block is a block of pinned memory.
type Block struct {
	of    *Stage
	slab  *stageSlab
	host  unsafe.Pointer
	ptr   driver.Ptr // the address on the device
	n     int        // bytes in use
	class int
	// The number of references: one from Get, and one from each call of Hold.
	refs atomic.Int32
	next *Block
}

// Give stores the addresses of the block in x, for the native calls of a transfer.
func (b *Block) Give(x *work.Extra) { x.Host, x.Pinned = b.host, b.ptr }

// Hold adds a reference.
func (b *Block) Hold() *Block {
	b.refs.Add(1)
	return b
}

// Bytes returns the bytes in use.
func (b *Block) Bytes() []byte { return b.At(b.n) }

// At returns the first n bytes.
func (b *Block) At(n int) []byte { return unsafe.Slice((*byte)(b.host), n) }

// Free drops a reference. When no reference is left, the block is free.
func (b *Block) Free() {
	if b.refs.Add(-1) > 0 {
		return
	}
	b.of.mu.Lock()
	b.of.sizes[b.class].put(b)
	b.of.stat.Used -= 1 << b.class
	b.of.mu.Unlock()
}

func (c *stageClass) put(b *Block) {
	b.next, c.free = c.free, b
	b.slab.nfree++
	c.nfree++
}

const smallestStage = 8 // log2 of the size of the smallest blocks

// class returns the class of the smallest blocks that have at least n bytes. A class is log2 of the
// size of its blocks.
func (s *Stage) class(n int) int { return max(bits.Len(uint(n-1)), smallestStage) }

// take takes a block of at least n bytes, or returns nil if its class has no free block. If few are
// free, the refiller makes more (see stageAhead).
func (s *Stage) take(n int) *Block {
	class := s.class(n)
	s.mu.Lock()
	c := &s.sizes[class]
	b := c.free
	if b != nil {
		c.free = b.next
		b.slab.nfree--
		c.nfree--
		s.stat.Used += 1 << class
		s.stat.Peak = max(s.stat.Peak, s.stat.Used)
	}
	low := !c.growing && c.made >= stageAhead && c.nfree <= c.made/stageAhead
	if low {
		c.growing = true
	}
	s.mu.Unlock()
	if low {
		s.dev.Engine.Refill(func() error { return s.grow(class) }, func() { s.grown(class) })
	}
	if b != nil {
		b.n, b.next = n, nil
		b.refs.Store(1)
	}
	return b
}

// stageAhead says when the refiller makes more blocks of a class: the class has at least stageAhead
// blocks, and at most one in stageAhead is free.
const stageAhead = 4

// grown is called when the refiller has tried to make more blocks of a class.
func (s *Stage) grown(class int) {
	s.mu.Lock()
	s.sizes[class].growing = false
	s.mu.Unlock()
}

// fits returns an error if no block can have n bytes.
func (s *Stage) fits(n int) error {
	if s.class(n) >= len(s.sizes) {
		return errs.Argument("stage", "%d bytes at once", n)
	}
	return nil
}

// Get takes a block of at least n bytes. If none is free, Get blocks while the driver pins memory.
func (s *Stage) Get(n int) (*Block, error) {
	if err := s.fits(n); err != nil {
		return nil, err
	}
	b := s.take(n)
	for b == nil {
		if err := s.dev.Engine.Do(func() error { return s.growEmpty(s.class(n)) }); err != nil {
			s.dev.Engine.Check(err)
			return nil, fmt.Errorf("gpu: %w", err)
		}
		b = s.take(n)
	}
	// A lost device may still copy to or from its free blocks, so Get must not return a block.
	if err := s.dev.Failed(); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// growEmpty calls grow, unless the class has a free block again.
func (s *Stage) growEmpty(class int) error {
	s.mu.Lock()
	free := s.sizes[class].free
	s.mu.Unlock()
	if free != nil {
		return nil
	}
	return s.grow(class)
}

// grow pins memory for blocks of a class. The method runs on a bound thread.
func (s *Stage) grow(class int) error {
	size := max(1<<class, s.size)
	mem, err := s.dev.Engine.Native.Alloc(driver.HostMem, uint64(size))
	if err != nil {
		return fmt.Errorf("%d bytes of pinned memory: %w", size, err)
	}
	blocks := make([]Block, size>>class)
	s.mu.Lock()
	defer s.mu.Unlock()
	slab := &stageSlab{mem: mem, size: size, made: len(blocks)}
	s.slabs = append(s.slabs, slab)
	s.stat.Held += uint64(size)
	for i := range blocks {
		b := &blocks[i]
		b.of, b.slab, b.class = s, slab, class
		b.host, b.ptr = unsafe.Add(mem.Host, i<<class), mem.Ptr+driver.Ptr(i<<class)
		s.sizes[class].put(b)
	}
	s.sizes[class].made += len(blocks)
	return nil
}

// Trim frees the slabs that have no block in use, unless the device is lost. It runs on a bound
// thread.
func (s *Stage) Trim() (err error) {
	for _, m := range s.unused() {
		err = cmp.Or(err, s.dev.Engine.Native.Free(m))
	}
	return err
}

// unused removes the slabs without a block in use, and returns their memory. For a lost device it
// removes no slab, because the device may still use any of them.
func (s *Stage) unused() (mem []driver.Mem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dev.Engine.Loss() != nil {
		return nil
	}
	unused := func(slab *stageSlab) bool { return slab.nfree == slab.made }
	for i := range s.sizes {
		c := &s.sizes[i]
		for at := &c.free; *at != nil; {
			if b := *at; unused(b.slab) {
				*at = b.next
				c.nfree--
				c.made--
			} else {
				at = &b.next
			}
		}
	}
	s.slabs = slices.DeleteFunc(s.slabs, func(slab *stageSlab) bool {
		if !unused(slab) {
			return false
		}
		mem = append(mem, slab.mem)
		s.stat.Held -= uint64(slab.size)
		return true
	})
	return mem
}

// Close frees the memory. It runs on the pending-queue thread.
func (s *Stage) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, slab := range s.slabs {
		errs = append(errs, s.dev.Engine.Native.Free(slab.mem))
	}
	s.slabs, s.stat.Held = nil, 0
	clear(s.sizes[:])
	return errors.Join(errs...)
}
