package gpu

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// ChannelMemory is a buffer of kind [CommMem] that a channel has been told of, so that its operations need no copies. In an operation
// all ranks use such memory, or none does. It ends with Close, or with the channel.
type ChannelMemory struct {
	c      *Channel
	b      *Buffer
	h      driver.CommMemory
	window bool
}

// memories are a channel's.
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

// remove reports false if it is not there any more.
func (l *memories) remove(m *ChannelMemory) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.live[m]
	delete(l.live, m)
	return ok
}

// over lets go of all, after the library has.
func (l *memories) over() {
	l.mu.Lock()
	live := l.live
	l.live = nil
	l.mu.Unlock()
	for m := range live {
		m.b.release()
	}
}

// Register tells the channel of a buffer, for this rank alone. It blocks until the channel's thread has done so, which may be
// busy with a group until other ranks come.
func (c *Channel) Register(b *Buffer) (*ChannelMemory, error) {
	if err := c.registers("register", b); err != nil {
		return nil, err
	}
	return c.register("register", b, false, func() (driver.CommMemory, error) {
		return c.comms.RegisterComm(c.comm, b.mem.Ptr, b.mem.Size)
	})
}

// NewWindow tells the channel of a buffer on all ranks at once; the buffers must have the same size. Symmetric promises that
// operations use the same offsets on all ranks, which lets the library do more. It waits for the other ranks; if the context ends before
// they have come the channel is aborted.
func (c *Channel) NewWindow(ctx context.Context, b *Buffer, symmetric bool) (*ChannelMemory, error) {
	if err := c.registers("window", b); err != nil { // which leaves the channel as it is
		return nil, err
	}
	if ctx == nil {
		return nil, argument("window", "no context")
	}
	stop := context.AfterFunc(ctx, func() { c.fail(fmt.Errorf("a window was not made in time: %w", ctx.Err())) })
	defer stop()
	return c.register("window", b, true, func() (driver.CommMemory, error) {
		return c.comms.NewWindow(c.comm, b.mem.Ptr, b.mem.Size, symmetric)
	})
}

// registers returns why the channel cannot be told of a buffer.
func (c *Channel) registers(op string, b *Buffer) error {
	switch {
	case c.dev == nil:
		return errZero
	case b == nil || b.dev != c.dev:
		return argument(op, "no buffer, or one of another device")
	case b.mem.Kind != CommMem || b.mem.Size == 0:
		return argument(op, "the buffer is not of kind CommMem, or empty")
	}
	return nil
}

func (c *Channel) register(op string, b *Buffer, window bool, fn func() (driver.CommMemory, error)) (*ChannelMemory, error) {
	if err := b.hold(); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	m := &ChannelMemory{c: c, b: b, window: window}
	var taken atomic.Bool // what holds the buffer: by the thread, which the library may keep with it, or back
	err := c.do(func() (err error) {
		if !taken.CompareAndSwap(false, true) {
			return nil
		}
		if err = c.failed(); err == nil {
			m.h, err = fn()
		}
		if err != nil {
			b.release()
		} else {
			c.memory.add(m)
		}
		return err
	})
	if taken.CompareAndSwap(false, true) {
		b.release()
	}
	if err != nil {
		if failed := c.Err(); failed != nil {
			err = failed
		}
		return nil, fmt.Errorf("gpu: %s of %d bytes on %s: %w", op, b.mem.Size, c.dev.native.Info.Name, err)
	}
	return m, nil
}

// Close takes the memory back from the channel; a window's on all ranks. It waits until the channel has nothing to do, for groups may use the
// memory, or until it fails. Closing again, or after the channel, does nothing. A channel that has failed, or whose library returns an error, has the memory until it is closed: the
// buffer, if that is closed before, is freed then.
func (m *ChannelMemory) Close() error {
	if m == nil || m.c == nil {
		return nil
	}
	m.c.idle(context.Background()) // an error is that the channel has failed
	err := m.c.do(func() error {
		if m.c.failed() == nil && m.c.phase() == channelSuspended {
			return errSuspended // the library still has it
		}
		if m.c.Err() != nil || !m.c.memory.remove(m) { // of a channel that has failed it goes with the communicator
			return nil
		}
		if err := m.c.comms.ReleaseCommMemory(m.c.comm, m.h); err != nil {
			m.c.memory.add(&ChannelMemory{b: m.b}) // the library may still have it, as one that is suspended has: it goes with the communicator, too
			return err
		}
		m.b.release()
		return nil
	})
	if err != nil && m.c.failed() == nil {
		return fmt.Errorf("gpu: channel memory of %d bytes: %w", m.b.mem.Size, err)
	}
	return nil
}
