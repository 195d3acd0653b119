package comm

import (
	"context"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/engine"
)

// watchEvery is how often a communicator with work under way is checked.
const watchEvery = 10 * time.Millisecond

// watch has the timer that calls Communicator.look. Communicator.mu protects the fields.
type watch struct {
	look    func() // Communicator.look; set once, because a method value allocates
	timer   *time.Timer
	started bool // a call of look is scheduled
}

// start schedules a call of look, unless one is scheduled already.
func (w *watch) start() {
	switch {
	case w.started:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(watchEvery, w.look)
	default:
		w.timer.Reset(watchEvery)
	}
	w.started = true
}

// stop stops the timer for good.
func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// tick schedules a call of look, unless the communicator is closed. The caller holds
// Communicator.mu.
func (c *Communicator) tick() {
	if c.phase() < isClosed {
		c.watch.start()
	}
}

// look fails the communicator if the library reports an error, such as the loss of another rank, or
// if an operation takes too long. If the issued operations of an aborted communicator do not end
// within AbortTime, look makes the device lost.
func (c *Communicator) look() {
	c.tl.Poll(c.tl.Latest(), 1)
	c.mu.Lock()
	c.watch.started = false
	var err, stuck error
	more := c.hand.state != isEmpty
	switch c.phase() {
	default:
		if err = c.fault(); err == nil {
			err = c.overdue()
		}
		more = more || c.list.withContext > 0 || c.tl.Busy()
	case isShrinking: // the thread must return to shrink the communicator
		if more {
			err = c.late(c.hand.ctx, c.hand.since)
			break
		}
		fallthrough
	case isAborting, isAborted: // issued operations must end
		if more = c.tl.Busy(); more && time.Since(c.abortedAt) > AbortTime {
			stuck = fmt.Errorf("not %v after the communicator was aborted: %w", AbortTime, context.DeadlineExceeded)
		}
	}
	if err == nil && stuck == nil && more {
		c.tick()
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		c.fail(err)
	case stuck != nil:
		c.stuck(stuck)
	}
}

// fault returns the error that the library reports for the native communicator, or nil. The caller
// holds Communicator.mu.
func (c *Communicator) fault() error {
	if p := c.phase(); p < isOpen || p > isClosing {
		return nil
	}
	if err := c.comms.CommError(c.comm); err != nil {
		return fmt.Errorf("found while it was under way: %w", err)
	}
	return nil
}

// late returns an error if a group's context has ended or the group's timeout has expired. issued
// is zero for a group that has not been issued.
func (c *Communicator) late(ctx context.Context, issued time.Time) error {
	if ctx != nil {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("a group was not done in time (have all ranks submitted it?): %w", err)
		}
	}
	if t := c.opt.Timeout; t > 0 && !issued.IsZero() && time.Since(issued) > t {
		return fmt.Errorf("a group was not done %v after it was issued (have all ranks submitted it?): %w", t, context.DeadlineExceeded)
	}
	return nil
}

// overdue returns an error if any operation takes too long. The caller holds Communicator.mu.
func (c *Communicator) overdue() error {
	if c.list.withContext > 0 {
		for s := range c.list.all() {
			if err := c.late(partOf(s).ctx, time.Time{}); err != nil {
				return err
			}
		}
	}
	if err := c.late(c.hand.ctx, c.hand.since); err != nil {
		return err
	}
	var err error
	c.tl.EachInFlight(func(s *engine.Submission) bool {
		p := partOf(s)
		err = c.late(p.ctx, p.issuedAt)
		return err == nil
	})
	return err
}
