package comm

import (
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// errSuspended is the error of a suspended communicator, which takes no groups.
var errSuspended = fmt.Errorf("gpu: communicator: resume it before: %w", ErrSuspended)

// Stats returns how much device memory the native communicator uses. It blocks until the
// communicator's thread has queried the library.
func (c *Communicator) Stats() (driver.CommStats, error) {
	lib, err := c.suspension("stats")
	if err != nil {
		return driver.CommStats{}, err
	}
	var s driver.CommStats
	err = c.do(func() (err error) {
		if err = c.failed(); err == nil {
			s, err = lib.CommStats(c.comm)
		}
		return err
	})
	if err != nil {
		return driver.CommStats{}, fmt.Errorf("gpu: communicator on %s: stats: %w", c.dev.Engine.Info.Name, err)
	}
	return s, nil
}

// Suspend releases device memory that the communicator does not need until Resume. It waits for
// earlier operations, for the other ranks, and for all work of the device, until the context ends.
// If the context ends before the library is called, the communicator is unchanged. If the context
// ends during the call, the communicator fails.
func (c *Communicator) Suspend(ctx context.Context) error {
	lib, err := c.suspension("suspend")
	if err == nil && ctx == nil {
		err = errs.Argument("suspend", "no context")
	}
	if err != nil {
		return err
	}
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if c.phase() == isSuspended {
		return fmt.Errorf("gpu: communicator on %s: suspend: it is: %w", c.dev.Engine.Info.Name, ErrSuspended)
	}
	c.to(isSuspended)
	if err = c.idle(ctx); err == nil {
		err = c.call(ctx, lib.SuspendComm)
	}
	if err != nil {
		c.to(isOpen) // takes groups again, unless the communicator has failed
		return fmt.Errorf("gpu: communicator on %s: suspend rank %d of %d: %w", c.dev.Engine.Info.Name, c.opt.Rank, c.opt.Count, err)
	}
	return nil
}

// Resume allocates the memory of a suspended communicator again. It waits for the other ranks until
// the context ends. If the context ends before the library is called, the communicator stays
// suspended. If the context ends during the call, or there is not enough memory, the communicator
// fails.
func (c *Communicator) Resume(ctx context.Context) error {
	lib, err := c.suspension("resume")
	if err == nil && ctx == nil {
		err = errs.Argument("resume", "no context")
	}
	if err != nil {
		return err
	}
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if err = c.failed(); err == nil && c.phase() != isSuspended {
		return errs.Argument("resume", "the communicator is not suspended")
	}
	if err == nil {
		err = c.call(ctx, lib.ResumeComm)
	}
	if err != nil {
		return fmt.Errorf("gpu: communicator on %s: resume rank %d of %d: %w", c.dev.Engine.Info.Name, c.opt.Rank, c.opt.Count, err)
	}
	c.to(isOpen)
	return nil
}

// suspension returns the driver's interface for suspending communicators.
func (c *Communicator) suspension(op string) (driver.CommSuspension, error) {
	if c.isZero() {
		return nil, errs.Zero(op, "Communicator")
	}
	if lib, ok := c.comms.(driver.CommSuspension); ok {
		return lib, nil
	}
	return nil, fmt.Errorf("gpu: communicator on %s: %s: the driver's communicators are no driver.CommSuspension: %w", c.dev.Engine.Info.Name, op, driver.ErrUnsupported)
}

// call runs f, which suspends or resumes the native communicator, on the communicator's thread. If
// f returns an error other than ErrUnsupported, the communicator fails, because the state of the
// communicator's memory is unknown.
func (c *Communicator) call(ctx context.Context, f func(driver.Comm) error) error {
	_, err := c.begin(ctx, func() (driver.Comm, error) {
		err := f(c.comm)
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			c.dev.Engine.Check(err)
			c.fail(err)
		}
		return 0, err
	})
	if failed := c.Err(); err != nil && failed != nil {
		// Return the cause and not an error that follows from it.
		return failed
	}
	return err
}
