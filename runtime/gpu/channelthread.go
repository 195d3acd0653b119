package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
)

// A channel's thread makes, uses and destroys the communicator. It issues the groups in the order in which they were submitted,
// and may be held up in any call of the library until other ranks come, or until the communicator is aborted.

// channelThread is a channel's thread, and what it is to issue. What it shares is under the channel's mu.
type channelThread struct {
	thread  *wake.Thread
	gone    chan struct{}   // the thread has ended
	ops     []driver.CommOp // the thread's
	todo    []func()
	first   *submission // not issued, in order
	last    *submission
	waiting int           // how many there are of them with a context
	out     bool          // one has been given back, because it waits for another driver's device, and
	back    *submission   // has come again
	sought  atomic.Uint64 // until this is done the thread asks the device while it lingers
	issuing bool
	now     context.Context // of what is being issued, or waits for another driver's device, or nil, and since when
	nowAt   time.Time
	owed    []*Semaphore // what it signals, while it is being issued
	timer   *time.Timer
	ticking bool

	suspended bool // takes no groups, for the communicator is, or is about to be
}

// collectPart is the part of a submission's record for a group of collective operations.
type collectPart struct {
	group    []groupOp
	ctx      context.Context // if that can end
	behind   *submission     // those of the same channel that were submitted later; under its mu, as is:
	arrived  bool            // it waits for nothing any more
	issuedAt time.Time
}

func (p *collectPart) reset() {
	clear(p.group)
	*p = collectPart{group: p.group[:0]}
}

// run is the thread.
func (c *Channel) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(c.gone)
	defer func() {
		if c.stays {
			c.dev.leave()
		}
	}()
	err := c.dev.drv.Bind()
	if err == nil {
		c.q.tl.h, err = c.dev.drv.NewStream()
	}
	started <- err
	if err != nil {
		return // and with the goroutine the thread, to which the device may be bound
	}
	for worked := true; ; {
		did, ended := c.step()
		switch worked = worked || did; {
		case ended:
			if c.dev.drv.Unbind() == nil {
				runtime.UnlockOSThread()
			}
			return
		case !did:
			c.thread.Wait(worked, c.askSought)
			worked = false
		}
	}
}

// askSought asks the device for those who have sought something that is not done.
func (c *Channel) askSought() bool {
	tl := c.q.tl
	seq := min(c.sought.Load(), tl.issued.Load())
	if seq <= tl.passed.Load() {
		return false
	}
	tl.poll(seq, 1)
	return true
}

// ask has the thread ask the device until seq is done, and reports false if it does not attend.
func (c *Channel) ask(seq uint64) bool {
	if !c.thread.Attends() {
		return false
	}
	if c.sought.Load() < seq {
		c.sought.Store(seq)
	}
	return true
}

// step does what was asked of the thread, or issues one group.
func (c *Channel) step() (worked, ended bool) {
	c.mu.Lock()
	todo := c.todo
	c.todo = nil
	var s *submission
	switch {
	case len(todo) > 0:
	case c.out:
		if s = c.back; s != nil {
			c.out, c.back = false, nil
			c.now, c.nowAt = nil, time.Time{}
		}
	default:
		if s = c.first; s != nil && s.arrived {
			c.pop()
		} else {
			s = nil
		}
	}
	c.issuing = s != nil
	ended = c.ended && len(todo) == 0 && s == nil
	c.mu.Unlock()
	for _, fn := range todo {
		fn()
		c.returned()
	}
	if s != nil {
		c.issue(s)
		c.mu.Lock()
		c.issuing = false
		c.mu.Unlock()
	}
	return len(todo) > 0 || s != nil, ended
}

// returned is called when the library has returned. If nobody has waited for that, and the device is closed, it ends the thread:
// there is nothing left that it could use.
func (c *Channel) returned() {
	if c.stays || !c.kept.Load() {
		return
	}
	if c.dev.stay() != nil {
		runtime.Goexit() // with what it has locked, which nobody looks at any more
	}
	c.stays = true
}

// pop takes the first submission off the list. The caller holds mu.
func (c *Channel) pop() {
	s := c.first
	c.first, s.behind = s.behind, nil
	if c.first == nil {
		c.last = nil
	}
	if s.ctx != nil {
		c.waiting--
	}
}

