package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/closer"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Close closes the communicator and ends its registrations, as Shutdown does with a context of ten
// seconds.
func (c *Communicator) Close() error { return closer.InTime(c.Shutdown) }

// Shutdown closes the communicator and ends its registrations. It waits for operations in flight
// and for the other ranks. If the context ends first, Shutdown aborts the native communicator. For
// a nil or zero Communicator Shutdown does nothing and returns nil.
func (c *Communicator) Shutdown(ctx context.Context) error {
	if c.isZero() {
		return nil
	}
	err, returned := c.closer.Close(ctx, c.close, func() time.Duration { return 2*AbortTime + 3*engine.GiveBackTime })
	if !returned {
		err = fmt.Errorf("gpu: communicator on %s: close: a call of the library does not return: %w: %w", c.dev.Engine.Info.Name, driver.ErrBusy, ctx.Err())
	}
	return err
}

func (c *Communicator) close(ctx context.Context) error {
	if !c.to(isClosing) {
		// The communicator has failed before. If its phase is isShrinking, fail aborts it.
		c.fail(errClosed)
	}
	c.deriveMu.Lock() // a Split or Shrink that locks deriveMu later finds the communicator closing
	defer c.deriveMu.Unlock()
	busy := func() bool {
		if !c.busy() {
			return false
		}
		// Cancel all waiting operations. One of them may be a group that the thread was issuing,
		// and that waits for another driver's device (isForeign).
		c.cancel(errClosed)
		c.signal()
		c.tl.Poll(c.tl.Latest(), 1)
		return true
	}
	var unended error
	within, cancel := engine.Lasting(ctx)
	defer cancel()
	if !wake.Until(within, func() bool { return !busy() || c.Err() != nil || c.dev.Engine.Loss() != nil }) {
		unended = fmt.Errorf("operations were still under way when Close had to end: %w: %w", errs.ErrClosed, ctx.Err())
	}
	if lost := c.dev.Engine.Loss(); lost != nil {
		c.fail(lost)
	} else if c.busy() {
		c.fail(cmp.Or(unended, errClosed))
	}
	aborted := !c.to(isDestroying)
	over := c.awaitAbort(AbortTime)
	for !over && ctx.Err() == nil {
		over = c.awaitAbort(AbortTime)
	}
	done, back := make(chan error, 1), make(chan struct{})
	c.post(func() { done <- c.destroy(aborted, back) })
	within, cancel = engine.Lasting(ctx)
	defer cancel()
	select {
	case <-back:
	case <-within.Done():
		if unended == nil && c.Err() == nil {
			unended = fmt.Errorf("the other ranks did not close their communicators in time: %w: %w", errs.ErrClosed, ctx.Err())
		}
		c.fail(cmp.Or(unended, errClosed))
		if over && c.awaitAbort(AbortTime) {
			select {
			case <-back:
			case <-time.After(AbortTime):
			}
		}
	}
	err, abandoned := c.abandon(back)
	if !abandoned {
		err = <-done
		late, cancel := context.WithTimeout(context.Background(), AbortTime)
		// All operations with open waits fail soon, because their waits were cancelled.
		wake.Until(late, func() bool { return !busy() })
		cancel()
		// By now there is nothing to abort, or the abort only waits for the library's call to
		// return.
		c.awaitAbort(engine.GiveBackTime)
		c.mu.Lock()
		c.finish(isClosed)
		<-c.entered[isEnded] // the device must not be closed before the thread's last driver call
	}
	if unended != nil {
		err = errors.Join(fmt.Errorf("gpu: communicator on %s: %w", c.dev.Engine.Info.Name, unended), err)
	}
	return err
}

// finish enters a phase in which nothing is issued any more, empties the list, and fails the groups
// that have no open waits. The waits of the other groups have been cancelled, so these groups soon
// come to lane.Ready, which returns the error. The caller holds mu, and finish unlocks it.
func (c *Communicator) finish(in phase) {
	c.move(in)
	var over []*engine.Submission
	for s := range c.list.all() {
		if partOf(s).arrived {
			over = append(over, s)
		}
		c.list.pop()
	}
	c.mu.Unlock()
	c.signal()
	for _, s := range over {
		c.dev.Engine.FailSubmission(s, c.failed())
	}
}

