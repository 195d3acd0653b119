package gpu

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Close waits until what is under way is done, for up to about ten seconds, and gives the channel back, with what is registered;
// what has not been issued fails with [ErrClosed]. It may wait for the other ranks to close theirs, as long. Device.Close closes
// what is left. Closing again returns the same error.
func (c *Channel) Close() error {
	if c == nil || c.dev == nil {
		return nil
	}
	return c.close(time.Now().Add(closeTime))
}

// closeTime is how long closing may take, and abortTime how long it may take in addition to end what was aborted.
const (
	closeTime = 10 * time.Second
	abortTime = 5 * time.Second
)

func (c *Channel) close(deadline time.Time) error {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	if c.over {
		return c.closeErr
	}
	c.over = true
	c.closing.Store(true)
	close(c.shut)
	c.deriveMu.Lock() // who makes a channel of this one finds it closing
	defer c.deriveMu.Unlock()
	closed := fmt.Errorf("gpu: channel: %w", ErrClosed)
	until := func(deadline time.Time, over func() bool) bool {
		for pause := 20 * time.Microsecond; !over(); pause = min(2*pause, time.Millisecond) {
			if !time.Now().Before(deadline) {
				return false
			}
			c.cancel(closed) // also what comes back because it waits for another driver's device
			c.signal()
			c.q.tl.urge(c.q.tl.issued.Load())
			time.Sleep(pause)
		}
		return true
	}
	until(deadline, func() bool { return !c.busy() || c.Err() != nil || c.dev.lost.Load() != nil })
	if c.busy() || c.Err() != nil { // whoever fails it may not have come to abort it yet
		c.fail(fmt.Errorf("what was under way did not end before Close had to: %w", ErrClosed))
	}
	c.mu.Lock()
	c.made = false // nobody asks any more
	c.mu.Unlock()
	c.awaitAbort()
	done := make(chan error, 1)
	c.post(func() { done <- c.destroy() })
	var err error
	select {
	case err = <-done:
	case <-time.After(time.Until(deadline)):
		c.fail(fmt.Errorf("the other ranks did not close theirs in time: %w", ErrClosed))
		c.awaitAbort()
		select {
		case err = <-done:
		case <-time.After(abortTime):
			c.kept.Store(true)
			err = fmt.Errorf("gpu: channel: the library did not return %v after the communicator was aborted: %w", abortTime, ErrClosed)
		}
	}
	if !c.kept.Load() {
		until(time.Now().Add(abortTime), func() bool { return !c.busy() }) // all that waited comes by as failed
	}
	c.mu.Lock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.signal()
	if c.kept.Load() {
		c.abandon()
	} else {
		<-c.gone // its last call of the driver, before the device is closed
	}
	select {
	case <-c.aborted:
		if c.unended != nil && c.dev.lost.Load() == nil {
			err = errors.Join(err, fmt.Errorf("gpu: channel: its communicator was not aborted: %w", c.unended))
		}
	default: // it was not, or when there was nothing left to abort
	}
	c.closeErr = err
	return err
}

// abandon fails what a thread leaves behind that does not come back: what it is about, and what is behind that. What still waits
// for something comes by in [Channel.ready], for all waits have been cancelled.
func (c *Channel) abandon() {
	err := c.failed()
	c.mu.Lock()
	owed, s := c.owed, c.first
	c.owed, c.first, c.last, c.waiting = nil, nil, nil, 0
	if c.back != nil {
		c.back.behind, s = s, c.back
		c.back.arrived, c.back = true, nil
	}
	var over []*submission
	for s != nil {
		next := s.behind
		if s.behind = nil; s.arrived {
			over = append(over, s)
		}
		s = next
	}
	c.mu.Unlock()
	close(c.left)
	mishaps.Add(1) // for what the thread is about
	FailAll(&SubmitError{opNames[opCollect], c.dev.info.Name, err}, owed...)
	for _, s := range over {
		c.dev.failSubmission(s, err)
	}
}

// awaitAbort waits until the communicator has been aborted, if it is going to be.
func (c *Channel) awaitAbort() {
	if c.ending.Load() {
		<-c.aborted
	}
}

// destroy gives back what the channel holds. It runs on its thread.
func (c *Channel) destroy() error {
	var errs []error
	add := func(err error) {
		if err != nil && c.dev.lost.Load() == nil { // nothing works on a lost device, and nobody can help it
			errs = append(errs, err)
		}
	}
	if c.comm != 0 {
		err := c.comms.DestroyComm(c.comm)
		c.returned()
		if c.Err() == nil { // one that was aborted says so
			add(err)
		}
		c.mu.Lock()
		c.comm = 0
		c.mu.Unlock()
	}
	c.memory.over()
	tl := c.q.tl
	deadline := time.Now().Add(abortTime)
	err := tl.settleOnce()
	for err != nil && !errors.Is(err, driver.ErrLost) && time.Now().Before(deadline) {
		err = tl.settleOnce()
	}
	c.dev.check(err)
	if c.givenUp.Load() {
		<-c.drained // whoever has failed the channel may still be about that
	}
	if err != nil { // what comes after it on other streams may never be done; the device's Close ends it
		tl.neverEnds()
		tl.limbo = append(tl.limbo, c.limbo...)
		c.limbo = nil
		add(fmt.Errorf("gpu: channel: its stream does not end: %w", err))
		return errors.Join(errs...)
	}
	for _, s := range c.limbo {
		c.dev.recycle(s)
	}
	c.limbo = nil
	c.q.mu.Lock()
	for s := c.q.free; s != nil; s = s.next {
		if s.event != nil {
			s.event.drop()
		}
	}
	c.q.free, c.q.kept = nil, 0
	c.q.mu.Unlock()
	tl.askMu.Lock() // whoever asks about an event gets through
	tl.askMu.Unlock()
	c.dev.removeChannel(c)
	add(c.dev.drv.DestroyStream(tl.h))
	return errors.Join(errs...)
}

// addChannel adds a channel to what the device closes, and asks.
func (d *Device) addChannel(c *Channel) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failed(); err != nil {
		return err
	}
	d.channels = append(d.channels, c)
	all := append(slices.Clip(d.all()), c.q)
	d.every.Store(&all)
	return nil
}

func (d *Device) removeChannel(c *Channel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.channels = slices.DeleteFunc(d.channels, func(x *Channel) bool { return x == c })
	all := slices.DeleteFunc(slices.Clone(d.all()), func(q *Queue) bool { return q == c.q })
	d.every.Store(&all)
}

func (d *Device) listChannels() []*Channel {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.channels)
}

// failChannels fails the channels of a device that is lost.
func (d *Device) failChannels(err error) {
	for _, c := range d.listChannels() {
		go c.fail(err)
	}
}

// closeChannels closes what channels are left, at the same time.
func (d *Device) closeChannels(deadline time.Time) error {
	left := d.listChannels()
	return each(len(left), func(i int) error { return left[i].close(deadline) })
}
