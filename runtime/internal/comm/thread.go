package comm

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A communicator's thread makes, uses and destroys the native communicator. The thread issues the
// groups in the order of their submission. Any library call may block the thread until other ranks
// come or the native communicator is aborted.

// issuing has a communicator's thread and the work that the thread has to issue. Communicator.mu
// protects the fields todo, list, hand and watch.
type issuing struct {
	thread *wake.Thread
	ops    []driver.CommOp // room for the operations of a group; used by the thread alone
	todo   []func()        // posted functions
	list   groupList
	sought atomic.Uint64 // while the thread lingers, it polls the device for the work with this number
	hand   groupInHand
	watch  watch
}

// groupInHand is the group that a communicator's thread has taken off the list and has not finished
// issuing. No other group overtakes it.
type groupInHand struct {
	state handState
	ctx   context.Context   // the group's context; nil if the group has none that can end
	since time.Time         // when the group was first issued
	owed  []*sema.Semaphore // the semaphores that the group signals; empty unless the thread is issuing the group
}

// A handState is the state of the group in hand. Transitions: isEmpty to isIssuing; isIssuing to
// isEmpty, isForeign or isBack; isForeign to isBack; isBack to isIssuing.
type handState int

const (
	isEmpty   handState = iota // there is no group in hand
	isIssuing                  // the thread is issuing the group
	isForeign                  // IssueReady returned Foreign: the group waits for another driver's device
	isBack                     // the group's wait is over, and the group is the first of the list
)

// run is the thread's main function.
func (c *Communicator) run(started chan<- error) {
	runtime.LockOSThread()
	defer func() {
		if c.phase() == isReturned {
			c.dev.Engine.Leave()
		}
		c.to(isEnded)
	}()
	err := c.dev.Engine.Native.Bind()
	if err == nil {
		c.tl.Stream, err = c.dev.Engine.Native.NewStream()
	}
	started <- err
	if err != nil {
		// The goroutine stays locked, so that its thread, which may be bound to the device, ends
		// too.
		return
	}
	for worked := true; ; {
		did, ended := c.step()
		switch worked = worked || did; {
		case ended:
			if c.dev.Engine.Native.Unbind() == nil {
				runtime.UnlockOSThread()
			}
			return
		case !did:
			c.thread.Wait(worked, c.askSought)
			worked = false
		}
	}
}

// askSought polls the device for the work whose number is in sought, unless this work is done. It
// reports whether it polled.
func (c *Communicator) askSought() bool {
	tl := c.tl
	seq := min(c.sought.Load(), tl.Latest())
	if tl.Passed(seq) {
		return false
	}
	tl.Poll(seq, 1)
	return true
}

// ask makes the thread poll the device until the work with the number seq is done. ask reports
// false if the thread does not linger: then the thread does not poll.
func (c *Communicator) ask(seq uint64) bool {
	if !c.thread.Attends() {
		return false
	}
	for now := c.sought.Load(); now < seq && !c.sought.CompareAndSwap(now, seq); now = c.sought.Load() {
	}
	return true
}

// step runs the posted functions, or issues one group. It reports whether it did either, and
// whether the thread has to end.
func (c *Communicator) step() (worked, ended bool) {
	c.mu.Lock()
	todo := c.todo
	c.todo = nil
	var s *engine.Submission
	if len(todo) == 0 && c.hand.state != isForeign && c.list.arrived() {
		s = c.list.pop()
		c.hand = groupInHand{state: isIssuing, owed: c.hand.owed}
	}
	ended = len(todo) == 0 && s == nil && c.phase() >= isClosed
	c.mu.Unlock()
	for _, fn := range todo {
		fn()
		c.returned()
	}
	if s != nil {
		c.issue(s)
		c.mu.Lock()
		if c.hand.state == isIssuing {
			c.hand.state = isEmpty
		}
		c.mu.Unlock()
	}
	return len(todo) > 0 || s != nil, ended
}

// returned is called after the library has returned. If the communicator has been abandoned,
// returned keeps the device open until the thread ends. If the device is closing or closed,
// returned ends the thread instead.
func (c *Communicator) returned() {
	switch p := c.phase(); {
	case p == isAbandoned && c.dev.Engine.Stay() == nil:
		c.to(isReturned)
	case p == isAbandoned, p == isReturned && c.dev.Engine.IsLeaving():
		// The device is closing, and may not have waited for this thread. Locks that the thread
		// holds stay locked, but nobody uses them any more.
		runtime.Goexit()
	}
}

// issue issues a group. If a wait of the group has failed, or issuing fails, the group and the
// communicator fail. But if the library refuses the group ([refusal]), only the group and the
// operations that wait for the group fail.
func (c *Communicator) issue(s *engine.Submission) {
	err := c.failed()
	if f := s.Err.Load(); f != nil {
		if err == nil && !isRefusal(f.Err) {
			c.setFailure(isAborting, fmt.Errorf("a group was not issued because one of its waits failed: %w", f.Err))
			c.failAll()
		}
		err = f.Err
	}
	if err != nil {
		c.dev.Engine.FailSubmission(s, err)
		return
	}
	g := partOf(s)
	if s.Mode != engine.UntilReached { // a group that is issued again keeps its time
		g.issuedAt = time.Now()
	}
	c.mu.Lock()
	c.hand.ctx, c.hand.since = g.ctx, g.issuedAt
	for _, p := range s.Signals {
		c.hand.owed = append(c.hand.owed, p.Semaphore)
	}
	c.tick()
	c.mu.Unlock()
	how, err := c.tl.IssueReady(s)
	c.mu.Lock()
	clear(c.hand.owed)
	c.hand.owed = c.hand.owed[:0]
	switch {
	case how != engine.Foreign:
		c.hand.ctx, c.hand.since = nil, time.Time{}
		if c.phase() >= isShrinking { // look may have run before the stream got the group
			c.abortedAt = time.Now()
			c.tick()
		}
	case c.hand.state == isIssuing: // otherwise the group is back in the list already
		c.hand.state = isForeign
	}
	c.mu.Unlock()
	if how != engine.Foreign && how != engine.Issued && !isRefusal(err) {
		c.setFailure(isAborting, err) // changes nothing if the communicator has failed already
	}
	// If the communicator failed before this group was in the ring or parked, the failure missed
	// this group.
	c.failAll()
}

func (c *Communicator) signal() {
	c.thread.Signal()
}

// post queues a function to run on the thread. It reports false if the communicator is closed or
// abandoned.
func (c *Communicator) post(fn func()) bool {
	c.mu.Lock()
	if c.phase() >= isClosed {
		c.mu.Unlock()
		return false
	}
	c.todo = append(c.todo, fn)
	c.mu.Unlock()
	c.signal()
	return true
}

// do runs a function on the thread and waits for it. It returns errClosed if the communicator is
// closed, or is abandoned before the function returns.
func (c *Communicator) do(fn func() error) error {
	done := make(chan error, 1)
	if !c.post(func() { done <- fn() }) {
		return errClosed
	}
	select {
	case err := <-done:
		return err
	case <-c.entered[isAbandoned]:
		return errClosed
	}
}

// busy reports whether any submitted operation is not known to be done.
func (c *Communicator) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.list.isEmpty() || c.hand.state != isEmpty || c.tl.Busy()
}

// stuck makes the device lost, because the communicator's stream does not end although the native
// communicator has been aborted or destroyed. It returns the error.
func (c *Communicator) stuck(err error) error {
	err = fmt.Errorf("gpu: communicator: its stream does not end: %w", err)
	c.dev.Engine.Lose(err)
	return err
}
