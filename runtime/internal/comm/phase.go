package comm

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/closer"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A phase is a phase of a communicator's life. Only Communicator.move changes the phase. The
// variable leads lists the allowed changes.
type phase int32

const (
	isMaking     phase = iota // being made; newCommunicator has not returned
	isOpen                    // takes groups and issues them
	isSuspended               // takes no groups; once it is idle, the library suspends it
	isClosing                 // takes nothing; operations in flight continue
	isDestroying              // the native communicator is being destroyed, and not polled for errors
	isShrinking               // has failed; shrinking aborts the native communicator
	isAborting                // has failed; the native communicator is being aborted
	isAborted                 // abort has ended; the thread may destroy the native communicator
	isClosed                  // nothing is left; the thread ends
	isAbandoned               // the thread is blocked in a library call, or ended when that call returned
	isReturned                // the library call of isAbandoned has returned; the device stays open until the thread ends
	isEnded                   // the thread has ended
	phases
)

// leads lists the phases that each phase may lead to. Only isOpen and isSuspended can be entered
// twice.
var leads = [phases][]phase{
	isMaking:     {isOpen, isClosing, isAborting, isEnded},
	isOpen:       {isSuspended, isClosing, isShrinking, isAborting},
	isSuspended:  {isOpen, isClosing, isShrinking, isAborting},
	isClosing:    {isDestroying, isAborting},
	isDestroying: {isAborting, isClosed},
	isShrinking:  {isAborting},
	isAborting:   {isAborted, isClosed, isAbandoned},
	isAborted:    {isClosed, isAbandoned},
	isClosed:     {isEnded},
	isAbandoned:  {isReturned},
	isReturned:   {isEnded},
}

// errClosed is the error of a communicator that is closed or closing.
var errClosed = fmt.Errorf("gpu: communicator: %w", errs.ErrClosed)

// life holds a communicator's phase and its failure. The communicator's mu protects the fields that
// are not atomic.
type life struct {
	state atomic.Int32 // the phase; changed under mu
	// Each channel is closed when its phase begins, except the channels of phases that may be
	// entered twice.
	entered [phases]chan struct{}
	// failure is set just before isShrinking or isAborting begins, and nowhere else.
	failure atomic.Pointer[engine.Failure]
	// abortedAt is when isShrinking or isAborting began. If the thread was issuing a group then,
	// abortedAt is when the thread returned from issuing the group.
	abortedAt time.Time
	inAbort   bool  // the library is aborting the native communicator
	unaborted error // why the native communicator could not be aborted
	closer    closer.Closer
}

func (l *life) init() {
	for p := range l.entered {
		l.entered[p] = make(chan struct{})
	}
}

func (l *life) phase() phase { return phase(l.state.Load()) }

func (l *life) leadsTo(p phase) bool {
	return slices.Contains(leads[l.phase()], p)
}

// to enters a phase as move does, but for a caller that does not hold mu.
func (c *Communicator) to(p phase) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.move(p)
}

// move enters a phase. It reports false if the current phase does not lead there. The caller holds
// mu.
func (c *Communicator) move(p phase) bool {
	if !c.leadsTo(p) {
		return false
	}
	c.state.Store(int32(p))
	if p != isOpen && p != isSuspended {
		close(c.entered[p])
	}
	switch p {
	case isShrinking:
		c.abortedAt = time.Now()
		c.tick()
	case isAborting:
		c.abortedAt = time.Now()
		c.tick()
		go c.abort()
	case isClosed, isAbandoned:
		c.watch.stop()
	}
	return true
}

// Err returns the error with which the communicator has failed, or nil. For a nil or zero
// Communicator it is nil.
func (c *Communicator) Err() error {
	if c == nil {
		return nil
	}
	if f := c.failure.Load(); f != nil {
		return f.Err
	}
	return nil
}