// abandon gives up on a thread that has not returned from the library. It fails the operation that
// the thread is issuing, and all operations behind it. If the thread has closed the channel back,
// abandon does nothing, and reports false.
func (c *Communicator) abandon(back <-chan struct{}) (err error, abandoned bool) {
	c.mu.Lock()
	select {
	case <-back: // the thread needs only the driver from now on, and the device waits for the thread
		c.mu.Unlock()
		return nil, false
	default:
	}
	what := "did not return %v after the communicator was aborted"
	if c.phase() == isAborting {
		what = "did not abort the communicator within %v"
	}
	owed := c.hand.owed
	c.hand.owed = nil
	c.finish(isAbandoned)
	c.dev.Owner.FailOwed(c.tl, c.failed(), owed)
	late := fmt.Errorf("gpu: communicator: the library "+what+": %w", AbortTime, errs.ErrClosed)
	return errors.Join(late, c.notAborted()), true
}

// notAborted returns the error with which aborting the native communicator failed, or nil. It
// returns nil if the device is lost.
func (c *Communicator) notAborted() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unaborted == nil || c.dev.Engine.Loss() != nil {
		return nil
	}
	return fmt.Errorf("gpu: communicator: the library did not abort it: %w", c.unaborted)
}

// destroy releases everything that the communicator holds. The communicator may have been aborted
// before, or may be aborted meanwhile. destroy runs on the communicator's thread. After the last
// call of the library destroy closes the channel back, with mu held. If the communicator is
// abandoned while the library is still aborting it, destroy leaks the native communicator and its
// registrations, and Close of the device destroys the stream.
func (c *Communicator) destroy(aborted bool, back chan<- struct{}) error {
	var failures []error
	add := func(err error) {
		if err != nil && c.dev.Engine.Loss() == nil { // on a lost device every call fails
			failures = append(failures, err)
		}
	}
	c.awaitAbort(math.MaxInt64) // without a limit; it also returns when the thread is abandoned
	c.returned()
	c.mu.Lock()
	left := c.inAbort && c.phase() == isReturned
	c.mu.Unlock()
	if left {
		return nil
	}
	var err error
	had := c.comm != 0
	if had {
		err = c.comms.DestroyComm(c.comm)
	}
	c.mu.Lock()
	c.comm = 0
	close(back)
	c.mu.Unlock()
	c.returned()
	if had {
		if aborted || err != nil { // otherwise there was nothing to abort
			c.awaitAbort(AbortTime)
			add(c.notAborted())
		}
		if c.Err() == nil { // of a failed communicator only the error of the abort counts
			add(err)
		}
	}
	c.memory.over()
	tl := c.tl
	late, cancel := context.WithTimeout(context.Background(), AbortTime)
	defer cancel()
	wake.Until(late, func() bool {
		err = tl.Settle(late)
		// After an error other than ErrLost, Until tries again. If the stream does not end in time,
		// c.stuck makes the device lost.
		return err == nil || errors.Is(err, driver.ErrLost) || c.dev.Engine.Loss() != nil
	})
	c.dev.Engine.Check(err)
	// leave returns the failures. It destroys the stream, unless the communicator is a lane of the
	// device: then Close of the device destroys the stream.
	leave := func() error {
		if !slices.Contains(c.dev.Engine.ListLanes(), engine.Lane((*lane)(c))) {
			add(c.dev.Engine.Native.DestroyStream(tl.Stream))
		}
		return errs.Summarize(failures)
	}
	if err != nil { // later work in other streams, of this device and others, may not end either
		add(c.stuck(err))
		return leave()
	}
	tl.At(tl.Latest()).Await(context.Background())
	if c.dev.Engine.Loss() != nil {
		return leave()
	}
	tl.Trim()
	tl.End()
	c.dev.Engine.RemoveLane((*lane)(c), tl)
	add(c.dev.Engine.Native.DestroyStream(tl.Stream))
	return errs.Summarize(failures)
}

// closeWithDevice closes a communicator when its device is closed. It waits until the
// communicator's thread no longer uses the driver, or has been abandoned.
func (c *Communicator) closeWithDevice(ctx context.Context) error {
	err, _ := c.closer.Close(ctx, c.close, func() time.Duration { return math.MaxInt64 })
	return err
}
