// Package growing has device memory that grows and shrinks at one address, such as a KV cache that
// grows with its sequence and is never copied.
//
// [Reserve] reserves a range of addresses, which costs no memory. [Memory.Grow] maps physical pages
// at the start of the range. [Memory.Buffer] is the range as a buffer of package gpu. The buffer's
// address never changes, so recordings, graphs and kernel arguments that contain it stay valid.
// Operations may use the mapped part: a range beyond it is [gpu.ErrRange].
//
// A kernel that gets the buffer as an argument gets its address. The kernel must not touch more
// than [Memory.Size] bytes: the runtime cannot check that, and an access beyond them loses the
// device.
//
// # Which calls are immediate
//
// Grow and Share are immediate: when they return, all work may use the new pages. Nothing in flight
// can be disturbed by mapping, because no work has had the pages before.
//
// Unmapping is different: the device must be done with the pages. So [Memory.Shrink] takes the
// pages away from new work, and returns. Unless Grow takes the pages back first, the driver unmaps
// them when each of the given points is reached or has failed and the streams have passed the work
// that may use the memory. No stream waits for that. Close works in the same way.
//
// # Drivers
//
// CUDA has such memory on all platforms (cuMemAddressReserve, cuMemCreate, cuMemMap), with pages of
// 2 MiB. So has the simulated GPU. HIP has it from 5.3 on, on devices with virtual memory
// management; it has not been tried on an AMD GPU. On other devices Reserve is
// [gpu.ErrUnsupported].
package growing

import (
	"context"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Options describe new Memory.
type Options struct {
	// Page is the size of a page, a multiple of the driver's granularity. 0 means the granularity.
	// Grow calls the driver for each page, so larger pages make Grow faster, and leave more of the
	// last page unused.
	Page uint64

	// Peers are other devices of the same driver whose kernels use the memory, such as the devices
	// of a [gpu.Group]. A device that is not a peer can only copy the memory. If the hardware has
	// no link to a peer, Grow returns [gpu.ErrUnsupported].
	Peers []*gpu.Device
}

// A Memory is a reserved range of addresses with pages mapped at its start. Its methods may be
// called concurrently.
type Memory struct{ buffer *gpu.Buffer }

// Reserve reserves addresses for max bytes, rounded up to pages. Nothing is mapped yet, and nothing
// counts as allocated. Reserve blocks while the driver does. If the driver has no such memory, the
// error is [gpu.ErrUnsupported].
func Reserve(dev *gpu.Device, max uint64, o Options) (*Memory, error) {
	const op = "reserve addresses"
	in := gpu.Inside(dev)
	if in == nil || in.Memory == nil {
		return nil, errs.Zero(op, "Device")
	}
	peers := make([]*memory.Device, len(o.Peers))
	for i, p := range o.Peers {
		if in := gpu.Inside(p); in != nil {
			peers[i] = in.Memory
		}
	}
	b, err := in.Memory.Reserve(max, o.Page, peers)
	if err != nil {
		return nil, err
	}
	return &Memory{(*gpu.Buffer)(b)}, nil
}

// in returns the buffer, or an error for a nil or zero Memory.
func (m *Memory) in(op string) (*memory.Buffer, error) {
	if m == nil || m.buffer == nil {
		return nil, errs.Zero(op, "Memory")
	}
	return (*memory.Buffer)(m.buffer), nil
}

// Buffer returns the memory as a buffer of kind [gpu.DeviceMem]. It is always the same buffer, with
// the same address. Its Size is the mapped size. The buffer cannot be exported, and no pool can be
// made over it.
func (m *Memory) Buffer() *gpu.Buffer {
	if m == nil {
		return nil
	}
	return m.buffer
}

// Grow maps pages until size bytes are mapped. If they are mapped already, it does nothing. The
// contents of new pages are undefined. All work may use the new pages when Grow returns. Grow takes
// pages back that Shrink has removed and that are not unmapped yet, without a call of the driver.
//
// More than [Memory.Max] is [gpu.ErrRange]. If the device has no memory left, Grow first frees
// unused memory, which may take the driver up to a second, and tries again. If that fails, the
// error is [gpu.ErrOutOfMemory], and the size is unchanged. Grow blocks while the driver does.
func (m *Memory) Grow(size uint64) error {
	b, err := m.in("grow")
	if err != nil {
		return err
	}
	return b.Grow(size)
}

// Share maps size bytes of from's pages, from offset on, behind the end of this Memory, which grows
// by size. Both have the same memory there: a prompt's prefix, for example, is in many sequences
// and takes memory once. A write through one Memory is seen through both, so the program must order
// such work. The pages exist until neither Memory has them.
//
// Both Memories must be of one device and have pages of the same size. Offset and size are
// multiples of that size. Share blocks while the driver does. If Shrink has removed pages of this
// Memory that are not unmapped yet, Share waits until they are unmapped, Grow has taken them back
// or the context ends.
func (m *Memory) Share(ctx context.Context, from *Memory, offset, size uint64) error {
	const op = "share pages"
	b, err := m.in(op)
	if err != nil {
		return err
	}
	other, err := from.in(op)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return errs.Argument(op, "no context")
	}
	return b.Share(ctx, other, offset, size)
}

// Shrink removes the pages behind the first size bytes, rounded up to pages. It does nothing if
// none are mapped there. Shrink waits for no work. A range beyond the new size is [gpu.ErrRange]
// from now on.
//
// Pass the points of work that may use the removed pages, such as [gpu.Stream.Point]. When all
// points of this call and of earlier calls have been reached or have failed, submitted work loses
// the pages too: the signals of work that is issued after that fail with ErrRange. An execution of
// a recording with a range there fails in the same way. The driver unmaps the pages that Grow has
// not taken back, when the streams have passed all work that may use the memory. Memory that a lost
// device may use stays mapped until Close.
func (m *Memory) Shrink(size uint64, after ...gpu.Point) error {
	b, err := m.in("shrink")
	if err != nil {
		return err
	}
	in := gpu.Inside(m.buffer.Device())
	points := make([]sema.Point, len(after))
	for i, p := range after {
		points[i] = sema.Point{Semaphore: in.Semaphore(p.Semaphore), Value: p.Value}
	}
	return b.Shrink(size, points)
}

// Size returns how many bytes are mapped, a multiple of [Memory.Granularity]. Pages that Shrink has
// removed do not count, even if the driver has not unmapped them.
func (m *Memory) Size() uint64 { return m.Buffer().Size() }

// Max returns how many bytes are reserved.
func (m *Memory) Max() uint64 {
	if b, err := m.in(""); err == nil {
		return b.Growing().Max()
	}
	return 0
}

// Granularity returns the size of a page in bytes.
func (m *Memory) Granularity() uint64 {
	if b, err := m.in(""); err == nil {
		return b.Growing().Page()
	}
	return 0
}

// Close releases the memory, and returns nil. It closes the Buffer. Work in flight may still use
// the memory. Pages are unmapped, and the addresses given back, when nothing uses the memory any
// more.
func (m *Memory) Close() error {
	if m == nil || m.buffer == nil {
		return nil
	}
	return m.buffer.Close()
}
