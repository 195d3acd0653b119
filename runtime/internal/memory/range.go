package memory

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Outside is the offset and the size of a part of a gpu.Slice that was taken with indexes out of
// range. No buffer is that large, so each use of the part fails.
const Outside = math.MaxUint64

// A Range is a part of a buffer, in bytes.
type Range struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// Check returns the address of a range for the operation op on a device, or an error if the
// operation cannot use the range.
func (r Range) Check(op string, d *Device) (engine.Address, error) {
	if r.Buffer != nil && r.Buffer.Place().Recording != nil {
		return engine.Address{}, errs.Argument(op, "a binding of a command buffer, or a buffer of its Scratch, outside of it")
	}
	return r.CheckRecorded(op, d)
}

// CheckTo is like Check, for a range that the operation writes.
func (r Range) CheckTo(op string, d *Device) (engine.Address, error) {
	at, err := r.Check(op, d)
	if err == nil {
		err = r.Writable(op)
	}
	return at, err
}

// Writable returns an error if the range, which has been checked, is read-only.
func (r Range) Writable(op string) error {
	if r.Buffer.ReadOnly() {
		return errs.Argument(op, "the buffer was imported for reading only")
	}
	return nil
}

// ReadOnly reports whether the memory was imported for reading only.
func (b *Buffer) ReadOnly() bool { return b.rare != nil && b.rare.read }

// CheckRecorded is like Check, but also allows ranges of placeholders (see Buffer.Place).
// CheckRecorded is for operations of recordings.
func (r Range) CheckRecorded(op string, d *Device) (engine.Address, error) {
	b := r.Buffer
	switch {
	case !b.Exists():
		return engine.Address{}, errs.Argument(op, "no buffer")
	case b.dev != d && b.dev.Engine.Driver != d.Engine.Driver:
		return engine.Address{}, b.foreign(op, d.Engine)
	case r.Offset == Outside && r.Size == Outside:
		return engine.Address{}, fmt.Errorf("gpu: %s: elements that are not in the slice that they were taken from: the indices given to Slice are reversed, negative or too large: %w", op, errs.ErrRange)
	case r.beyond(b.Size()):
		return engine.Address{}, fmt.Errorf("gpu: %s: %d bytes at %d of %s: %w", op, r.Size, r.Offset, b.mention(), errs.ErrRange)
	case b.Late():
		if b.hasGone() && b.dev.Failed() == nil {
			// If the device has failed, the submission fails with the device's error instead.
			return engine.Address{}, fmt.Errorf("gpu: %s: the memory has been deallocated: %w", op, errs.ErrUnallocated)
		}
	}
	return r.Address(), nil
}

// foreign returns the error of an operation on the device d, which is of another driver than the
// buffer.
func (b *Buffer) foreign(op string, d *engine.Device) error {
	of, to := b.dev.Engine.Driver.Name(), d.Driver.Name()
	if of == to {
		return errs.Argument(op, "the buffer is of another device: the driver %s was opened twice, and the queue is of the other driver value", of)
	}
	return errs.Argument(op, "the buffer is of driver %s, the queue of %s", of, to)
}

// beyond reports whether a part of the range is outside a buffer of size bytes.
func (r Range) beyond(size uint64) bool { return r.Offset > size || r.Size > size-r.Offset }

// mention describes the buffer for an error about one of its ranges, for example "a buffer of 64"
// for 64 bytes.
func (b *Buffer) mention() string {
	if b.from == mapped {
		return fmt.Sprintf("growing memory, of which %d are mapped and %d reserved", b.Size(), b.mem.Size)
	}
	return fmt.Sprintf("a buffer of %d", b.mem.Size)
}

// Address returns the address of a range that has been checked.
func (r Range) Address() engine.Address {
	if r.Buffer.Late() {
		return engine.Address{Ptr: driver.Ptr(r.Offset), Size: r.Size, Late: r.Buffer.Holding()}
	}
	return engine.Address{Ptr: r.Buffer.mem.Ptr + driver.Ptr(r.Offset)}
}

// NoValues returns "" if streams can write values to the buffer's memory and wait for values there.
// Otherwise it describes the memory for an error.
func (b *Buffer) NoValues() string {
	switch {
	case b.mem.Kind == driver.ManagedMem:
		return "managed memory"
	case b.from == pooled && b.pool.blocks == nil, b.from == opened && b.rare.shared:
		return "memory of a pool of the driver's"
	}
	return ""
}

// CheckValue returns an error if an operation of the kind cannot write the value to the range, or
// wait for the value in the range. The range has been checked.
func (r Range) CheckValue(kind work.Kind, value uint64) error {
	op := kind.String()
	switch {
	case r.Size != 8:
		return errs.Argument(op, "a range of %d bytes; a value has 8", r.Size)
	case value > math.MaxInt64:
		return errs.Argument(op, "value %d is above %d", value, uint64(math.MaxInt64))
	case r.Buffer.NoValues() != "":
		return errs.Argument(op, "the buffer is %s, in which there can be no values", r.Buffer.NoValues())
	case kind == work.ValueWrite:
		return r.Writable(op)
	}
	return nil
}

// SameSize returns an error if two ranges of a copy, which have been checked, differ in size.
func SameSize(dst, src Range) error {
	if dst.Size != src.Size {
		return errs.Argument("copy", "from %d bytes to %d", src.Size, dst.Size)
	}
	return nil
}

// Apart returns an error if two ranges of the same size belong to one buffer and overlap.
func Apart(dst, src Range) error {
	if dst.Buffer == src.Buffer && max(dst.Offset, src.Offset)-min(dst.Offset, src.Offset) < dst.Size {
		return errs.Argument("copy", "%d bytes at %d of a buffer overlap those at %d, where they are to go", src.Size, src.Offset, dst.Offset)
	}
	return nil
}
