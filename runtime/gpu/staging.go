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
	dev  *Device
	mu   sync.Mutex
	free [40]*stageBlock // by size class
	mem  []driver.Mem
	stat StagingStats
}

func (s *stage) statistics() StagingStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stat
}

// lend counts a block. The caller holds mu.
func (s *stage) lend(class int) {
	s.stat.Used += 1 << class
	s.stat.Peak = max(s.stat.Peak, s.stat.Used)
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
	b.next, b.of.free[b.class] = b.of.free[b.class], b
	b.of.stat.Used -= 1 << b.class
	b.of.mu.Unlock()
}

const smallestStage = 8 // log2 of the bytes

// get takes a block of n bytes or more. It blocks while the driver pins memory, which recycling makes rare.
func (s *stage) get(n int) (*stageBlock, error) {
	class := max(bits.Len(uint(n-1)), smallestStage)
	if class >= len(s.free) {
		return nil, argument("stage", "%d bytes at once", n)
	}
	s.mu.Lock()
	b := s.free[class]
	if b != nil {
		s.free[class] = b.next
		s.lend(class)
	}
	s.mu.Unlock()
	if b == nil {
		var err error
		if b, err = s.grow(class); err != nil {
			return nil, fmt.Errorf("gpu: %d bytes of pinned memory: %w", n, err)
		}
	}
	b.n, b.next = n, nil
	b.refs.Store(1)
	if err := s.dev.failed(); err != nil { // of what a lost device has had nobody knows whether it still moves
		b.free()
		return nil, err
	}
	return b, nil
}

// grow pins memory for blocks of a class and returns one of them.
func (s *stage) grow(class int) (*stageBlock, error) {
	size := max(1<<class, s.dev.opt.StageSize)
	var mem driver.Mem
	err := s.dev.do(func() (err error) {
		if mem, err = s.dev.drv.Alloc(driver.HostMem, uint64(size)); err == nil {
			s.mu.Lock()
			s.mem = append(s.mem, mem)
			s.stat.Held += uint64(size)
			s.mu.Unlock()
		}
		return err
	})
	if err != nil {
		s.dev.check(err)
		return nil, err
	}
	blocks := make([]stageBlock, size>>class)
	for i := range blocks {
		blocks[i].of, blocks[i].class = s, class
		blocks[i].host, blocks[i].ptr = unsafe.Add(mem.Host, i<<class), mem.Ptr+driver.Ptr(i<<class)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range blocks[1:] {
		b := &blocks[i+1]
		b.next, s.free[class] = s.free[class], b
	}
	s.lend(class)
	return &blocks[0], nil
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
	clear(s.free[:])
	return errors.Join(errs...)
}
