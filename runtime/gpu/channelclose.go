package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Close waits until what is under way is done and, where the library does, for the other ranks to close theirs, for up to ten
// seconds, and gives the channel back, with what is registered; what has not been issued fails with [ErrClosed]. If that takes longer
// the communicator is aborted, and the error is [ErrClosed]. To close a channel that has failed is no error by itself. Device.Close closes
// the channels that are left. Closing again returns the same error.
func (c *Channel) Close() error { return closeInTime(c.Shutdown) }

// Shutdown is Close with a context in place of the ten seconds. When the context ends the communicator is aborted, for which the library
// gets up to ten seconds, and the error wraps the context's. Close and Shutdown may be called concurrently and again: the first of
// their contexts to end bounds all of them, and they return the same error.
func (c *Channel) Shutdown(ctx context.Context) error {
	if c == nil || c.dev == nil {
		return nil
	}
	err, returned := c.closer.close(ctx, c.close, func() time.Duration { return 2*abortTime + 3*engine.GiveBackTime })
	if !returned {
		err = fmt.Errorf("gpu: channel on %s: close: a call of the library does not return: %w: %w", c.dev.native.Info.Name, driver.ErrBusy, ctx.Err())
	}
	return err
}

func (c *Channel) close(ctx context.Context) error {
	if !c.to(channelClosing) {
		c.fail(errChannelClosed) // it has failed: if that is to be shrunk, it is not any more
	}
	c.deriveMu.Lock() // who makes a channel of this one finds it closing
	defer c.deriveMu.Unlock()
	busy := func() bool {
		if !c.busy() {
			return false
		}
		c.cancel(errChannelClosed) // also what comes back because it waits for another driver's device
		c.signal()
		c.q.tl.Poll(c.q.tl.Latest(), 1)
		return true
	}
	var unended error
	within, cancel := engine.Lasting(ctx)
	defer cancel()
	if !wake.Until(within, func() bool { return !busy() || c.Err() != nil || c.dev.native.Loss() != nil }) {
		unended = fmt.Errorf("what was under way did not end before Close had to: %w: %w", ErrClosed, ctx.Err())
	}
	if lost := c.dev.native.Loss(); lost != nil {
		c.fail(lost)
	} else if c.busy() {
		c.fail(cmp.Or(unended, errChannelClosed))
	}
	aborted := !c.to(channelDestroying)
	over := c.awaitAbort(abortTime)
	for !over && ctx.Err() == nil {
		over = c.awaitAbort(abortTime)
	}
	done, back := make(chan error, 1), make(chan struct{})
	c.post(func() { done <- c.destroy(aborted, back) })
	within, cancel = engine.Lasting(ctx)
	defer cancel()
	select {
	case <-back:
	case <-within.Done():
		if unended == nil && c.Err() == nil {
			unended = fmt.Errorf("the other ranks did not close theirs in time: %w: %w", ErrClosed, ctx.Err())
		}
		c.fail(cmp.Or(unended, errChannelClosed))
		if over && c.awaitAbort(abortTime) {
			select {
			case <-back:
			case <-time.After(abortTime):
			}
		}
	}
	err, abandoned := c.abandon(back)
	if !abandoned {
		err = <-done
		late, cancel := context.WithTimeout(context.Background(), abortTime)
		wake.Until(late, func() bool { return !busy() }) // all that waited comes by as failed
		cancel()
		c.awaitAbort(engine.GiveBackTime) // which has come when there was nothing left to abort, or is over but for the library
		c.mu.Lock()
		c.finish(channelClosed)
		<-c.entered[channelEnded] // its last call of the driver, before the device is closed
	}
	if unended != nil {
		err = errors.Join(fmt.Errorf("gpu: channel on %s: %w", c.dev.native.Info.Name, unended), err)
	}
	return err
}

