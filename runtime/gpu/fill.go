package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Fill returns an Op that fills a range with a pattern of 1, 2, 4 or 8 bytes. The address and the
// size of the range must be multiples of the pattern's size, otherwise the error is [ErrArgument].
// Memory of another device can be filled only if the queue's device has access to it. Devices of a
// [Group] have access to each other's memory if the hardware supports such access. For access to
// memory of a pool, use [Pool.Access].
func Fill(dst Range, pattern []byte) (op Op) {
	bits, ok := work.Pattern(pattern)
	if !ok {
		return BadOp(errs.Argument("fill", "a pattern of %d bytes; it can have 1, 2, 4 or 8", len(pattern)))
	}
	op.kind, op.args[0], op.args[1].Offset, op.args[1].Size = fillOp, dst, bits, uint64(len(pattern))
	return op
}

func (q *Queue) fill(o *Order, op *Op) error {
	dst, bits, width := op.args[0], op.args[1].Offset, op.args[1].Size
	ptr, err := dst.checkTo("fill", q)
	if err == nil {
		err = dst.in().Usable("fill", q.dev.mem())
	}
	if err != nil {
		return err
	}
	if (dst.Size|uint64(ptr.Ptr))&(width-1) != 0 {
		return errs.Argument("fill", "offset %d and size %d are not aligned to the pattern of %d bytes", dst.Offset, dst.Size, width)
	}
	s := q.get(work.Fill)
	s.Op.SetFill(bits, width, dst.Size)
	s.Dst = ptr
	if dst.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, dst.Buffer.in(), nil)
}

// Copy returns an Op that copies between ranges of the same size, on one device or on two devices.
// At least one of the devices must belong to the queue's driver. Between devices of one driver, the
// driver copies, directly if the hardware supports it. Between drivers, goroutines copy in pieces
// through the host, and begin when the waits are reached. Copies between drivers cannot be
// recorded. If the ranges belong to one buffer and overlap, the error is [ErrArgument]. If the
// ranges belong to different buffers that share memory, the ranges must not overlap in that memory.
// The runtime does not check this: if the ranges overlap in shared memory, the result of the copy
// is undefined.
func Copy(dst, src Range) (op Op) {
	op.kind, op.args[0], op.args[1] = copyOp, dst, src
	return op
}

func (q *Queue) copy(o *Order, dst, src Range) error {
	to, from := dst.in(), src.in()
	if to.Buffer.Exists() && from.Buffer.Exists() && to.Buffer.Device().Engine.Driver != from.Buffer.Device().Engine.Driver {
		return q.copyAcross(o, to, from)
	}
	d, err := dst.checkTo("copy", q)
	if err != nil {
		return err
	}
	f, err := src.check("copy", q)
	if err == nil {
		err = memory.SameSize(to, from)
	}
	if err == nil {
		err = memory.Apart(to, from)
	}
	if err != nil {
		return err
	}
	s := q.get(work.Copy)
	s.Dst, s.Src, s.Op.Count = d, f, dst.Size
	if dst.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, to.Buffer, from.Buffer)
}

// Prefetch returns an Op that moves managed memory to the memory of the queue's device or of the
// host. The memory stays managed. The parameter to is [DeviceMem] for the queue's device or
// [HostMem] for the host. Without Prefetch, managed memory moves page by page when it is used. If
// the range is not managed memory, the error is [ErrArgument]. If the device cannot prefetch, the
// error is [ErrUnsupported]. A recording cannot prefetch.
func Prefetch(r Range, to MemKind) (op Op) {
	op.kind, op.args[0], op.args[1].Offset = prefetchOp, r, uint64(to)
	return op
}

func (q *Queue) prefetch(o *Order, r Range, to MemKind) error {
	at, err := r.check("prefetch", q)
	switch {
	case err != nil:
		return err
	case r.Buffer.Kind() != ManagedMem:
		return errs.Argument("prefetch", "the buffer is no managed memory")
	case to != DeviceMem && to != HostMem:
		return errs.Argument("prefetch", "memory of kind %d: it can be moved to DeviceMem or HostMem", int(to))
	case !q.dev.native.Caps.Prefetch:
		return fmt.Errorf("gpu: prefetch on %s: %w", q.dev.native.Info.Name, driver.ErrUnsupported)
	}
	s := q.get(work.Prefetch)
	s.Dst, s.Op.Count, s.Op.To = at, r.Size, uint8(to)
	if r.Size == 0 {
		s.Op.Kind = work.Barrier
	}
	return q.submitWith(s, o, r.Buffer.in(), nil)
}
