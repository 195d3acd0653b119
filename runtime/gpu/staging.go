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

// stagingPart is the part of a submission's record for data that goes through pinned memory.
type stagingPart struct {
	touch touch       // of the program's memory, from where it is issued until the signals are given
	host  []byte      // to be filled by a download
	stage *stageBlock // pinned memory of an update, a download or a piece of a transfer
}

// A stage is a device's pinned host memory for data on its way: blocks in sizes of powers of two, recycled.
type stage struct {
	dev   *Device
	mu    sync.Mutex     // protects the following fields, and the blocks that are free; a leaf
	sizes [40]stageClass // log2 of the bytes
	slabs []*stageSlab
	stat  StagingStats
}

// A stageClass is the blocks of a size.
type stageClass struct {
	free    *stageBlock
	nfree   int
	made    int
	growing bool
}

// A stageSlab is pinned memory that is cut into blocks of one class.
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

// A stageBlock is a piece of pinned memory on loan.
type stageBlock struct {
	of    *stage
	slab  *stageSlab
	host  unsafe.Pointer
	ptr   driver.Ptr // on the device
	n     int        // bytes in use
	class int
	refs  atomic.Int32 // the borrower's, and one for each submission that moves a piece of a larger transfer
	next  *stageBlock
}

func (b *stageBlock) hold() *stageBlock {
	b.refs.Add(1)
	return b
}

func (b *stageBlock) bytes() []byte { return b.at(b.n) }

// at returns the first n bytes.
func (b *stageBlock) at(n int) []byte { return unsafe.Slice((*byte)(b.host), n) }

// free lets go of a block, which with the last reference may be used again.
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

// take takes a block of n bytes or more, of a class that there is, or returns nil if there is none. If few are left of a class with
// several, more are being made from then on.
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

// stageAhead is from how many blocks of a class on more are made before the last one is taken: when one of so many is free.
const stageAhead = 4

// grown notes that the refiller is done with a class.
func (s *stage) grown(class int) {
	s.mu.Lock()
	s.sizes[class].growing = false
	s.mu.Unlock()
}

// fits returns an error if there are no blocks of n bytes.
func (s *stage) fits(n int) error {
	if s.class(n) >= len(s.sizes) {
		return argument("stage", "%d bytes at once", n)
	}
	return nil
}

// get takes a block of n bytes or more. It blocks while the driver pins memory, which recycling makes rare.
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
	if err := s.dev.failed(); err != nil { // of what a lost device has had nobody knows whether it still moves
		b.free()
		return nil, err
	}
	return b, nil
}

// growEmpty is grow where nobody else has done it meanwhile.
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

// trim frees the memory of which no block is in use. It runs on a bound thread.
func (s *stage) trim() (err error) {
	for _, m := range s.unused() {
		err = cmp.Or(err, s.dev.native.Native.Free(m))
	}
	return err
}

// unused takes away the memory of which no block is in use, and returns it. Of what a lost device has had nobody knows whether it is.
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
