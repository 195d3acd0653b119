package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// memoryPart is the part of a record for buffers.
type memoryPart struct {
	to, from *Buffer // of a copy between devices; nil is memory of the runtime

	// Of an alloca or a dealloca:
	buffer   *Buffer
	freed    bool            // this dealloca has marked the memory as freed
	left     engine.Frontier // uses of the memory that the dealloca does not come after
	awaiting *parkedFree     // while the dealloca waits for them
}

var errInUse = errors.New("gpu: the memory is in use")

// A bufferUse is a buffer as the scheduler sees it: an engine.Holder and an engine.Memory.
type bufferUse Buffer

// Use notes that the work at a mark may use the memory.
func (u *bufferUse) Use(m engine.Mark) error {
	b := (*Buffer)(u)
	if b.from == pooled {
		b.uses.Add(m)
	}
	return b.borrow(m)
}

// borrow tells the device that owns the memory, if it is another one, that the work at a mark may touch the
// buffer.
func (b *Buffer) borrow(m engine.Mark) error {
	if d := &b.dev.native; d != m.Timeline.Device && !d.Borrow(m) {
		return fmt.Errorf("a buffer of device %s: %w", d.Info.Name, ErrClosed)
	}
	return nil
}

// Unuse undoes Use. If the memory has been freed, a dealloca may have seen the mark.
func (u *bufferUse) Unuse(m engine.Mark) (awaited bool) {
	b := (*Buffer)(u)
	if b.from != pooled {
		return false
	}
	b.uses.Lower(m)
	return b.state.Load() == isFreed
}

// Release releases n references.
func (u *bufferUse) Release(n int32) { (*Buffer)(u).releaseAll(n) }

// Ptr returns the address of the memory, or an error if it is not allocated.
func (u *bufferUse) Ptr() (driver.Ptr, error) { return (*Buffer)(u).address() }

// address returns the address of the memory, or an error if it is not allocated.
func (b *Buffer) address() (driver.Ptr, error) {
	switch b.state.Load() {
	case isLive:
		return b.mem.Ptr, nil
	case isFreed, isGone:
		return 0, fmt.Errorf("the memory has been deallocated: %w", ErrUnallocated)
	case isClosed:
		return 0, errBufferClosed
	}
	return 0, fmt.Errorf("the memory has not been allocated, or nothing orders this after it: %w", ErrUnallocated)
}

// takeAway marks the memory of a dealloca as freed. The marks of the waits have been found.
// takeAway returns Deferred if the dealloca does not come after all work that may use the memory.
func (s *record) takeAway() (engine.Outcome, error) {
	b := s.buffer
	if !s.freed {
		if !b.state.CompareAndSwap(isLive, isFreed) {
			if _, err := b.address(); err != nil {
				return engine.Refused, err
			}
			return engine.Refused, ErrUnallocated
		}
		s.freed = true
	}
	if s.left = b.uses.Left(s.Timeline, s.Deps); len(s.left) > 0 {
		return engine.Deferred, errInUse
	}
	return engine.Issued, nil
}

// A parkedFree is a dealloca that is parked until streams have passed the uses of its memory.
type parkedFree struct {
	left   engine.Frontier
	cancel context.CancelFunc // ends the wait
	// over is closed when the dealloca was issued, is given up, or has other uses to wait for.
	over chan struct{}
}

// parkedFrees are the parked deallocas of a device's memory.
type parkedFrees struct {
	mu  sync.Mutex // protects all; a leaf
	all []*parkedFree
}

func (f *parkedFrees) add(p *parkedFree) {
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
}

func (f *parkedFrees) remove(p *parkedFree) {
	f.mu.Lock()
	f.all = slices.DeleteFunc(f.all, func(q *parkedFree) bool { return q == p })
	f.mu.Unlock()
}

// ready returns the deallocas whose uses have been passed. They are about to be tried again.
func (f *parkedFrees) ready() (ready []*parkedFree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		if p.left.Passed() {
			ready = append(ready, p)
		}
	}
	return ready
}

// awaitUses parks a dealloca until the streams have passed the uses that its own order does not
// cover.
func (s *record) awaitUses() {
	ctx, cancel := context.WithCancel(context.Background())
	over := new(sema.Semaphore)
	s.endAwait()
	s.awaiting = &parkedFree{s.left, cancel, make(chan struct{})}
	s.buffer.dev.frees.add(s.awaiting)
	s.Waits = append(s.Waits, sema.Point{Semaphore: over, Value: 1})
	s.DropDeps()
	go s.left.Signal(ctx, over)
	s.Timeline.ParkAgain(&s.Submission)
}

// endAwait undoes awaitUses. It is called when over of the parkedFree must be closed.
func (s *record) endAwait() {
	if p := s.awaiting; p != nil {
		s.awaiting = nil
		p.cancel()
		s.buffer.dev.frees.remove(p)
		close(p.over)
	}
}

// giveUpFree undoes takeAway if the dealloca was not issued: the memory is allocated again. If a
// lost device uses the memory, giveUpFree closes the buffer. Then the memory goes back to the pool
// when that device is closed and no longer holds the buffer.
func (s *record) giveUpFree() {
	s.endAwait()
	if !s.freed {
		return
	}
	s.freed = false
	if b := s.buffer; b.state.CompareAndSwap(isFreed, isLive) && s.left.Lost() != nil {
		b.Close()
	}
	s.left = nil
}
