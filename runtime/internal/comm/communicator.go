// Package comm has communicators. A [Communicator] is one rank's end of a communicator. Package
// collective shows it to programs under the same name.
//
// A communicator is an [engine.Lane]: a queue with a stream and an OS thread of its own, which
// issues groups of collective operations in the order of their submission.
//
//   - communicator.go: the device's part, and making a communicator
//   - options.go: ids, ranks, the rendezvous, and the communicators of several devices
//   - phase.go: the phases of a communicator's life, its failure, aborting
//   - thread.go, list.go, lane.go: the thread, the list of groups, and the lane
//   - watch.go: finding other ranks' failures and groups that take too long
//   - collective.go, element.go: the library calls of an operation
//   - group.go: the part of a submission's record for a group, and the [engine.Action] that issues
//     it
//   - derive.go: splitting and shrinking; suspend.go; memory.go: registered memory; close.go
//   - limits.go: what the library would refuse
package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Package collective documents these errors under the same names.
var (
	ErrAborted   = errors.New("aborted")
	ErrSuspended = errors.New("suspended")
)

// AbortTime is how long the library may take to abort a native communicator and to return from its
// calls.
const AbortTime = 5 * time.Second

// A Device is the part of a device for communicators.
type Device struct {
	Engine *engine.Device
	Memory *memory.Device
	Owner  Owner
}

// An Owner is the device object of the layers above. Its methods must not block.
type Owner interface {
	// NewTimeline makes the timeline of a communicator. The Rest of its records is a [Record].
	NewTimeline() *engine.Timeline

	// CommunicatorFailed is called when a communicator fails, with the error that Options.NewError
	// made. It is not called if the communicator fails because it is closed, or if the device is
	// lost. The caller may hold the mu of the communicator's timeline.
	CommunicatorFailed(err error)

	// FailOwed fails the semaphores that a group was to signal. It is called if the library does
	// not return from issuing the group.
	FailOwed(tl *engine.Timeline, err error, owed []*sema.Semaphore)
}

// A Communicator is one rank's end of a communicator.
type Communicator struct {
	dev    *Device
	comms  driver.Comms
	comm   driver.Comm
	limits limits
	opt    Options // the thread sets Rank and Count under mu before New returns
	tl     *engine.Timeline
	memory memories

	// deriveMu protects the native communicator: only one call at a time splits, shrinks, suspends,
	// resumes or closes it.
	deriveMu sync.Mutex
	// mu protects comm, opt.Rank, opt.Count and fields of the two structs below. Only the
	// communicator's thread changes comm, and it reads comm without mu. While mu is held, the
	// timeline's ring.mu may be locked, and the driver's CommError called.
	mu sync.Mutex
	issuing
	life
}

