package gpu

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A stage is a device's pinned host memory for data on its way: blocks in sizes of powers of two, recycled.
type stage struct {
	dev   *Device
	mu    sync.Mutex
	sizes [40]stageClass // log2 of the bytes
	mem   []driver.Mem
	stat  StagingStats
	short error // why the refiller could make none
}

// A stageClass is the blocks of a size.
type stageClass struct {
	free    *stageBlock
	nfree   int
	made    int
	growing bool
}

func (s *stage) statistics() StagingStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stat
}

// A stageBlock is a piece of pinned memory on loan.
type stageBlock struct {
	of    *stage
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
	c.nfree++
}

const smallestStage = 8 // log2 of the bytes

// class returns the class of blocks of n bytes or more.
func (s *stage) class(n int) int { return max(bits.Len(uint(n-1)), smallestStage) }

// take takes a block of n bytes or more, of a class that there is, or returns nil if there is none. If few are left, and unless refill
// is false, more are being made from then on.
func (s *stage) take(n int, refill bool) *stageBlock {
	class := s.class(n)
	s.mu.Lock()
	c := &s.sizes[class]
	b := c.free
	if b != nil {
		c.free = b.next
		c.nfree--
		s.stat.Used += 1 << class
		s.stat.Peak = max(s.stat.Peak, s.stat.Used)
	}
	low := refill && !c.growing && (b == nil || c.made >= stageAhead && c.nfree <= c.made/stageAhead)
	if low {
		c.growing = true
	}
	s.mu.Unlock()
	if low {
		s.dev.refill(func() error { return s.grow(class) }, func(err error) { s.grown(class, err) })
	}
	if b != nil {
		b.n, b.next = n, nil
		b.refs.Store(1)
	}
	return b
}

// stageAhead is from how many blocks of a class on more are made before the last one is taken: when one of so many is free.
const stageAhead = 4

// grown notes that the refiller is done, as that of the events does.
func (s *stage) grown(class int, err error) {
	s.mu.Lock()
	s.sizes[class].growing = false
	if s.short = nil; s.sizes[class].free == nil && s.dev.starved.Load() > 0 {
		s.short = err
	}
	s.mu.Unlock()
}

// shortage returns why the refiller could pin no memory, once.
func (s *stage) shortage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.short
	s.short = nil
	return err
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
	b := s.take(n, false)
	for b == nil {
		if err := s.dev.do(func() error { return s.growEmpty(s.class(n)) }); err != nil {
			s.dev.check(err)
			return nil, fmt.Errorf("gpu: %w", err)
		}
		b = s.take(n, false)
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
	mem, err := s.dev.drv.Alloc(driver.HostMem, uint64(size))
	if err != nil {
		return fmt.Errorf("%d bytes of pinned memory: %w", size, err)
	}
	blocks := make([]stageBlock, size>>class)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mem = append(s.mem, mem)
	s.stat.Held += uint64(size)
	for i := range blocks {
		b := &blocks[i]
		b.of, b.class = s, class
		b.host, b.ptr = unsafe.Add(mem.Host, i<<class), mem.Ptr+driver.Ptr(i<<class)
		s.sizes[class].put(b)
	}
	s.sizes[class].made += len(blocks)
	return nil
}

// close frees the memory. It runs on the device's thread.
func (s *stage) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, m := range s.mem {
		errs = append(errs, s.dev.drv.Free(m))
	}
	s.mem, s.stat.Held = nil, 0
	clear(s.sizes[:])
	return errors.Join(errs...)
}
