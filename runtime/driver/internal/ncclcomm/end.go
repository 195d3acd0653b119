package ncclcomm

import (
	"errors"
	"runtime"
	"time"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// CommError returns the error of an aborted or failed rank. For any other rank it asks the library
// about the communicator ops, or about base until ops is made. If neither is made, CommError
// returns nil.
func (c *Comms) CommError(h driver.Comm) error {
	r, err := c.find(h)
	if err == nil {
		err = r.fault()
	}
	if err != nil {
		return c.failComm("comm error", h, err)
	}
	return nil
}

func (r *rank) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.aborted {
		return errAborted
	}
	if r.err != nil {
		return r.err
	}
	x := r.ops
	if x == 0 {
		x = r.base
	}
	if x == 0 {
		return nil
	}
	_, err := poll(r.lib, x)
	return err
}

// AbortComm aborts base and source, which also ends the work of ops. DestroyComm then releases ops.
// If the rank has only ops, AbortComm aborts ops.
func (c *Comms) AbortComm(h driver.Comm) error {
	r, err := c.find(h)
	if err == nil {
		err = c.end(r)
	}
	if err != nil {
		return c.failComm("abort comm", h, err)
	}
	return nil
}

// end aborts a rank. If the rank is still being split or shrunk from another rank, end aborts that
// rank too.
func (c *Comms) end(r *rank) error {
	r.mu.Lock()
	if r.aborted {
		r.mu.Unlock()
		return nil
	}
	if from := r.from; from != nil {
		from.mu.Lock()
		if from.look(); r.by.done { // the split is complete, so the ranks are independent
			if r.by.err == nil {
				r.base = *r.by.child
			}
			r.from = nil
		}
		from.mu.Unlock()
	}
	r.look() // if a split of source is complete, the new communicator is kept
	r.aborted = true
	close(r.abort)
	list := []nccl.Comm{r.source, r.base}
	if r.base == 0 && r.stage == made {
		list = append(list, r.ops)
		r.ops = 0
	}
	r.source, r.base = 0, 0
	from, off := r.from, r.off
	r.mu.Unlock()
	return c.apart(r, func() error {
		defer close(r.ended)
		var parent error
		if from != nil {
			parent = c.end(from)
			<-from.ended
			from.mu.Lock()
			if r.by.done && r.by.err == nil { // the split completed before the abort
				list = append(list, *r.by.child)
			}
			from.mu.Unlock()
		}
		var errs []error
		r.calling.Lock() // on a plain rank, waits for a call of the library to return, which the call does soon
		for _, x := range list {
			errs = append(errs, r.drop(x))
		}
		r.calling.Unlock()
		if err := errors.Join(errs...); err != nil {
			c.lib.keep(r)
			return errors.Join(parent, err)
		}
		if off != nil { // after the abort the library does not write to child any more
			errs = append(errs, r.drop(*off.child))
		}
		r.mu.Lock()
		r.settle(errAborted)
		r.mu.Unlock()
		return errors.Join(parent, errors.Join(errs...), r.dropPartial())
	})
}

// drop aborts one of the library's communicators.
func (r *rank) drop(x nccl.Comm) error {
	if x == 0 {
		return nil
	}
	if err := pending(r.lib.CommAbort(x)); err != nil {
		return explain(r.lib, err)
	}
	return nil
}

// abandon ends a rank that no caller has a handle of.
func (c *Comms) abandon(r *rank) error { return errors.Join(c.end(r), c.release(r)) }

// DestroyComm releases a rank. If another call is using the rank, DestroyComm only returns an
// error. Otherwise the rank's handle is invalid afterwards, even after an error.
func (c *Comms) DestroyComm(h driver.Comm) error {
	const op = "destroy comm"
	r, err := c.find(h)
	if err == nil {
		r.mu.Lock()
		switch {
		case r.closing:
			err = errClosing
		case r.inside:
			err = errOccupied
		}
		r.closing = r.closing || err == nil
		whole := r.stage == made && !r.shrunk
		r.mu.Unlock()
		if err == nil {
			defer c.remove(r)
			if r.shrunk {
				r.idle() // wait for the rank that ShrinkComm is making
			}
			if !whole {
				err = c.end(r)
			}
			err = errors.Join(err, c.release(r))
		}
	}
	if err != nil {
		return c.failComm(op, h, err)
	}
	return nil
}

// dropPartial aborts the communicators that failed splits have left. source must be released
// before.
func (r *rank) dropPartial() error {
	var errs []error
	for _, x := range take(r, &r.partial) {
		errs = append(errs, r.drop(x))
	}
	return errors.Join(errs...)
}

// release destroys the communicators that a rank still has: ops, then source, then base. If the
// rank was aborted, release aborts them instead.
func (c *Comms) release(r *rank) error {
	return c.apart(r, func() error {
		var errs []error
		if x, yes := r.isSuspended(); yes && !r.isAborted() {
			if err := r.resume(x); err != nil && !r.isAborted() {
				errs = append(errs, err, c.end(r))
			}
		}
		if r.idle() == nil {
			errs = append(errs, r.forgetAll())
		}
		for _, x := range []*nccl.Comm{&r.ops, &r.source, &r.base} {
			errs = append(errs, r.free(take(r, x)))
		}
		if r.isAborted() {
			<-r.ended
		}
		return errors.Join(append(errs, r.dropPartial())...)
	})
}

// free finalizes and destroys a communicator that nothing uses any more. If the rank was aborted,
// or finalizing fails, free aborts the communicator.
func (r *rank) free(x nccl.Comm) error {
	if x == 0 {
		return nil
	}
	var err error
	if r.has.finalize && !r.isAborted() {
		err = pending(r.lib.CommFinalize(x))
		done := false
		for p := pause(0); err == nil && !done && !r.isAborted(); p.wait() {
			done, err = poll(r.lib, x)
		}
	}
	switch {
	case r.isAborted(): // then an error of the library is expected
		<-r.ended
		return r.drop(x)
	case err != nil:
		return errors.Join(explain(r.lib, err), r.drop(x))
	}
	if err := pending(r.lib.CommDestroy(x)); err != nil {
		return explain(r.lib, err)
	}
	return nil
}

// apart runs f on another thread with the device current, and waits for f. After the rank is
// aborted, apart waits only for the duration c.patience, and returns errLeft if f is still running
// then.
func (c *Comms) apart(r *rank, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := errors.Join(c.host.Bind(), f())
		if c.host.Bind() == nil && c.host.Unbind() == nil {
			runtime.UnlockOSThread() // otherwise the thread stays locked and ends with the goroutine
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-r.abort:
	}
	t := time.NewTimer(c.patience)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return errLeft
	}
}
