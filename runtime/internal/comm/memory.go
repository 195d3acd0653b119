package comm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// A Memory is a buffer of kind CommMem that is registered with a communicator, so that the
// communicator's operations need no copies. The registration ends with Close or with the
// communicator.
type Memory struct {
	c      *Communicator
	b      *memory.Buffer
	h      driver.CommMemory
	window bool
}

// memories is the set of buffers that are registered with a communicator.
type memories struct {
	mu   sync.Mutex
	live map[*Memory]struct{}
}

func (l *memories) add(m *Memory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*Memory]struct{}{}
	}
	l.live[m] = struct{}{}
}

// remove removes a registration, and reports false if it is gone already.
func (l *memories) remove(m *Memory) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.live[m]
	delete(l.live, m)
	return ok
}

// over releases all buffers after the library has released the registrations.
func (l *memories) over() {
	l.mu.Lock()
	live := l.live
	l.live = nil
	l.mu.Unlock()
	for m := range live {
		m.b.Release()
	}
}

// Register registers a buffer with the communicator for this rank alone. It blocks until the
// communicator's thread has registered the buffer.
func (c *Communicator) Register(b *memory.Buffer) (*Memory, error) {
	if err := c.registers("register", b); err != nil {
		return nil, err
	}
	return c.register("register", b, false, func() (driver.CommMemory, error) {
		return c.comms.RegisterComm(c.comm, b.Addr(), b.Size())
	})
}

// NewWindow registers a buffer with the communicator on all ranks at once, and waits for the other
// ranks. If the context ends first, the communicator is aborted.
func (c *Communicator) NewWindow(ctx context.Context, b *memory.Buffer, symmetric bool) (*Memory, error) {
	if err := c.registers("window", b); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, errs.Argument("window", "no context")
	}
	stop := context.AfterFunc(ctx, func() { c.fail(fmt.Errorf("a window was not made in time: %w", ctx.Err())) })
	defer stop()
	return c.register("window", b, true, func() (driver.CommMemory, error) {
		return c.comms.NewWindow(c.comm, b.Addr(), b.Size(), symmetric)
	})
}

// registers returns why the buffer cannot be registered, or nil.
func (c *Communicator) registers(op string, b *memory.Buffer) error {
	switch {
	case c.isZero():
		return errs.Zero(op, "Communicator")
	case b == nil || b.Device() != c.dev.Memory:
		return errs.Argument(op, "no buffer, or one of another device")
	case b.Kind() != driver.CommMem || b.Size() == 0:
		return errs.Argument(op, "the buffer is not of kind CommMem, or empty")
	}
	return nil
}

func (c *Communicator) register(op string, b *memory.Buffer, window bool, fn func() (driver.CommMemory, error)) (*Memory, error) {
	if err := b.Hold(); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	m := &Memory{c: c, b: b, window: window}
	// taken is set by the function below, on the communicator's thread, or by this call after do
	// has returned. Whichever sets taken first owns the reference to the buffer: the function keeps
	// it for a registration that succeeds, and this call releases it.
	var taken atomic.Bool
	err := c.do(func() (err error) {
		if !taken.CompareAndSwap(false, true) {
			return nil
		}
		if err = c.failed(); err == nil {
			m.h, err = fn()
		}
		if err != nil {
			b.Release()
		} else {
			c.memory.add(m)
		}
		return err
	})
	if taken.CompareAndSwap(false, true) {
		b.Release()
	}
	if err != nil {
		if failed := c.Err(); failed != nil {
			err = failed
		}
		return nil, fmt.Errorf("gpu: %s of %d bytes on %s: %w", op, b.Size(), c.dev.Engine.Info.Name, err)
	}
	return m, nil
}

// Close ends the registration. It waits until the communicator is idle or fails. While the
// communicator is suspended, Close returns ErrSuspended and changes nothing. If the communicator
// has failed, or its library returns an error, the memory stays registered until the communicator
// is closed.
func (m *Memory) Close() error {
	if m == nil || m.c == nil {
		return nil
	}
	m.c.idle(context.Background()) // returns an error only if the communicator has failed or is closed
	err := m.c.do(func() error {
		if m.c.failed() == nil && m.c.phase() == isSuspended {
			return errSuspended // the library still has the memory registered
		}
		// If the communicator has failed, the registration ends with the native communicator.
		if m.c.Err() != nil || !m.c.memory.remove(m) {
			return nil
		}
		if err := m.c.comms.ReleaseCommMemory(m.c.comm, m.h); err != nil {
			// The library may still have the memory registered. So memories.over releases the
			// buffer, after the native communicator has been destroyed.
			m.c.memory.add(&Memory{b: m.b})
			return err
		}
		m.b.Release()
		return nil
	})
	if err != nil && m.c.failed() == nil {
		return fmt.Errorf("gpu: communicator memory of %d bytes: %w", m.b.Size(), err)
	}
	return nil
}
