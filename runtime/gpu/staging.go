package gpu

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
)

// stagingPart is the part of a record for data that goes through pinned memory.
type stagingPart struct {
	touch touch       // of the program's memory, from issue until the signals are given
	host  []byte      // a download fills it
	stage *stageBlock // pinned memory of an update, a download or a piece of a transfer
}

// A stage is a device's pinned host memory for transfers: recycled blocks, with powers of two as
// sizes.
type stage struct {
	dev   *Device
	mu    sync.Mutex     // protects what follows, and next of blocks and nfree of slabs; a leaf
	sizes [40]stageClass // by log2 of the bytes
	slabs []*stageSlab
	stat  StagingStats
}

// A stageClass is the blocks of one size.
type stageClass struct {
	free    *stageBlock
	nfree   int
	made    int
	growing bool
}

// A stageSlab is pinned memory, cut into blocks of one class.
type stageSlab struct {
	mem   driver.Mem
	size  int
	made  int // blocks
	nfree int // under the stage's mu
}

func (s *stage) statistics() StagingStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stat
}

// A stageBlock is a block of pinned memory on loan.
type stageBlock struct {
	of    *stage
	slab  *stageSlab
	host  unsafe.Pointer
	ptr   driver.Ptr // on the device
	n     int        // bytes in use
	class int
	// The borrower has one, and each submission that moves a piece of a larger transfer.
	refs atomic.Int32
	next *stageBlock
}

func (b *stageBlock) hold() *stageBlock {
	b.refs.Add(1)
	return b
}

func (b *stageBlock) bytes() []byte { return b.at(b.n) }

// at returns the first n bytes.
func (b *stageBlock) at(n int) []byte { return unsafe.Slice((*byte)(b.host), n) }

// free drops a reference. Without references the block may be used again.
func (b *stageBlock) free() {
	if b.refs.Add(-1) > 0 {
		return
	}
	b.of.mu.Lock()
	b.of.sizes[b.class].put(b)
	b.of.stat.Used -= 1 << b.class
	b.of.mu.Unlock()
}

func (c *stageClass) put(b *stageBlock) {
	b.next, c.free = c.free, b
	b.slab.nfree++
	c.nfree++
}

const smallestStage = 8 // log2 of the bytes

// class returns the class of blocks of n bytes or more.
func (s *stage) class(n int) int { return max(bits.Len(uint(n-1)), smallestStage) }

// take takes a block of n bytes or more from its class, or returns nil if none is free. If few are
// left, the refiller makes more (see stageAhead).
func (s *stage) take(n int) *stageBlock {
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
		s.dev.native.Refill(func() error { return s.grow(class) }, func() { s.grown(class) })
	}
	if b != nil {
		b.n, b.next = n, nil
		b.refs.Store(1)
	}
	return b
}

// stageAhead says when the refiller makes more blocks of a class: it has at least stageAhead
// blocks, and at most one in stageAhead is free.
const stageAhead = 4

// grown notes that the refiller is done with a class.
func (s *stage) grown(class int) {
	s.mu.Lock()
	s.sizes[class].growing = false
	s.mu.Unlock()
}

// fits returns an error if there are no blocks as large as n bytes.
func (s *stage) fits(n int) error {
	if s.class(n) >= len(s.sizes) {
		return argument("stage", "%d bytes at once", n)
	}
	return nil
}

// get takes a block of n bytes or more. It blocks while the driver pins memory. That is rare,
// because blocks are recycled.
func (s *stage) get(n int) (*stageBlock, error) {
	if err := s.fits(n); err != nil {
		return nil, err
	}
	b := s.take(n)
	for b == nil {
		if err := s.dev.native.Do(func() error { return s.growEmpty(s.class(n)) }); err != nil {
			s.dev.native.Check(err)
			return nil, fmt.Errorf("gpu: %w", err)
		}
		b = s.take(n)
	}
	// Nobody knows whether a lost device still moves data of its blocks.
	if err := s.dev.failed(); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

// growEmpty is grow, unless the class has a free block again.
func (s *stage) growEmpty(class int) error {
	s.mu.Lock()
	free := s.sizes[class].free
	s.mu.Unlock()
	if free != nil {
		return nil
	}
	return s.grow(class)
}

// grow pins memory for blocks of a class. It runs on a bound thread.
func (s *stage) grow(class int) error {
	size := max(1<<class, s.dev.opt.StageSize)
	mem, err := s.dev.native.Native.Alloc(driver.HostMem, uint64(size))
	if err != nil {
		return fmt.Errorf("%d bytes of pinned memory: %w", size, err)
	}
	blocks := make([]stageBlock, size>>class)
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

// trim frees the slabs that have no block in use. It runs on a bound thread.
func (s *stage) trim() (err error) {
	for _, m := range s.unused() {
		err = cmp.Or(err, s.dev.native.Native.Free(m))
	}
	return err
}

// unused removes the slabs that have no block in use, and returns their memory. With a lost device
// it returns none: nobody knows which memory the device still uses.
func (s *stage) unused() (mem []driver.Mem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dev.native.Loss() != nil {
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

// close frees the memory. It runs on the device's thread.
func (s *stage) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, slab := range s.slabs {
		errs = append(errs, s.dev.native.Native.Free(slab.mem))
	}
	s.slabs, s.stat.Held = nil, 0
	clear(s.sizes[:])
	return errors.Join(errs...)
}
