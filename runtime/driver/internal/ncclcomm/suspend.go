package ncclcomm

import (
	"fmt"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// since2_30 is the first release with which SuspendComm works. 2.29.7 has ncclCommSuspend and
// ncclCommResume too, but they block until all ranks have called them, even on a nonblocking
// communicator, and the wait cannot be aborted. With several ranks in one process, that release
// also frees memory twice.
const since2_30 = dl.Version(23003)

// CommStats queries rank.ops. The result includes the memory of rank.base and rank.source.
func (c *Comms) CommStats(h driver.Comm) (s driver.CommStats, err error) {
	r, x, err := c.enterAnyway(h)
	if err == nil {
		s, err = r.stats(x)
		err = r.leave(err)
	}
	if err != nil {
		return driver.CommStats{}, c.failComm("comm stats", h, err)
	}
	return s, nil
}

func (r *rank) stats(x nccl.Comm) (s driver.CommStats, err error) {
	ask := func(what nccl.CommMemStat) (n uint64) {
		if err == nil {
			err = r.call(func() (err error) {
				n, err = r.lib.CommMemStats(x, what)
				return err
			})
		}
		return n
	}
	s.Persistent, s.Suspendable = ask(nccl.StatGpuMemPersist), ask(nccl.StatGpuMemSuspend)
	s.Suspended = ask(nccl.StatGpuMemSuspended) != 0
	return s, r.without(err)
}

// SuspendComm suspends rank.ops. The rank must be plain, so that it has no other communicators.
func (c *Comms) SuspendComm(h driver.Comm) error { return c.rest("suspend comm", h, (*rank).suspend) }

// ResumeComm resumes rank.ops.
func (c *Comms) ResumeComm(h driver.Comm) error { return c.rest("resume comm", h, (*rank).resume) }

func (c *Comms) rest(op string, h driver.Comm, f func(*rank, nccl.Comm) error) error {
	r, x, err := c.enterAnyway(h)
	if err == nil {
		err = r.leave(f(r, x))
	}
	if err != nil {
		return c.failComm(op, h, err)
	}
	return nil
}

func (r *rank) suspend(x nccl.Comm) error {
	switch have := r.lib.Version(); {
	case !r.lib.HasSymbol("ncclCommSuspend"):
		return unsupported{r.lib.CommSuspend(0, 0)} // calling the missing function makes the error
	case have != 0 && have < since2_30:
		return unsupported{fmt.Errorf("ncclCommSuspend of release %s cannot be aborted: %s or a newer one is needed",
			nccl.FormatVersion(have), nccl.FormatVersion(since2_30))}
	case !r.plain:
		return errShares
	case r.suspended:
		return errSuspended
	}
	err := r.call(func() error { return r.lib.CommSuspend(x, nccl.SuspendMem) })
	if err == nccl.ErrorInvalidUsage { // the library has refused the call, and suspended nothing
		return r.without(err)
	}
	return r.settled(x, err, true)
}

func (r *rank) resume(x nccl.Comm) error {
	if !r.suspended {
		return fmt.Errorf("it is not suspended: %w", nccl.ErrorInvalidUsage)
	}
	return r.settled(x, r.call(func() error { return r.lib.CommResume(x) }), false)
}

// settled waits until the library has suspended or resumed r.ops. After an error the rank becomes
// unusable, because nobody knows which memory it still has.
func (r *rank) settled(x nccl.Comm, err error, suspended bool) error {
	if err == nccl.ErrorInProgress {
		err = r.wait(x)
	} else if err != nil {
		err = explain(r.lib, err)
	}
	err = outOfMemory(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended = suspended && err == nil; err != nil {
		r.stage, r.err = failed, err
	}
	return err
}

// without makes err match ErrUnsupported if the library keeps no account of memory, or lacks
// ncclCommMemStats.
func (r *rank) without(err error) error {
	switch {
	case err == nil:
		return nil
	case err == nccl.ErrorInvalidUsage || !r.lib.HasSymbol("ncclCommMemStats"):
		return unsupported{explain(r.lib, err)}
	}
	return explain(r.lib, err)
}

// isSuspended returns r.ops, and whether the rank is suspended.
func (r *rank) isSuspended() (nccl.Comm, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops, r.suspended
}
