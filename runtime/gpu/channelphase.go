package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A channelPhase is how far a channel's life has come. It changes in [Channel.move] alone, along channelLeads.
type channelPhase int32

const (
	channelMaking     channelPhase = iota // the communicator is being made; nobody has the channel yet
	channelOpen                           // takes groups and issues them
	channelSuspended                      // takes no groups, and as soon as it is idle the communicator is suspended
	channelClosing                        // takes nothing; what is under way goes on
	channelDestroying                     // the thread destroys the communicator, which is not asked about errors any more
	channelShrinking                      // has failed; the library aborts the communicator when it makes one without some ranks of it
	channelAborting                       // has failed; the communicator is being aborted
	channelAborted                        // that is over: the thread may destroy the communicator
	channelClosed                         // nothing is left; the thread ends
	channelAbandoned                      // the thread is in a call of the library that does not return, or has ended with it
	channelReturned                       // it has returned all the same; the device stays until the thread has ended
	channelEnded                          // the thread has ended
	channelPhases
)

// channelLeads has the phases to which each one may lead. None but channelOpen and channelSuspended is entered twice.
var channelLeads = [channelPhases][]channelPhase{
	channelMaking:     {channelOpen, channelClosing, channelAborting, channelEnded},
	channelOpen:       {channelSuspended, channelClosing, channelShrinking, channelAborting},
	channelSuspended:  {channelOpen, channelClosing, channelShrinking, channelAborting},
	channelClosing:    {channelDestroying, channelAborting},
	channelDestroying: {channelAborting, channelClosed},
	channelShrinking:  {channelAborting},
	channelAborting:   {channelAborted, channelClosed, channelAbandoned},
	channelAborted:    {channelClosed, channelAbandoned},
	channelClosed:     {channelEnded},
	channelAbandoned:  {channelReturned},
	channelReturned:   {channelEnded},
}

// errChannelClosed is why a channel takes nothing that is closed, or about to be.
var errChannelClosed = fmt.Errorf("gpu: channel: %w", ErrClosed)

// channelLife is how far a channel has come, and why it has failed. What is not atomic is under the channel's mu.
type channelLife struct {
	state     atomic.Int32                   // the phase; changed under mu
	entered   [channelPhases]chan struct{}   // each is closed when that phase begins; those of phases that may come twice are not
	failure   atomic.Pointer[engine.Failure] // set before channelShrinking or channelAborting begins, and by nothing else
	abortedAt time.Time                      // when channelShrinking or channelAborting began, or the thread has come back since
	inAbort   bool                           // the library is aborting the communicator
	unaborted error                          // why the communicator could not be aborted
	closer    closer
}

func (l *channelLife) init() {
	for p := range l.entered {
		l.entered[p] = make(chan struct{})
	}
}

func (l *channelLife) phase() channelPhase { return channelPhase(l.state.Load()) }

func (l *channelLife) leadsTo(p channelPhase) bool {
	return slices.Contains(channelLeads[l.phase()], p)
}

// to is move for a caller that does not hold mu.
func (c *Channel) to(p channelPhase) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.move(p)
}

// move has the channel go over to a phase, and reports false if its own does not lead there. The caller holds mu.
func (c *Channel) move(p channelPhase) bool {
	if !c.leadsTo(p) {
		return false
	}
	c.state.Store(int32(p))
	if p != channelOpen && p != channelSuspended {
		close(c.entered[p])
	}
	switch p {
	case channelShrinking:
		c.abortedAt = time.Now()
		c.tick()
	case channelAborting:
		c.abortedAt = time.Now()
		c.tick()
		go c.abort()
	case channelClosed, channelAbandoned:
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	return true
}

// Err returns why the channel has failed, nil if it has not.
func (c *Channel) Err() error {
	if f := c.failure.Load(); f != nil {
		return f.Err
	}
	return nil
}

// failed returns why the channel takes nothing more.
func (c *Channel) failed() error {
	if c.phase() < channelClosing {
		return c.dev.failed()
	}
	if err := c.Err(); err != nil {
		return err
	}
	return errChannelClosed
}

// halted returns why the channel takes nothing more, and why what it has issued fails.
func (c *Channel) halted() (takes, issued error) { return c.failed(), c.Err() }

// fail fails the channel: the communicator is aborted, what has been issued fails at once, and what has not.
func (c *Channel) fail(err error) {
	c.setFailure(channelAborting, err)
	c.to(channelAborting) // also one that is being shrunk
	c.failAll()
}

// setFailure fails the channel by going over to channelAborting or channelShrinking, and returns why it has failed: perhaps for an
// earlier reason, which leaves its phase as it is, or not at all, if it is closed. The caller calls failAll, as soon as it holds no locks.
func (c *Channel) setFailure(p channelPhase, err error) error {
	c.mu.Lock()
	e := &ChannelError{c.dev.native.Info.Name, c.opt.Name, c.rank, c.count, err} // rank and count may be about to be set
	first := c.leadsTo(p) && c.failure.CompareAndSwap(nil, &engine.Failure{Err: e})
	if first {
		c.move(p)
	}
	c.mu.Unlock()
	if first && !errors.Is(err, ErrClosed) && c.dev.native.Loss() == nil { // the loss of a device is told for itself
		c.dev.opt.Tracer.lostChannel(c.dev, e)
	}
	return c.Err()
}

// lostChannel notes that a channel has failed.
func (t *Tracer) lostChannel(d *Device, e *ChannelError) {
	if t != nil {
		now := t.now()
		t.pushOf(d, &TraceRecord{Kind: TraceLost, Device: d, Submitted: now, Done: now, Channel: e.Name, Rank: e.Rank, Ranks: e.Count, Err: e})
	}
}

// failAll fails what has been submitted to a channel that has failed. What is in its stream holds what it uses until the stream has passed it.
func (c *Channel) failAll() {
	if err := c.Err(); err != nil {
		sema.Release(c.q.tl.FailInFlight(err))
		c.cancel(err)
		c.signal()
	}
}

// cancel makes ready, as failed, what has been submitted and still waits.
func (c *Channel) cancel(err error) {
	c.q.tl.CancelParked(err)
}

// abort aborts the communicator, on a goroutine of its own, for the channel's thread may be in the library: but on that if the driver
// binds no other.
func (c *Channel) abort() {
	defer c.to(channelAborted)
	if c.dev.native.Stay() != nil {
		return // the device has given up on the channel
	}
	defer c.dev.native.Leave()
	isBound := false
	c.noteAbort(c.dev.native.Bound(func() error {
		isBound = true
		return c.abortComm()
	}))
	if !isBound {
		c.post(func() { c.noteAbort(c.abortComm()) })
	}
}

// abortComm aborts the communicator, if there is one. It runs on any bound thread.
func (c *Channel) abortComm() error {
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

// handle returns the communicator, 0 if there is none, for who is not the channel's thread.
func (c *Channel) handle() driver.Comm {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.comm
}

func (c *Channel) noteAbort(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unaborted = err
}

// awaitAbort waits until the communicator has been aborted, if it is going to be, or the thread has been given up. It reports false if neither
// comes in time.
func (c *Channel) awaitAbort(limit time.Duration) bool {
	if c.phase() != channelAborting {
		return true
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.entered[channelAborted]:
	case <-c.entered[channelAbandoned]:
	case <-late.C:
		return false
	}
	return true
}
