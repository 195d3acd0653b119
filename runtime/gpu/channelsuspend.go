package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// ChannelStats is how much memory of its device a channel's communicator has, in bytes, without what the channel has been told of.
type ChannelStats = driver.CommStats

// errSuspended is why a channel takes no groups for now.
var errSuspended = fmt.Errorf("gpu: channel: resume it before: %w", ErrSuspended)

// Stats asks the library how much memory the channel has (C: ncclCommMemStats). It blocks until the channel's thread has done so, which may
// be busy with a group until other ranks come. Where the library cannot tell the error is [driver.ErrUnsupported].
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

// Suspend gives memory of the device back that the channel does not need until [Channel.Resume], and keeps its connections (C: ncclCommSuspend).
// All ranks must call it. It waits until what was submitted before is done, and as the library does for all work of the device, and for the
// other ranks, until the context ends. From the call on the channel takes no groups, memory or windows: they fail with [ErrSuspended], or the
// driver's error, and executions of recordings with groups fail. What it has been told of stays, and cannot be taken back.
//
// If the context ends before this rank has begun the channel is as it was. If it ends when others have not come, or the library fails, the channel
// fails. Closing a suspended channel resumes it first, for the library could not give it back whole, and so all ranks must close theirs, or resume;
// what is aborted while it is suspended leaves some of its memory to the process's end.
//
// NCCL suspends from 2.30.3 on, and only what was made with [ChannelOptions.Plain], for it shares its memory with no other communicator. Else the
// error is [driver.ErrUnsupported], and the channel goes on.
func (c *Channel) Suspend(ctx context.Context) error {
	lib, err := c.suspension("suspend")
	if err == nil && ctx == nil {
		err = argument("suspend", "no context")
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
		c.to(channelOpen) // if it has not failed
		return fmt.Errorf("gpu: channel on %s: suspend rank %d of %d: %w", c.dev.native.Info.Name, c.rank, c.count, err)
	}
	return nil
}

// Resume takes the memory of a suspended channel again, after which it goes on as before (C: ncclCommResume). All ranks must call it, and it waits
// for them, until the context ends. If it ends when others have not come, or there is not as much memory, the channel fails; free some before.
// Of a channel that is not suspended the error is [ErrArgument].
func (c *Channel) Resume(ctx context.Context) error {
	lib, err := c.suspension("resume")
	if err == nil && ctx == nil {
		err = argument("resume", "no context")
	}
	if err != nil {
		return err
	}
	c.deriveMu.Lock()
	defer c.deriveMu.Unlock()
	if err = c.failed(); err == nil && c.phase() != channelSuspended {
		return argument("resume", "the channel is not suspended")
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

// suspension returns the driver's way to suspend.
func (c *Channel) suspension(op string) (driver.CommSuspension, error) {
	if c.dev == nil {
		return nil, errZero
	}
	if lib, ok := c.comms.(driver.CommSuspension); ok {
		return lib, nil
	}
	return nil, fmt.Errorf("gpu: channel on %s: %s: the driver's communicators are no driver.CommSuspension: %w", c.dev.native.Info.Name, op, driver.ErrUnsupported)
}

// call has the thread suspend or resume the communicator. Of one for which the library has failed nobody knows what memory it has.
func (c *Channel) call(ctx context.Context, f func(driver.Comm) error) error {
	_, err := c.begin(ctx, func() (driver.Comm, error) {
		err := f(c.comm)
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			c.dev.native.Check(err)
			c.fail(err)
		}
		return 0, err
	})
	if failed := c.Err(); err != nil && failed != nil { // which says why
		return failed
	}
	return err
}
