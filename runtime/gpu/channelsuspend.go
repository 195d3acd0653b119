package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// ChannelStats is how much device memory a channel's communicator uses, in bytes, without
// registered buffers.
type ChannelStats = driver.CommStats

// errSuspended is the error of a suspended channel, which takes no groups.
var errSuspended = fmt.Errorf("gpu: channel: resume it before: %w", ErrSuspended)

// Stats returns how much memory the channel's communicator uses (C: ncclCommMemStats). It blocks
// until the channel's thread has queried the library. The thread may be blocked in a group until
// other ranks come. If the library cannot tell, the error is [driver.ErrUnsupported].
func (c *Channel) Stats() (ChannelStats, error) {
	lib, err := c.suspension("stats")
	if err != nil {
		return ChannelStats{}, err
	}
	var s ChannelStats
	err = c.do(func() (err error) {
		if err = c.failed(); err == nil {
			s, err = lib.CommStats(c.comm)
		}
		return err
	})
	if err != nil {
		return ChannelStats{}, fmt.Errorf("gpu: channel on %s: stats: %w", c.dev.native.Info.Name, err)
	}
	return s, nil
}

// Suspend releases device memory that the channel does not need until [Channel.Resume], and keeps
// its connections (C: ncclCommSuspend). All ranks must call it. Suspend waits for earlier
// operations of the channel, for the other ranks and, because the library does, for all work of the
// device. It waits until the context ends. From the call on, the channel accepts no groups, memory
// or windows: they fail with [ErrSuspended] or the driver's error. Executions of recordings with
// groups fail too. Registered memory stays registered, and cannot be released meanwhile.
//
// If the context ends before this rank has begun, the channel is as it was. If the context ends
// when others have not come, or the library fails, the channel fails. Closing a suspended channel
// resumes it first, because the library could not release it completely otherwise. So all ranks
// must then close or resume theirs. A channel that is aborted while it is suspended leaks some of
// its memory until the process ends.
//
// NCCL supports this from 2.30.3 on, and only for channels made with [ChannelOptions.Plain], which
// share their memory with no other communicator. Otherwise the error is [driver.ErrUnsupported],
// and the channel remains usable.
func (c *Channel) Suspend(ctx context.Context) error {
	lib, err := c.suspension("suspend")
	if err == nil && ctx == nil {
		err = errs.Argument("suspend", "no context")
	}
	if err != nil {
		return err
	}
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if c.phase() == channelSuspended {
		return fmt.Errorf("gpu: channel on %s: suspend: it is: %w", c.dev.native.Info.Name, ErrSuspended)
	}
	c.to(channelSuspended)
	if err = c.idle(ctx); err == nil {
		err = c.call(ctx, lib.SuspendComm)
	}
	if err != nil {
		c.to(channelOpen) // does nothing if the channel has failed
		return fmt.Errorf("gpu: channel on %s: suspend rank %d of %d: %w", c.dev.native.Info.Name, c.rank, c.count, err)
	}
	return nil
}

// Resume allocates the memory of a suspended channel again, after which the channel works as before
// (C: ncclCommResume). All ranks must call it. It waits for them until the context ends. If the
// context ends when others have not come, or there is not enough memory, the channel fails: free
// memory before. If the channel is not suspended, the error is [ErrArgument].
func (c *Channel) Resume(ctx context.Context) error {
	lib, err := c.suspension("resume")
	if err == nil && ctx == nil {
		err = errs.Argument("resume", "no context")
	}
	if err != nil {
		return err
	}
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if err = c.failed(); err == nil && c.phase() != channelSuspended {
		return errs.Argument("resume", "the channel is not suspended")
	}
	if err == nil {
		err = c.call(ctx, lib.ResumeComm)
	}
	if err != nil {
		return fmt.Errorf("gpu: channel on %s: resume rank %d of %d: %w", c.dev.native.Info.Name, c.rank, c.count, err)
	}
	c.to(channelOpen)
	return nil
}

// suspension returns the driver's interface for suspending communicators.
func (c *Channel) suspension(op string) (driver.CommSuspension, error) {
	if c.dev == nil {
		return nil, errs.ErrZero
	}
	if lib, ok := c.comms.(driver.CommSuspension); ok {
		return lib, nil
	}
	return nil, fmt.Errorf("gpu: channel on %s: %s: the driver's communicators are no driver.CommSuspension: %w", c.dev.native.Info.Name, op, driver.ErrUnsupported)
}

// call runs f, which suspends or resumes the communicator, on the channel's thread. If the library
// fails, the channel fails, because the state of its memory is unknown.
func (c *Channel) call(ctx context.Context, f func(driver.Comm) error) error {
	_, err := c.begin(ctx, func() (driver.Comm, error) {
		err := f(c.comm)
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			c.dev.native.Check(err)
			c.fail(err)
		}
		return 0, err
	})
	if failed := c.Err(); err != nil && failed != nil { // the channel's failure is the reason
		return failed
	}
	return err
}