// issue issues a group, or fails it and the channel with it; but what the library refuses to begin with, and what waits for that,
// fails alone.
func (c *Channel) issue(s *submission) {
	err := c.failed()
	if f := s.err.Load(); f != nil {
		if err == nil && !isRefusal(f.err) {
			c.fail(fmt.Errorf("a group was not issued, for what it waits for failed: %w", f.err))
		}
		err = f.err
	}
	if err != nil {
		c.dev.failSubmission(s, err)
		return
	}
	if s.mode != untilReached { // else this is the second time
		s.issuedAt = time.Now()
	}
	c.mu.Lock()
	c.now, c.nowAt = s.ctx, s.issuedAt
	for _, p := range s.signals {
		c.owed = append(c.owed, p.Semaphore)
	}
	c.tick()
	c.mu.Unlock()
	how, err := c.q.tl.issueReady(s, true)
	c.mu.Lock()
	clear(c.owed)
	c.owed = c.owed[:0]
	if c.out = how == foreign; !c.out {
		c.now, c.nowAt = nil, time.Time{}
	}
	c.mu.Unlock()
	if how != foreign && how != issuedWork && !c.givenUp.Load() && !isRefusal(err) {
		c.fail(err)
	}
	if err := c.Err(); err != nil { // it may have failed before this was in the ring, or among what is parked
		c.drain(err)
		c.cancel(err)
	}
}

// A refusal is the error of a group of which the library has got nothing, because it lacks something: the communicator is as it
// was. On ranks with the same library it is the same.
type refusal struct{ error }

func (e refusal) Unwrap() error { return e.error }

// isRefusal reports whether something failed because of a refusal.
func isRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// take puts a submission behind those that have been submitted before.
func (c *Channel) take(s *submission) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.failed()
	if err == nil && c.ended {
		err = ErrClosed
	}
	if err == nil && c.suspended {
		err = errSuspended
	}
	if err != nil {
		return err
	}
	for _, p := range s.signals {
		if !p.Semaphore.hopes.Load() {
			p.Semaphore.hopes.Store(true)
		}
	}
	if c.last == nil {
		c.first = s
	} else {
		c.last.behind = s
	}
	c.last = s
	if s.ctx != nil {
		c.waiting++
		c.tick()
	}
	return nil
}

// ready notes that a submission has nothing left to wait for.
func (c *Channel) ready(s *submission) {
	c.mu.Lock()
	switch {
	case c.ended && c.kept.Load(): // nobody issues it any more
		c.mu.Unlock()
		c.dev.failSubmission(s, c.failed())
		return
	case s.mode == untilReached:
		c.back = s
	default:
		s.arrived = true
	}
	c.mu.Unlock()
	c.signal()
}

func (c *Channel) signal() {
	c.thread.Signal()
}

// post has a function run on the thread. It reports false if that has ended.
func (c *Channel) post(fn func()) bool {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return false
	}
	c.todo = append(c.todo, fn)
	c.mu.Unlock()
	c.signal()
	return true
}

// do runs a function on the thread and waits for it.
func (c *Channel) do(fn func() error) error {
	done := make(chan error, 1)
	if !c.post(func() { done <- fn() }) {
		return fmt.Errorf("gpu: channel: %w", ErrClosed)
	}
	select {
	case err := <-done:
		return err
	case <-c.left:
		return fmt.Errorf("gpu: channel: %w", ErrClosed)
	}
}

// busy reports whether anything that was submitted is not known to be done.
func (c *Channel) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first != nil || c.issuing || c.out || c.q.tl.busy()
}

// fail fails the channel: the communicator is aborted, what has been issued fails at once, and what has not.
func (c *Channel) fail(err error) {
	c.setFailure(err)
	c.giveUp(true)
}

// setFailure says why the channel fails, if it has not yet. It returns why it has.
func (c *Channel) setFailure(err error) error {
	c.mu.Lock()
	rank, count := c.rank, c.count // the communicator may be being made
	c.mu.Unlock()
	e := &ChannelError{c.dev.info.Name, c.opt.Name, rank, count, err}
	if c.failure.CompareAndSwap(nil, &failure{e}) && !errors.Is(err, ErrClosed) && c.dev.lost.Load() == nil { // the loss of a device is told for itself
		c.dev.opt.Tracer.lostChannel(c.dev, e)
	}
	return c.Err()
}