// finish goes over to a phase in which nothing is issued any more, and fails what was to be. What still waits for something comes by in
// Channel.ready, for all waits have been cancelled. The caller holds mu, which it gives up.
func (c *Channel) finish(p channelPhase) {
	c.move(p)
	s := c.first
	c.first, c.last, c.waiting = nil, nil, 0
	var over []*record
	for s != nil {
		next := s.behind
		if s.behind = nil; s.arrived {
			over = append(over, s)
		}
		s = next
	}
	c.mu.Unlock()
	c.signal()
	for _, s := range over {
		c.dev.native.FailSubmission(&s.Submission, c.failed())
	}
}

// abandon gives up a thread that has not come back from the library, and fails what it leaves behind: what it is about, and what is
// behind that.
func (c *Channel) abandon(back <-chan struct{}) (err error, abandoned bool) {
	c.mu.Lock()
	select {
	case <-back: // it needs no more than the driver does, which the device waits for
		c.mu.Unlock()
		return nil, false
	default:
	}
	what := "did not return %v after the communicator was aborted"
	if c.phase() == channelAborting {
		what = "did not abort the communicator within %v"
	}
	owed := c.hand.owed
	c.hand.owed = nil
	c.finish(channelAbandoned)
	FailAll(&SubmitError{Op: work.Collect.String(), Queue: c.q.mention(), Device: c.dev.native.Info.Name, Err: c.failed()}, owed...)
	late := fmt.Errorf("gpu: channel: the library "+what+": %w", abortTime, ErrClosed)
	return errors.Join(late, c.notAborted()), true
}

// notAborted returns the error of the abort of the communicator.
func (c *Channel) notAborted() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unaborted == nil || c.dev.native.Loss() != nil {
		return nil
	}
	return fmt.Errorf("gpu: channel: its communicator was not aborted: %w", c.unaborted)
}

// destroy gives back what the channel holds, of which the communicator has been aborted before, or perhaps will be meanwhile. It runs
// on its thread, and closes back with mu held when that needs the library no more. If the library does not come to an end with aborting the
// communicator that is left, with what is registered, and the stream to the device.
func (c *Channel) destroy(aborted bool, back chan<- struct{}) error {
	var errs []error
	add := func(err error) {
		if err != nil && c.dev.native.Loss() == nil { // nothing works on a lost device, and nobody can help it
			errs = append(errs, err)
		}
	}
	c.awaitAbort(math.MaxInt64) // or until the thread is given up
	c.returned()
	c.mu.Lock()
	left := c.inAbort && c.phase() == channelReturned
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
		if aborted || err != nil { // else an abort that has come meanwhile has found nothing to abort
			c.awaitAbort(abortTime)
			add(c.notAborted())
		}
		if c.Err() == nil { // one that was aborted says so
			add(err)
		}
	}
	c.memory.over()
	tl := c.q.tl
	late, cancel := context.WithTimeout(context.Background(), abortTime)
	defer cancel()
	wake.Until(late, func() bool {
		err = tl.Settle(late)
		return err == nil || errors.Is(err, driver.ErrLost) || c.dev.native.Loss() != nil // also if the stream has not ended in time
	})
	c.dev.native.Check(err)
	leave := func() error { // the stream, to the device's Close, if that knows of the channel
		if !slices.Contains(c.dev.native.ListLanes(), engine.Lane((*channelLane)(c))) {
			add(c.dev.native.Native.DestroyStream(tl.Stream))
		}
		return summarize(errs)
	}
	if err != nil { // nor may what comes after it in other streams, of this device and of others
		add(c.stuck(err))
		return leave()
	}
	tl.At(tl.Latest()).Await(context.Background())
	if c.dev.native.Loss() != nil {
		return leave()
	}
	tl.Trim()
	tl.End()
	c.dev.native.RemoveLane((*channelLane)(c), tl)
	add(c.dev.native.Native.DestroyStream(tl.Stream))
	return summarize(errs)
}

// closeWithDevice closes a channel that is left when its device is closed. It waits until its thread
// needs the driver no more.
func (c *Channel) closeWithDevice(ctx context.Context) error {
	err, _ := c.closer.close(ctx, c.close, func() time.Duration { return math.MaxInt64 })
	return err
}
