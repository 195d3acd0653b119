package comm

import (
	"context"
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A lane is a communicator as an engine.Lane.
type lane Communicator

// Halted returns why the communicator accepts no more work, or nil, and why its issued work fails,
// or nil.
func (l *lane) Halted() (takes, issued error) { return (*Communicator)(l).halted() }

// PollFor makes the thread poll the device. See Communicator.ask.
func (l *lane) PollFor(seq uint64) bool { return (*Communicator)(l).ask(seq) }

// Describe returns how errors mention the communicator.
func (l *lane) Describe() string { return (*Communicator)(l).describe() }

// Fail fails the communicator and all of its operations.
func (l *lane) Fail(err error) { (*Communicator)(l).fail(err) }

// CloseWithDevice closes the communicator with its device.
func (l *lane) CloseWithDevice(ctx context.Context) error {
	return (*Communicator)(l).closeWithDevice(ctx)
}

// Take appends a submission to the communicator's list, or returns why it does not.
func (l *lane) Take(s *engine.Submission) error {
	c := (*Communicator)(l)
	p := partOf(s)
	if o := observe.Of(s); o != nil {
		o.Collective(p.name(), c.opt.Name, c.opt.Rank, c.opt.Count)
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
	c.list.append(s)
	if p.ctx != nil {
		c.tick()
	}
	return nil
}

// Ready tells the communicator's thread that a submission has nothing left to wait for. It returns
// an error if the thread issues nothing any more.
func (l *lane) Ready(s *engine.Submission) error {
	c := (*Communicator)(l)
	c.mu.Lock()
	if c.phase() >= isClosed {
		c.mu.Unlock()
		return c.failed()
	}
	if s.Mode == engine.UntilReached {
		c.hand.state = isBack
		c.list.push(s)
	}
	partOf(s).arrived = true
	c.mu.Unlock()
	c.signal()
	return nil
}

// ThreadState returns the state of the communicator's thread.
func (l *lane) ThreadState() engine.LaneThread {
	c := (*Communicator)(l)
	switch {
	case c.phase() == isAbandoned:
		return engine.LaneLost
	case c.thread.Parked():
		return engine.LaneAsleep
	}
	return engine.LaneAwake
}

// describe returns how errors mention the communicator.
func (c *Communicator) describe() string {
	if c.opt.Name == "" {
		return "a communicator"
	}
	return fmt.Sprintf("communicator %q", c.opt.Name)
}

// EachReady calls fn for the groups of the list that have nothing left to wait for.
func (l *lane) EachReady(fn func(*engine.Submission)) {
	c := (*Communicator)(l)
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.list.all() {
		if partOf(s).arrived {
			fn(s)
		}
	}
}
