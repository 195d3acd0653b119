package collective

import (
	"context"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Stats says how much device memory a communicator uses, in bytes, without registered buffers.
type Stats = driver.CommStats

// Stats returns how much memory the communicator uses (C: ncclCommMemStats). It blocks until the
// communicator's thread has queried the library. The thread may be blocked in a group until other
// ranks come. If the library cannot report the memory, the error is [gpu.ErrUnsupported].
func (c *Communicator) Stats() (Stats, error) { return c.in().Stats() }

// Suspend releases device memory of the communicator until [Communicator.Resume], and keeps the
// connections (C: ncclCommSuspend). All ranks must call Suspend. Suspend waits for earlier
// operations of the communicator and for the other ranks, at most until the context ends. The
// library also waits for all work of the device. After the call has begun, the communicator accepts
// no groups, and registers no memory or windows: an attempt fails with [ErrSuspended] or the
// driver's error. Executions of recordings with groups fail too. Registered memory stays
// registered, and [Memory.Close] returns [ErrSuspended].
//
// If the context ends while Suspend waits for earlier operations, the communicator accepts groups
// again. If the context ends later and before all ranks have called Suspend, or the library fails,
// the communicator fails. Closing a suspended communicator resumes it first, because the library
// could not release it completely otherwise. So if one rank closes its Communicator, all other
// ranks must close or resume theirs. A communicator that is aborted while it is suspended leaks
// some of its memory until the process ends.
//
// NCCL supports Suspend from version 2.30.3 on, and only for communicators made with
// [Options.Plain], because such a communicator shares its memory with no other communicator.
// Otherwise the error is [gpu.ErrUnsupported], and the communicator remains usable.
func (c *Communicator) Suspend(ctx context.Context) error { return c.in().Suspend(ctx) }

// Resume allocates the memory of a suspended communicator again. Then the communicator works as
// before (C: ncclCommResume). All ranks must call Resume. Resume waits for the other ranks until
// the context ends. If the context ends during this wait, or the library fails, the communicator
// fails. The library needs free memory: free enough of it first. If the communicator is not
// suspended, the error is [gpu.ErrArgument].
func (c *Communicator) Resume(ctx context.Context) error { return c.in().Resume(ctx) }
