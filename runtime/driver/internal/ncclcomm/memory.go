package ncclcomm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A memory is a registration by RegisterComm or NewWindow. handle and window are both 0 if the
// library has returned neither.
type memory struct {
	handle uintptr     // set by RegisterComm
	window nccl.Window // set by NewWindow
	all    bool        // NewWindow has made the registration, on all ranks
}

// MemAlloc allocates memory of kind driver.CommMem. Its error is not yet a driver.Error.
func (c *Comms) MemAlloc(size uint64) (driver.Ptr, error) {
	lib, err := c.lib.get()
	if err != nil {
		return 0, err
	}
	p, err := lib.MemAlloc(size)
	if err == nil {
		return driver.Ptr(p), nil
	}
	return 0, outOfMemory(explain(lib, err))
}

// outOfMemory adds ErrOutOfMemory to errors whose text says so, because the library has no code for
// that error.
func outOfMemory(err error) error {
	if err != nil && strings.Contains(err.Error(), "out of memory") {
		err = fmt.Errorf("%w: %w", driver.ErrOutOfMemory, err)
	}
	return err
}

// MemFree frees memory of MemAlloc. Its error is not yet a driver.Error.
func (c *Comms) MemFree(p driver.Ptr) error {
	lib, err := c.lib.get()
	if err != nil {
		return err
	}
	if err := lib.MemFree(nccl.DevicePtr(p)); err != nil {
		return explain(lib, err)
	}
	return nil
}

// RegisterComm registers memory with ops.
func (c *Comms) RegisterComm(h driver.Comm, p driver.Ptr, size uint64) (driver.CommMemory, error) {
	return c.register("register comm", h, p, size, func(r *rank, x nccl.Comm) (m memory, err error) {
		err = r.call(func() (err error) {
			m.handle, err = r.lib.CommRegister(x, nccl.DevicePtr(p), size)
			return err
		})
		return m, err
	})
}

// NewWindow registers memory with ops, on all ranks.
func (c *Comms) NewWindow(h driver.Comm, p driver.Ptr, size uint64, symmetric bool) (driver.CommMemory, error) {
	return c.register("new window", h, p, size, func(r *rank, x nccl.Comm) (memory, error) {
		flags := int32(nccl.WinDefault)
		if symmetric {
			flags = nccl.WinCollSymmetric
		}
		w := new(nccl.Window)
		r.window = w
		err := r.call(func() error { return r.lib.CommWindowRegister(x, nccl.DevicePtr(p), size, w, flags) })
		if err == nccl.ErrorInProgress {
			err = r.wait(x)
		}
		return memory{window: *w, all: true}, err
	})
}

func (c *Comms) register(op string, h driver.Comm, p driver.Ptr, size uint64, f func(*rank, nccl.Comm) (memory, error)) (driver.CommMemory, error) {
	var m driver.CommMemory
	r, x, err := c.enter(h)
	if err == nil {
		m, err = r.remember(f(r, x))
		err = r.leave(err)
	}
	if err != nil {
		return 0, c.fail(op, err, "%d bytes at %#x with communicator %d", size, uint64(p), h)
	}
	return m, nil
}

// remember stores a registration and returns its handle.
func (r *rank) remember(m memory, err error) (driver.CommMemory, error) {
	if err != nil {
		return 0, explain(r.lib, err)
	}
	if r.memory == nil {
		r.memory = map[driver.CommMemory]memory{}
	}
	r.lastMemory++
	r.memory[r.lastMemory] = m
	return r.lastMemory, nil
}

// ReleaseCommMemory undoes a registration with ops.
func (c *Comms) ReleaseCommMemory(h driver.Comm, m driver.CommMemory) error {
	r, x, err := c.enter(h)
	if err == nil {
		what, ok := r.memory[m]
		delete(r.memory, m)
		if ok {
			err = r.forget(x, what)
		} else {
			err = fmt.Errorf("no such registration, or it was released: %w", nccl.ErrorInvalidArgument)
		}
		err = r.leave(err)
	}
	if err != nil {
		return c.fail("release comm memory", err, "registered memory %d of communicator %d", m, h)
	}
	return nil
}

func (r *rank) forget(x nccl.Comm, m memory) (err error) {
	err = r.call(func() error {
		switch {
		case m.all && m.window != 0:
			return r.lib.CommWindowDeregister(x, m.window)
		case m.handle != 0:
			return r.lib.CommDeregister(x, m.handle)
		}
		return nil
	})
	if err != nil {
		return explain(r.lib, err)
	}
	return nil
}

// forgetAll undoes the registrations that are left. No other call may use ops any more. If the rank
// was aborted, forgetAll does not call the library, because the abort releases the registrations.
func (r *rank) forgetAll() error {
	var errs []error
	for m := range r.lastMemory {
		if what, ok := r.memory[m+1]; ok && !r.isAborted() {
			errs = append(errs, r.forget(r.ops, what))
		}
	}
	r.memory = nil
	return errors.Join(errs...)
}
