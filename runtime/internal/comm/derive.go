package comm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// isPlain returns an error if the communicator is plain. No other communicator can be derived from
// a plain one.
func (c *Communicator) isPlain(op string) error {
	if !c.opt.Plain {
		return nil
	}
	return fmt.Errorf("gpu: communicator on %s: %s: it was joined plainly (Options.Plain), for ranks of other programs, and so it lacks what other "+
		"communicators are made of (an ncclCommSplit by all ranks): make the new communicator with an id of its own: %w", c.dev.Engine.Info.Name, op, driver.ErrUnsupported)
}

// Split divides the communicator into new communicators. Each consists of the ranks that pass the
// same color. Split returns nil without an error for driver.NoColor.
func (c *Communicator) Split(ctx context.Context, color, key int) (*Communicator, error) {
	if c.isZero() {
		return nil, errs.Zero("split", "Communicator")
	}
	if color < driver.NoColor || int64(color) > 1<<31-1 || int64(key) != int64(int32(key)) {
		return nil, errs.Argument("split", "color %d, key %d", color, key)
	}
	if ctx == nil {
		return nil, errs.Argument("split", "no context")
	}
	if err := c.isPlain("split"); err != nil {
		return nil, err
	}
	return c.derive(ctx, true, func(comms driver.Comms) (driver.Comm, error) {
		return comms.SplitComm(c.comm, color, key)
	})
}

// Shrink makes a communicator of all ranks except the excluded ones. If abort is set, operations in
// flight are aborted first, and c fails. Otherwise Shrink first waits until all operations are
// done.
func (c *Communicator) Shrink(ctx context.Context, abort bool, exclude ...int) (*Communicator, error) {
	if c.isZero() {
		return nil, errs.Zero("shrink", "Communicator")
	}
	for _, r := range exclude {
		if r < 0 || r >= c.opt.Count || r == c.opt.Rank {
			return nil, errs.Argument("shrink", "excluding rank %d of %d on rank %d", r, c.opt.Count, c.opt.Rank)
		}
	}
	if len(exclude) == 0 {
		return nil, errs.Argument("shrink", "no ranks to exclude")
	}
	if ctx == nil { // without this check, the missing context would fail the communicator
		return nil, errs.Argument("shrink", "no context")
	}
	if err := c.isPlain("shrink"); err != nil {
		return nil, err
	}
	if err := c.limits.checkShrink(); err != nil {
		return nil, fmt.Errorf("gpu: communicator on %s: shrink: %w", c.dev.Engine.Info.Name, err)
	}
	shrink := func(comms driver.Comms) (driver.Comm, error) { return comms.ShrinkComm(c.comm, exclude, abort) }
	if abort {
		why := fmt.Errorf("%w: to shrink without ranks %v", ErrAborted, exclude)
		if err := c.setFailure(isShrinking, why); !errors.Is(err, why) {
			return nil, fmt.Errorf("gpu: communicator on %s: shrink: it has failed already, or was closed: close it, and make a new one: %w", c.dev.Engine.Info.Name, c.failed())
		}
		c.failAll()
	}
	made, err := c.derive(ctx, !abort, shrink)
	if abort && err != nil { // abort the communicator here, in case the driver has not done it
		c.fail(err)
		c.awaitAbort(AbortTime)
	}
	return made, err
}

// derive makes a communicator from this one. If idle is set, derive first waits until all
// operations are done.
func (c *Communicator) derive(ctx context.Context, idle bool, begin func(driver.Comms) (driver.Comm, error)) (*Communicator, error) {
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if idle {
		if err := c.idle(ctx); err != nil {
			return nil, fmt.Errorf("gpu: communicator: made of rank %d of %d: %w", c.opt.Rank, c.opt.Count, err)
		}
	}
	return c.dev.newCommunicator(ctx, c.opt, c, func(comms driver.Comms) (driver.Comm, error) {
		return c.begin(ctx, func() (driver.Comm, error) { return begin(comms) })
	})
}

// begin runs fn on the communicator's thread, because only one goroutine at a time may use a native
// communicator. fn calls the library: it makes a new native communicator, suspends or resumes. The
// thread may be blocked, before or in fn, until other ranks come. If the context ends, or the
// communicator fails or is closed first, begin gives up. If fn has begun by then, begin also fails
// the communicator.
func (c *Communicator) begin(ctx context.Context, fn func() (driver.Comm, error)) (driver.Comm, error) {
	type result struct {
		h   driver.Comm
		err error
	}
	done := make(chan result, 1)
	var taken atomic.Bool // set by the thread before fn, or by begin when begin gives up
	posted := c.post(func() {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		if c.phase() >= isAborting {
			done <- result{0, c.failed()}
			return
		}
		h, err := fn()
		done <- result{h, err}
	})
	if !posted {
		return 0, errClosed
	}
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	var why error
	for why == nil {
		select {
		case r := <-done:
			return r.h, r.err
		case <-c.entered[isClosing]:
			why = errs.ErrClosed
		case <-c.entered[isAborting]:
			why = c.Err()
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-look.C:
			c.mu.Lock()
			why = c.fault()
			c.mu.Unlock()
		}
	}
	if taken.CompareAndSwap(false, true) {
		return 0, fmt.Errorf("the library had not begun it: %w", why)
	}
	why = fmt.Errorf("the library did not come to an end with it in time: %w", why)
	c.fail(why)
	c.awaitAbort(AbortTime)
	select {
	case r := <-done: // a new native communicator has been aborted as well, unless it was complete
		if r.err != nil {
			why = fmt.Errorf("%w: %w", why, r.err)
		}
		return r.h, why
	case <-time.After(AbortTime):
		return 0, fmt.Errorf("the library did not return %v after the communicator was aborted: %w", AbortTime, why)
	}
}

// idle waits until all submitted operations are done. It returns an error if the communicator has
// failed or is closed, or the context ends first.
func (c *Communicator) idle(ctx context.Context) error {
	var err error
	ended := wake.Until(ctx, func() bool {
		if err = c.failed(); err != nil || !c.busy() {
			return true
		}
		c.tl.Poll(c.tl.Latest(), 1)
		return false
	})
	if !ended {
		return ctx.Err()
	}
	return err
}
