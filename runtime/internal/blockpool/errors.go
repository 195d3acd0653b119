package blockpool

import (
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	// ErrSize is the error of Alloc for 0 bytes, and of Alloc and New for a size that overflows when
	// it is rounded up to the alignment. In the second case the error also matches
	// [driver.ErrOutOfMemory].
	ErrSize = errors.New("not a size that a block can have")

	// ErrTimeline is the error for a timeline that is negative or not below [MaxTimelines].
	ErrTimeline = errors.New("no such timeline")

	// ErrUnknown is the error of Free and Cancel for an address outside the pool's slabs.
	ErrUnknown = errors.New("the address is not the pool's")

	// ErrInside is the error of Free and Cancel for an address inside a live block, not at its
	// beginning.
	ErrInside = errors.New("the address is inside a block")

	// ErrDoubleFree is the error of Free and Cancel for an address in memory that is already free.
	ErrDoubleFree = errors.New("the memory is free already")

	// ErrClosed is the error of Alloc on a closed pool, and of Free and Cancel on a destroyed pool.
	ErrClosed = errors.New("blockpool: closed")
)

var (
	errLimit = errors.New("the pool has reached its limit")
	errSlab  = errors.New("that is no memory, or not the source's to give")
)

// An AllocError is the error of an Alloc that found no memory. It matches [driver.ErrOutOfMemory],
// unless the source failed for another reason. All numbers are bytes at the time of the error.
type AllocError struct {
	Size     uint64 // requested
	Used     uint64 // total size of live blocks
	Reserved uint64 // total size of slabs
	Largest  uint64 // size of the largest free block
	Limit    uint64 // maximum of Reserved; 0 means no limit
	Err      error  // why the pool got no more memory from its source; nil if there is no source
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

// Is reports whether e matches [driver.ErrOutOfMemory].
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

// freeError returns the error of freeing addr, at which no live block begins.
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
