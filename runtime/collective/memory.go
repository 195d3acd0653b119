package collective

import (
	"context"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// Memory is a buffer of kind [gpu.CommMem] that is registered with a communicator. The library can
// use registered memory without copies. In one operation, either all ranks must use registered
// memory or none. The registration ends with Close or with the communicator.
type Memory comm.Memory

// Register registers a buffer with the communicator for this rank alone. Register blocks until the
// communicator's thread has registered the buffer. The thread may be blocked in a group until other
// ranks come.
func (c *Communicator) Register(b *gpu.Buffer) (*Memory, error) {
	m, err := c.in().Register((*memory.Buffer)(b))
	return (*Memory)(m), err
}

// NewWindow registers a buffer with the communicator on all ranks at once. The buffers must have
// the same size. If symmetric is true, the caller promises that operations use the same offsets on
// all ranks. The library can then optimize more. NewWindow waits until all other ranks have called
// NewWindow. If the context ends before that, the communicator is aborted.
func (c *Communicator) NewWindow(ctx context.Context, b *gpu.Buffer, symmetric bool) (*Memory, error) {
	m, err := c.in().NewWindow(ctx, (*memory.Buffer)(b), symmetric)
	return (*Memory)(m), err
}

// Close ends the registration. All ranks must close a window. Close waits until the communicator is
// idle, since groups may use the memory, or until the communicator fails. While the communicator is
// suspended, Close returns [ErrSuspended], and the memory stays registered. Closing again, or after
// the communicator was closed, does nothing. If the communicator has failed, or its library returns
// an error, the memory stays registered until the communicator is closed. If the buffer is closed
// before the registration ends, its memory is freed when the registration ends.
func (m *Memory) Close() error { return (*comm.Memory)(m).Close() }
