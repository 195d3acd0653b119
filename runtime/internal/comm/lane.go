package comm

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A lane is a channel as the engine sees it: it implements engine.Lane.
type lane Channel

// Halted returns why the channel takes no more work, and why its issued work fails.
func (l *lane) Halted() (takes, issued error) { return (*Channel)(l).halted() }

// PollFor makes the thread poll the device. See Channel.ask.
func (l *lane) PollFor(seq uint64) bool { return (*Channel)(l).ask(seq) }

// Describe returns how errors mention the channel.
func (l *lane) Describe() string { return (*Channel)(l).describe() }

// Fail fails the channel and all of its operations.
func (l *lane) Fail(err error) { (*Channel)(l).fail(err) }

// CloseWithDevice closes the channel with its device.
func (l *lane) CloseWithDevice(ctx context.Context) error {
	return (*Channel)(l).closeWithDevice(ctx)
}

// Take appends a submission to the channel's list.
func (l *lane) Take(s *engine.Submission) error {
	c := (*Channel)(l)
	p := partOf(s)
	if o := observe.Of(s); o != nil {
		o.Collective(p.name(), c.opt.Name, c.rank, c.count)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.failed()
	if err == nil && c.phase() == isSuspended {
		err = errSuspended
	}
	if err != nil {
		p.refused = true
		return err
	}
	for _, signal := range s.Signals {
		signal.Semaphore.ExpectSoon()
	}
	if c.last == nil {
		c.first = s
	} else {
		partOf(c.last).behind = s
	}
	c.last = s
	if p.ctx != nil {
		c.waiting++
		c.tick()
	}
	return nil
}

// Ready tells the channel's thread that a submission has nothing left to wait for. It returns an
// error if the thread issues nothing any more.
func (l *lane) Ready(s *engine.Submission) error {
	c := (*Channel)(l)
	c.mu.Lock()
	if c.phase() >= isClosed {
		c.mu.Unlock()
		return c.failed()
	}
	if s.Mode == engine.UntilReached {
		c.hand.state = isBack
		c.push(s)
	}
	partOf(s).arrived = true
	c.mu.Unlock()
	c.signal()
	return nil
}

// ThreadState returns what the channel's thread is doing.
func (l *lane) ThreadState() engine.LaneThread {
	c := (*Channel)(l)
	switch {
	case c.phase() == isAbandoned:
		return engine.LaneLost
	case c.thread.Parked():
		return engine.LaneAsleep
	}
	return engine.LaneAwake
}

// describe returns how errors mention the channel.
func (c *Channel) describe() string {
	if c.opt.Name == "" {
		return "a channel"
	}
	return fmt.Sprintf("channel %q", c.opt.Name)
}

// EachReady calls fn for the groups that have nothing left to wait for and have not been issued.
func (l *lane) EachReady(fn func(*engine.Submission)) {
	c := (*Channel)(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := c.first; s != nil; {
		p := partOf(s)
		if p.arrived {
			fn(s)
		}
		s = p.behind
	}
}
