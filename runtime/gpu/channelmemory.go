package gpu

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// ChannelMemory is a buffer of kind [CommMem] that is registered with a channel, so that the
// channel's operations need no copies. In one operation, either all ranks use registered memory or
// none does. The registration ends with Close or with the channel.
type ChannelMemory struct {
	c      *Channel
	b      *memory.Buffer
	h      driver.CommMemory
	window bool
}

// memories are the registrations of a channel.
type memories struct {
	mu   sync.Mutex
	live map[*ChannelMemory]struct{}
}

func (l *memories) add(m *ChannelMemory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*ChannelMemory]struct{}{}
	}
	l.live[m] = struct{}{}
}

// remove removes a registration, and reports false if it is gone already.
func (l *memories) remove(m *ChannelMemory) bool {
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

// Register registers a buffer with the channel for this rank alone. It blocks until the channel's
// thread has done that. The thread may be blocked in a group until other ranks come.
func (c *Channel) Register(b *Buffer) (*ChannelMemory, error) {
	if err := c.registers("register", b.in()); err != nil {
		return nil, err
	}
	return c.register("register", b.in(), false, func() (driver.CommMemory, error) {
		return c.comms.RegisterComm(c.comm, b.in().Addr(), b.Size())
	})
}

// NewWindow registers a buffer with the channel on all ranks at once. The buffers must have the
// same size. With symmetric, the caller promises that operations use the same offsets on all ranks,
// which enables more optimizations in the library. NewWindow waits for the other ranks. If the
// context ends before they have come, the channel is aborted.
func (c *Channel) NewWindow(ctx context.Context, b *Buffer, symmetric bool) (*ChannelMemory, error) {
	if err := c.registers("window", b.in()); err != nil { // an error here leaves the channel as it is
		return nil, err
	}
	if ctx == nil {
		return nil, errs.Argument("window", "no context")
	}
	stop := context.AfterFunc(ctx, func() { c.fail(fmt.Errorf("a window was not made in time: %w", ctx.Err())) })
	defer stop()
	return c.register("window", b.in(), true, func() (driver.CommMemory, error) {
		return c.comms.NewWindow(c.comm, b.in().Addr(), b.Size(), symmetric)
	})
}

// registers returns why the buffer cannot be registered, or nil.
func (c *Channel) registers(op string, b *memory.Buffer) error {
	switch {
	case c.dev == nil:
		return errs.ErrZero
	case b == nil || b.Device() != c.dev.mem():
		return errs.Argument(op, "no buffer, or one of another device")
	case b.Kind() != CommMem || b.Size() == 0:
		return errs.Argument(op, "the buffer is not of kind CommMem, or empty")
	}
	return nil
}

func (c *Channel) register(op string, b *memory.Buffer, window bool, fn func() (driver.CommMemory, error)) (*ChannelMemory, error) {
	if err := b.Hold(); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	m := &ChannelMemory{c: c, b: b, window: window}
	// The reference to the buffer: either the thread takes it, and the library may block the thread
	// with it, or this call takes it back.
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
		return nil, fmt.Errorf("gpu: %s of %d bytes on %s: %w", op, b.Size(), c.dev.native.Info.Name, err)
	}
	return m, nil
}

// Close ends the registration; a window's on all ranks. It waits until the channel is idle, since
// groups may use the memory, or until the channel fails. Closing again, or after the channel, does
// nothing. If the channel has failed, or its library returns an error, the memory stays registered
// until the channel is closed. If the buffer is closed before, its memory is freed then.
func (m *ChannelMemory) Close() error {
	if m == nil || m.c == nil {
		return nil
	}
	m.c.idle(context.Background()) // an error means that the channel has failed
	err := m.c.do(func() error {
		if m.c.failed() == nil && m.c.phase() == channelSuspended {
			return errSuspended // the library still has the memory registered
		}
		// If the channel has failed, the registration ends with the communicator.
		if m.c.Err() != nil || !m.c.memory.remove(m) {
			return nil
		}
		if err := m.c.comms.ReleaseCommMemory(m.c.comm, m.h); err != nil {
			// The library may still have the memory, as while it is suspended: then the
			// registration ends with the communicator, too.
			m.c.memory.add(&ChannelMemory{b: m.b})
			return err
		}
		m.b.Release()
		return nil
	})
	if err != nil && m.c.failed() == nil {
		return fmt.Errorf("gpu: channel memory of %d bytes: %w", m.b.Size(), err)
	}
	return nil
}