// comms returns the driver's interface for communicators, or an error if there is none.
func (d *Device) comms(op string) (driver.Comms, error) {
	if d == nil || d.Engine == nil {
		return nil, errs.Zero(op, "Device")
	}
	if err := d.Engine.Failed(); err != nil {
		return nil, err
	}
	if d.Engine.Caps.Comms {
		if c, ok := d.Engine.Native.(driver.Comms); ok {
			return c, nil
		}
	}
	return nil, fmt.Errorf("gpu: %s: communicators on %s: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
}

// newCommunicator makes a communicator. It calls the function begin on the new communicator's
// thread, to begin making the native communicator. If begin returns neither a native communicator
// nor an error, newCommunicator returns nil, and an error only if closing the communicator fails.
func (d *Device) newCommunicator(ctx context.Context, o Options, parent *Communicator, begin func(driver.Comms) (driver.Comm, error)) (*Communicator, error) {
	comms, err := d.comms("communicator")
	if err != nil {
		return nil, err
	}
	// Keep the device open during this call. Otherwise the new communicator's thread could call the
	// driver after the device has been closed.
	if err := d.Engine.Stay(); err != nil {
		return nil, err
	}
	defer d.Engine.Leave()
	c := &Communicator{dev: d, comms: comms, opt: o,
		issuing: issuing{thread: wake.NewThread(&d.Engine.Waits)}}
	c.life.init()
	c.watch.look = c.look
	c.tl = d.Owner.NewTimeline()
	c.tl.Lane = (*lane)(c)
	started := make(chan error, 1)
	go c.run(started)
	if err := <-started; err != nil {
		<-c.entered[isEnded]
		return nil, fmt.Errorf("gpu: communicator on %s: %w", d.Engine.Info.Name, err)
	}
	err = d.Engine.AddLane((*lane)(c), c.tl)
	made := false
	if err == nil {
		made, err = c.make(ctx, parent, begin)
	}
	if made {
		return c, nil
	}
	d.Engine.Check(err)
	// The driver may have to abort the parent to abort this communicator.
	if err != nil && parent != nil && c.handle() != 0 {
		parent.fail(fmt.Errorf("a communicator that was to be made of it was given up: %w", err))
	}
	c.fail(errors.Join(err, errs.ErrClosed))
	late, cancel := context.WithTimeout(context.Background(), AbortTime)
	defer cancel()
	if end := c.Shutdown(late); end != nil {
		err = errors.Join(err, end)
	}
	if err != nil {
		of := "rank"
		if parent != nil {
			of = "made of rank"
		}
		return nil, fmt.Errorf("gpu: communicator on %s: %s %d of %d: %w", d.Engine.Info.Name, of, o.Rank, o.Count, err)
	}
	return nil, nil
}

// make makes the native communicator. It returns false and no error if begin returns neither a
// native communicator nor an error. If the device is closed while make runs, the communicator is
// closed and its native communicator is destroyed.
func (c *Communicator) make(ctx context.Context, parent *Communicator, begin func(driver.Comms) (driver.Comm, error)) (made bool, err error) {
	var h driver.Comm
	err = c.do(func() (err error) {
		h, err = begin(c.comms)
		c.mu.Lock()
		c.comm = h
		c.mu.Unlock()
		return err
	})
	if err != nil || h == 0 {
		return false, err
	}
	var pauses wake.Pauses
	for {
		ready := false
		err := c.do(func() (err error) {
			if err = c.failed(); err == nil { // otherwise h may have been destroyed
				ready, err = c.comms.CommReady(h)
			}
			return err
		})
		if f := c.failed(); f != nil {
			return false, f
		}
		if ready && err == nil {
			break
		}
		// The parent's failure ends this communicator as well.
		if parent != nil && parent.phase() != isShrinking && parent.failed() != nil {
			why := fmt.Errorf("the communicator that it is made of: %w", parent.failed())
			if err != nil {
				why = fmt.Errorf("%w: %w", why, err)
			}
			return false, why
		}
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("%s: %w", c.missing(h), context.Cause(ctx))
		}
		pauses.Pause(ctx.Done())
	}
	err = c.do(func() error {
		if err := c.failed(); err != nil {
			return err
		}
		rank, count, err := c.comms.CommRank(h)
		if err != nil {
			return err
		}
		c.limits.of, _ = c.comms.(driver.CommLimits)
		c.limits.comm = h
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opt.Rank, c.opt.Count = rank, count
		if !c.move(isOpen) {
			return c.failed()
		}
		return nil
	})
	return err == nil, err
}

// missing describes why the creation of a native communicator has not ended.
func (c *Communicator) missing(h driver.Comm) string {
	if m, ok := c.comms.(driver.CommMaking); ok {
		if what := m.CommAwaits(h); what != "" {
			return "it waits for " + what
		}
	}
	return "the other ranks have not all come"
}

// Timeline returns the timeline of the communicator's groups, or nil for a nil or zero
// Communicator.
func (c *Communicator) Timeline() *engine.Timeline {
	if c == nil {
		return nil
	}
	return c.tl
}

// isZero reports whether the communicator is nil, or a zero value, which belongs to no device.
func (c *Communicator) isZero() bool { return c == nil || c.dev == nil }

// Rank returns the rank of this end, or 0 for a nil Communicator.
func (c *Communicator) Rank() int {
	if c == nil {
		return 0
	}
	return c.opt.Rank
}

// Count returns how many ranks there are, or 0 for a nil Communicator.
func (c *Communicator) Count() int {
	if c == nil {
		return 0
	}
	return c.opt.Count
}

// Abort fails the communicator with an error that is ErrAborted and wraps err, if err is not nil.
func (c *Communicator) Abort(err error) {
	if c.isZero() {
		return
	}
	if err == nil {
		err = ErrAborted
	} else {
		err = fmt.Errorf("%w: %w", ErrAborted, err)
	}
	c.fail(err)
}