// giveUp ends what has been submitted to a channel that has failed, once, and aborts the communicator, if that is asked for, once.
func (c *Channel) giveUp(abort bool) {
	first := c.givenUp.CompareAndSwap(false, true)
	err := c.Err()
	if first {
		c.drain(err) // before what is aborted looks as if it was done
	}
	if abort && c.ending.CompareAndSwap(false, true) {
		c.mu.Lock()
		c.abortedAt = time.Now()
		c.tick()
		c.mu.Unlock()
		go func() {
			defer close(c.aborted)
			if c.dev.stay() == nil { // else the device has given up on the channel
				c.unbound = true
				c.unended = c.dev.onBound(func() error {
					c.unbound = false
					return c.abortComm()
				})
				c.dev.leave()
			}
		}()
	}
	if first {
		c.cancel(err)
		c.signal()
	}
}

// abortComm aborts the communicator, if there is one. It runs on any bound thread.
func (c *Channel) abortComm() error {
	c.mu.Lock()
	h := c.comm
	c.mu.Unlock()
	if h == 0 {
		return nil
	}
	return c.comms.AbortComm(h)
}

// drain fails what has been issued. What that holds stays until the stream has passed it.
func (c *Channel) drain(err error) { release(c.q.tl.failInFlight(err)) }

// stuck has the device lost because the channel's stream does not come to an end though the communicator has been aborted. It returns the
// error.
func (c *Channel) stuck(err error) error {
	err = fmt.Errorf("gpu: channel: its stream does not end: %w", err)
	c.dev.lose(err)
	return err
}

// cancel makes ready, as failed, what has been submitted and still waits.
func (c *Channel) cancel(err error) {
	c.dev.cancelThose(err, func(s *submission) bool { return s.q == c.q })
}

// watchEvery is how often a channel with work under way is looked at.
const watchEvery = 10 * time.Millisecond

// tick has the channel looked at until nothing is under way. The caller holds mu.
func (c *Channel) tick() {
	if c.ticking || c.ended {
		return
	}
	c.ticking = true
	if c.timer == nil {
		c.timer = time.AfterFunc(watchEvery, c.look)
	} else {
		c.timer.Reset(watchEvery)
	}
}

// look fails the channel if another rank has gone, or something takes too long.
func (c *Channel) look() {
	c.q.tl.urge(c.q.tl.issued.Load())
	c.mu.Lock()
	c.ticking = false
	var err, stuck error
	more := c.issuing
	switch {
	case c.Err() == nil:
		if err = c.fault(); err == nil {
			err = c.overdue()
		}
		more = more || c.out || c.waiting > 0 || c.q.tl.busy()
	case !c.ending.Load(): // it is to be shrunk, for which its thread must come back
		err = c.late(c.now, c.nowAt)
	default: // what has been issued comes to an end, now that it is aborted
		if more = c.q.tl.busy(); more && time.Since(c.abortedAt) > abortTime {
			stuck = fmt.Errorf("not %v after the communicator was aborted: %w", abortTime, context.DeadlineExceeded)
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

// fault asks the library what is wrong. The caller holds mu.
func (c *Channel) fault() error {
	if !c.made || c.ended {
		return nil
	}
	if err := c.comms.CommError(c.comm); err != nil {
		return fmt.Errorf("found while it was under way: %w", err)
	}
	return nil
}

// late returns what is wrong with a group that is not done.
func (c *Channel) late(ctx context.Context, issued time.Time) error {
	if ctx != nil {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("a group was not done in time: %w", err)
		}
	}
	if t := c.opt.Timeout; t > 0 && !issued.IsZero() && time.Since(issued) > t {
		return fmt.Errorf("a group was not done %v after it was issued: %w", t, context.DeadlineExceeded)
	}
	return nil
}

// overdue returns what takes too long. The caller holds mu.
func (c *Channel) overdue() error {
	if c.waiting > 0 {
		for s := c.first; s != nil; s = s.behind {
			if err := c.late(s.ctx, time.Time{}); err != nil {
				return err
			}
		}
	}
	if err := c.late(c.now, c.nowAt); err != nil {
		return err
	}
	tl := c.q.tl
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= tl.issued.Load(); seq++ {
		s := tl.ring.at(seq)
		if err := c.late(s.ctx, s.issuedAt); err != nil {
			return err
		}
	}
	return nil
}
