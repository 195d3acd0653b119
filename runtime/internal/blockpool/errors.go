package blockpool

import (
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	// ErrSize is a block of no bytes, or of more than there can be, which is
	// [driver.ErrOutOfMemory] too.
	ErrSize = errors.New("not a size that a block can have")

	// ErrTimeline is a timeline that is negative or not below [MaxTimelines].
	ErrTimeline = errors.New("no such timeline")

	// ErrUnknown is an address that is in none of the pool's slabs.
	ErrUnknown = errors.New("the address is not the pool's")

	// ErrInside is an address within a live block, not at its beginning.
	ErrInside = errors.New("the address is inside a block")

	// ErrDoubleFree is an address where the pool's memory is free already.
	ErrDoubleFree = errors.New("the memory is free already")

	// ErrClosed is a pool that is closed.
	ErrClosed = errors.New("blockpool: closed")
)

var (
	errLimit = errors.New("the pool has reached its limit")
	errSlab  = errors.New("that is no memory, or not the source's to give")
)

// An AllocError is an Alloc that found no memory. It matches [driver.ErrOutOfMemory] unless the
// source failed with something else. All figures are bytes at the time.
type AllocError struct {
	Size     uint64 // asked for
	Used     uint64 // in live blocks
	Reserved uint64 // in slabs
	Largest  uint64 // the largest free block
	Limit    uint64 // that Reserved cannot exceed; 0 is none
	Err      error  // what kept the source from providing more; nil if there is no source
}

func (e *AllocError) Error() string {
	s := fmt.Sprintf("blockpool: no block of %d bytes: %d used of %d reserved, the largest free block has %d, ",
		e.Size, e.Used, e.Reserved, e.Largest)
	if e.Limit == 0 {
		s += "no limit"
	} else {
		s += fmt.Sprintf("the limit is %d", e.Limit)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *AllocError) Unwrap() error { return e.Err }

// Is makes [driver.ErrOutOfMemory] match.
func (e *AllocError) Is(target error) bool {
	return target == driver.ErrOutOfMemory && (e.Err == nil || errors.Is(e.Err, errLimit))
}

func (p *Pool) allocError(size uint64, cause error) error {
	e := &AllocError{Size: size, Used: p.stats.Used, Reserved: p.stats.Reserved, Largest: p.largest(), Limit: p.limit, Err: cause}
	if e.Limit == math.MaxUint64 {
		e.Limit = 0
	}
	return e
}

func timelineError(timeline int) error {
	return fmt.Errorf("blockpool: timeline %d: %w", timeline, ErrTimeline)
}

// freeError says what is wrong with freeing at an address where no live block begins.
func (p *Pool) freeError(addr uint64) error {
	if p.destroyed {
		return ErrClosed
	}
	err := ErrUnknown
	if i := p.slabAfter(addr) - 1; i >= 0 && addr-p.slabs[i].base < p.slabs[i].size {
		err = ErrDoubleFree
		for b := p.slabs[i].first; b != nil && b.addr <= addr && p.slabs[i].used != 0; b = b.next {
			if !b.free && addr-b.addr < b.size {
				err = ErrInside
			}
		}
	}
	return fmt.Errorf("blockpool: free of %#x: %w", addr, err)
}