// failed returns why the communicator accepts no more operations, or nil.
func (c *Communicator) failed() error {
	if c.phase() < isClosing {
		return c.dev.Engine.Failed()
	}
	if err := c.Err(); err != nil {
		return err
	}
	return errClosed
}

// halted returns why the communicator accepts no more operations, or nil, and why its issued
// operations fail, or nil.
func (c *Communicator) halted() (takes, issued error) { return c.failed(), c.Err() }

// fail fails the communicator, unless it is closed. All operations fail immediately, issued or not.
// Another goroutine aborts the native communicator.
func (c *Communicator) fail(err error) {
	c.setFailure(isAborting, err)
	// A communicator that is being shrunk has already failed, but must be aborted too.
	c.to(isAborting)
	c.failAll()
}

// setFailure fails the communicator by entering isAborting or isShrinking. It returns the failure.
// If the communicator has failed already, setFailure returns the earlier failure and keeps the
// phase. If the communicator is closed, setFailure returns nil. The caller must call failAll as
// soon as it holds no locks.
func (c *Communicator) setFailure(p phase, err error) error {
	c.mu.Lock()
	// mu also protects opt.Rank and opt.Count, which another goroutine may be setting.
	e := c.opt.NewError(c.dev, c.opt.Name, c.opt.Rank, c.opt.Count, err)
	first := c.leadsTo(p) && c.failure.CompareAndSwap(nil, &engine.Failure{Err: e})
	if first {
		c.move(p)
	}
	c.mu.Unlock()
	// The device itself reports its loss to its tracer.
	if first && !errors.Is(err, errs.ErrClosed) && c.dev.Engine.Loss() == nil {
		c.dev.Owner.CommunicatorFailed(e)
	}
	return c.Err()
}

// failAll fails all operations of a failed communicator. Operations in its stream keep the objects
// that they use until the stream has passed the operations.
func (c *Communicator) failAll() {
	if err := c.Err(); err != nil {
		sema.Release(c.tl.FailInFlight(err))
		c.cancel(err)
		c.signal()
	}
}

// cancel cancels the waits of all parked operations. Each of them becomes ready with the error err,
// and then fails.
func (c *Communicator) cancel(err error) {
	c.tl.CancelParked(err)
}

// abort aborts the native communicator. It runs on a goroutine of its own, because the
// communicator's thread may be blocked in the library. If the driver cannot bind this goroutine's
// thread, the communicator's thread aborts. Then isAborted begins before that abort, because the
// thread may be in destroy, which waits for isAborted.
func (c *Communicator) abort() {
	defer c.to(isAborted)
	if c.dev.Engine.Stay() != nil {
		return // the device has given up on the communicator
	}
	defer c.dev.Engine.Leave()
	isBound := false
	c.noteAbort(c.dev.Engine.Bound(func() error {
		isBound = true
		return c.abortComm()
	}))
	if !isBound {
		c.post(func() { c.noteAbort(c.abortComm()) })
	}
}

// abortComm aborts the native communicator, if there is one. It runs on any bound thread.
func (c *Communicator) abortComm() error {
	c.mu.Lock()
	h := c.comm
	c.inAbort = h != 0
	c.mu.Unlock()
	if h == 0 {
		return nil
	}
	err := c.comms.AbortComm(h)
	c.mu.Lock()
	c.inAbort = false
	c.mu.Unlock()
	return err
}

// handle returns the native communicator, or 0 if there is none. It is for callers other than the
// communicator's thread.
func (c *Communicator) handle() driver.Comm {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.comm
}

func (c *Communicator) noteAbort(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unaborted = err
}

// awaitAbort waits until an abort under way is over or the thread is abandoned. It reports false if
// neither happens within limit.
func (c *Communicator) awaitAbort(limit time.Duration) bool {
	if c.phase() != isAborting {
		return true
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.entered[isAborted]:
	case <-c.entered[isAbandoned]:
	case <-late.C:
		return false
	}
	return true
}
