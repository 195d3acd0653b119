package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A Part is the part of a submission's record for an allocation or a deallocation of pool memory.
type Part struct {
	buffer   *Buffer
	freed    bool            // this Free has marked the memory as freed
	left     engine.Frontier // uses of the memory that the Free must still wait for
	awaiting *parkedFree     // set while the Free is parked because of the uses in left
}

// Buffer returns the buffer that is allocated or deallocated, or nil.
func (p *Part) Buffer() *Buffer { return p.buffer }

// A Record is the engine.Rest of a submission. Memory returns the Part of the record.
type Record interface{ Memory() *Part }

// partOf returns the Part of a submission.
func partOf(s *engine.Submission) *Part { return s.Rest.(Record).Memory() }

var errInUse = errors.New("gpu: the memory is in use")

// A Holding is a Buffer that implements engine.Holder and engine.Memory.
type Holding Buffer

// Holding returns the buffer as a Holding.
func (b *Buffer) Holding() *Holding { return (*Holding)(b) }

// Use adds a mark to the memory's uses, if the memory has any (hasUses). It also tells the device
// that owns the memory about the work at the mark (borrow).
func (u *Holding) Use(m engine.Mark) error {
	b := (*Buffer)(u)
	if b.hasUses() {
		b.usesOf().Add(m)
	}
	return b.borrow(m)
}

// borrow tells the device that owns the memory about the work at a mark, if another device does
// that work. It returns an error if the owner has been closed.
func (b *Buffer) borrow(m engine.Mark) error {
	if d := b.dev.Engine; d != m.Timeline.Device && !d.Borrow(m) {
		return fmt.Errorf("a buffer of device %s: %w", d.Info.Name, errs.ErrClosed)
	}
	return nil
}

// Unuse undoes Use. It returns true if a Free or a trim may already wait for the mark.
func (u *Holding) Unuse(m engine.Mark) (awaited bool) {
	b := (*Buffer)(u)
	if !b.hasUses() {
		return false
	}
	b.usesOf().Lower(m)
	return b.state.Load() == isFreed || b.from == mapped && b.rare.growing.unmaps.Load() > 0
}

// Release releases n references.
func (u *Holding) Release(n int32) { (*Buffer)(u).releaseAll(n) }

// Ptr returns the address of the memory, or an error if the memory is not allocated. In growing
// memory the first size bytes must be mapped.
func (u *Holding) Ptr(size uint64) (driver.Ptr, error) {
	b := (*Buffer)(u)
	if b.from == mapped {
		if err := b.rare.growing.has(size); err != nil {
			return 0, err
		}
	}
	return b.address()
}

// address returns the address of the memory, or an error if it is not allocated.
func (b *Buffer) address() (driver.Ptr, error) {
	switch b.state.Load() {
	case isLive:
		return b.mem.Ptr, nil
	case isFreed, isGone:
		return 0, fmt.Errorf("the memory has been deallocated: %w", errs.ErrUnallocated)
	case isClosed:
		return 0, errBufferClosed
	}
	return 0, fmt.Errorf("the memory has not been allocated, or nothing orders this after it: %w", errs.ErrUnallocated)
}

// takeAway marks the memory of a Free as freed. s.Deps already has the marks of the Free's waits.
// takeAway returns Deferred and an error if the memory has uses in flight that the Free is not
// ordered after.
func (p *Part) takeAway(s *engine.Submission) (engine.Outcome, error) {
	b := p.buffer
	if !p.freed {
		if !b.state.CompareAndSwap(isLive, isFreed) {
			if _, err := b.address(); err != nil {
				return engine.Refused, err
			}
			return engine.Refused, errs.ErrUnallocated
		}
		p.freed = true
	}
	if p.left = b.uses.Left(s.Timeline, s.Deps.Marks()); len(p.left) > 0 {
		return engine.Deferred, errInUse
	}
	return engine.Issued, nil
}

// A parkedFree is a Free that is parked until streams have passed the uses of its memory.
type parkedFree struct {
	cancel context.CancelFunc // ends the wait
	// The time in which the Free waits for the uses. It ends when the Free is issued, given up, or
	// parked again.
	delay *delay
}

// awaitUses parks a Free until the streams have passed the uses in p.left.
func (p *Part) awaitUses(s *engine.Submission) {
	ctx, cancel := context.WithCancel(context.Background())
	over := new(sema.Semaphore)
	p.endAwait()
	p.awaiting = &parkedFree{cancel, p.buffer.dev.delays.begin(p.left.Passed)}
	s.Waits = append(s.Waits, sema.Point{Semaphore: over, Value: 1})
	s.Deps.Drop()
	go p.left.Signal(ctx, over)
	s.Timeline.ParkAgain(s)
}

// endAwait ends the wait that awaitUses has begun, and the delay in p.awaiting. It does nothing if
// p.awaiting is nil.
func (p *Part) endAwait() {
	if f := p.awaiting; f != nil {
		p.awaiting = nil
		f.cancel()
		p.buffer.dev.delays.end(f.delay)
	}
}

// giveUp undoes takeAway for a Free that was not issued: the memory is allocated again. If a lost
// device uses the memory, giveUp closes the buffer. Then the memory goes back to the pool when the
// lost device is closed and releases the buffer.
func (p *Part) giveUp() {
	p.endAwait()
	if !p.freed {
		return
	}
	p.freed = false
	if b := p.buffer; b.state.CompareAndSwap(isFreed, isLive) && p.left.Lost() != nil {
		b.Close()
	}
	p.left = nil
}
