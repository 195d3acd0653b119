package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A channelPhase is a phase of a channel's life. Only [Channel.move] changes it, along
// channelLeads.
type channelPhase int32

const (
	channelMaking     channelPhase = iota // being made; NewChannel has not returned
	channelOpen                           // takes groups and issues them
	channelSuspended                      // takes no groups; suspended as soon as it is idle
	channelClosing                        // takes nothing; operations in flight continue
	channelDestroying                     // the communicator is being destroyed, and not polled for errors
	channelShrinking                      // has failed; shrinking aborts the communicator
	channelAborting                       // has failed; the communicator is being aborted
	channelAborted                        // the abort is over; the communicator may be destroyed
	channelClosed                         // nothing is left; the thread ends
	channelAbandoned                      // the thread is blocked, or has ended, in a library call
	channelReturned                       // that call returned; the device stays until the thread ends
	channelEnded                          // the thread has ended
	channelPhases
)

// channelLeads lists the phases that each phase may lead to. Only channelOpen and channelSuspended
// can be entered twice.
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

// errChannelClosed is the error of a channel that is closed or closing.
var errChannelClosed = fmt.Errorf("gpu: channel: %w", ErrClosed)

// channelLife holds a channel's phase and its failure. Fields that are not atomic are protected by
// the channel's mu.
type channelLife struct {
	state atomic.Int32 // the channelPhase; changed under mu
	// Each is closed when its phase begins, except those of phases that may be entered twice.
	entered [channelPhases]chan struct{}
	// Set before channelShrinking or channelAborting begins, and nowhere else.
	failure atomic.Pointer[engine.Failure]
	// When channelShrinking or channelAborting began, or when the thread returned after that.
	abortedAt time.Time
	inAbort   bool  // the library is aborting the communicator
	unaborted error // why the communicator could not be aborted
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

// move enters a phase. It reports false if the current phase does not lead there. The caller holds
// mu.
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

// Err returns the error with which the channel has failed, or nil.
func (c *Channel) Err() error {
	if f := c.failure.Load(); f != nil {
		return f.Err
	}
	return nil
}

// failed returns why the channel takes no more operations, or nil.
func (c *Channel) failed() error {
	if c.phase() < channelClosing {
		return c.dev.failed()
	}
	if err := c.Err(); err != nil {
		return err
	}
	return errChannelClosed
}

// halted returns why the channel takes no more operations, and why its issued operations fail.
func (c *Channel) halted() (takes, issued error) { return c.failed(), c.Err() }

// fail fails the channel. The communicator is aborted, and all operations fail at once, issued or
// not.
func (c *Channel) fail(err error) {
	c.setFailure(channelAborting, err)
	c.to(channelAborting) // also if it is being shrunk
	c.failAll()
}

// setFailure fails the channel by entering channelAborting or channelShrinking. It returns the
// channel's failure. That is an earlier one if the channel has failed already, and then the phase
// stays as it is. It is nil if the channel is closed. The caller must call failAll as soon as it
// holds no locks.
func (c *Channel) setFailure(p channelPhase, err error) error {
	c.mu.Lock()
	// mu also protects rank and count, which may be about to be set.
	e := &ChannelError{c.dev.native.Info.Name, c.opt.Name, c.rank, c.count, err}
	first := c.leadsTo(p) && c.failure.CompareAndSwap(nil, &engine.Failure{Err: e})
	if first {
		c.move(p)
	}
	c.mu.Unlock()
	// The loss of a device has a record of its own.
	if first && !errors.Is(err, ErrClosed) && c.dev.native.Loss() == nil {
		c.dev.happened(observe.Lost, time.Now(), "", 0, e)
	}
	return c.Err()
}

// failAll fails all operations of a failed channel. Operations in its stream keep what they use
// until the stream has passed them.
func (c *Channel) failAll() {
	if err := c.Err(); err != nil {
		sema.Release(c.q.tl.FailInFlight(err))
		c.cancel(err)
		c.signal()
	}
}

// cancel makes waiting operations ready, as failed.
func (c *Channel) cancel(err error) {
	c.q.tl.CancelParked(err)
}

// abort aborts the communicator. It runs on a goroutine of its own, because the channel's thread
// may be blocked in the library. If the driver can bind no other thread, it uses the channel's
// thread.
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

// handle returns the communicator, or 0 if there is none. It is for callers other than the
// channel's thread.
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

// awaitAbort waits until an abort under way is over or the thread is abandoned. It reports false if
// neither happens within limit.
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
