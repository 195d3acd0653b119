package gpu

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// WriteValue writes a number of 64 bits, below 1<<63, to a range of 8 bytes at an address that is a multiple of 8 (C: cuStreamWriteValue64).
// Whoever finds it there, be it the host by an atomic load, another stream by [Queue.WaitValue], a kernel, or another process that shares the
// memory, finds all that the queue's stream has written before. So it hands a point to those who know no semaphores.
//
// The memory is of a device, of [HostMem], imported, shared, or of a portable pool; another device's it can be where [Queue.Fill] could fill it.
// Managed memory and that of a pool of the driver's, in which CUDA has no values, is [ErrArgument], and so are other sizes, addresses and
// values. It does not block. Where the device cannot do that ([driver.Caps].Values) the error is [driver.ErrUnsupported].
func (q *Queue) WriteValue(o Order, r Range, value uint64) error {
	return q.onValue(o, work.ValueWrite, r, value)
}

// WaitValue waits until the number that a range has is at least the value (C: cuStreamWaitValue64 with CU_STREAM_WAIT_VALUE_GEQ): what comes
// after the operation comes after that, and finds what was written before the number was. The range, the value and the errors are those of
// [Queue.WriteValue]. Whoever writes the number writes it as a whole, the host by an atomic store, and never 1<<63 or more.
//
// The stream waits, and not the host: nothing that is behind the operation in the queue's stream begins before, whether it has an order with it or
// not. So let such waits have a queue of their own, and have nothing behind one that is to bring the number. Where another queue of the same
// device is to write it, submit that first: the driver does not know of the order, and may have streams share what is in the hardware. A driver
// may also wait for its streams in calls that load code. What the program lets go of meanwhile, of the device's memory, code and recordings, is
// given back when no stream waits for a number or for another process's event any more, for the driver would wait for them, and keep everybody
// else waiting. If the number never comes nobody hangs but what is behind the wait in its stream: fail the semaphore that it signals
// ([Semaphore.Fail]) and write the number, or close the device, which gives it up after ten seconds ([CloseError]).
func (q *Queue) WaitValue(o Order, r Range, value uint64) error {
	return q.onValue(o, work.ValueWait, r, value)
}

func (q *Queue) onValue(o Order, kind work.Kind, r Range, value uint64) error {
	op := kind.String()
	at, err := r.check(op, q)
	if err == nil {
		err = r.checkValue(kind, value)
	}
	if err == nil && at.Ptr%8 != 0 {
		err = argument(op, "offset %d is not aligned to 8 bytes", r.Offset)
	}
	if err == nil {
		err = r.usable(op, q.dev)
	}
	switch {
	case err != nil:
		return err
	case !q.dev.native.Caps.Values:
		return fmt.Errorf("gpu: %s on %s: %w", op, q.dev.native.Info.Name, driver.ErrUnsupported)
	}
	s := q.get(kind)
	s.Op.SetValue(kind, value)
	s.Dst = at
	return q.submitWith(s, o, r.Buffer, nil)
}

// checkValue returns an error if a range, which has been checked, cannot have a value.
func (r Range) checkValue(kind work.Kind, value uint64) error {
	op := kind.String()
	switch {
	case r.Size != 8:
		return argument(op, "a range of %d bytes; a value has 8", r.Size)
	case value > math.MaxInt64:
		return argument(op, "value %d is above %d", value, uint64(math.MaxInt64))
	case r.Buffer.noValues() != "":
		return argument(op, "the buffer is %s, in which there can be no values", r.Buffer.noValues())
	case kind == work.ValueWrite:
		return r.writable(op)
	}
	return nil
}

// noValues says what memory the buffer is, if there can be no values in it.
func (b *Buffer) noValues() string {
	switch {
	case b.mem.Kind == ManagedMem:
		return "managed memory"
	case b.from == pooled && b.pool.blocks == nil, b.from == opened && b.rare.shared != nil:
		return "memory of a pool of the driver's"
	}
	return ""
}

// WriteValue is [Queue.WriteValue].
func (s *Stream) WriteValue(r Range, value uint64) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.WriteValue(o, r, value))
}

// WaitValue is [Queue.WaitValue].
func (s *Stream) WaitValue(r Range, value uint64) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.WaitValue(o, r, value))
}

// WriteValue records what [Queue.WriteValue] does: the same value in each execution. No graph has it as a node. It is behind all that was
// recorded before it, and in front of what follows.
func (c *CommandBuffer) WriteValue(r Range, value uint64, after ...Command) (Command, error) {
	return c.onValue(work.ValueWrite, r, value, after)
}

// WaitValue records what [Queue.WaitValue] does, in an order such as [CommandBuffer.WriteValue] has.
func (c *CommandBuffer) WaitValue(r Range, value uint64, after ...Command) (Command, error) {
	return c.onValue(work.ValueWait, r, value, after)
}

func (c *CommandBuffer) onValue(kind work.Kind, r Range, value uint64, after []Command) (Command, error) {
	if err := c.begin(kind); err != nil {
		return -1, err
	}
	defer c.leave()
	if !c.dev.native.Caps.Values {
		return -1, c.fail(kind, driver.ErrUnsupported)
	}
	ref, err := c.refer(kind, r, 8)
	if err != nil {
		return -1, err
	}
	if err := r.checkValue(kind, value); err != nil {
		return -1, c.fail(kind, err)
	}
	c.refers[ref].written, c.refers[ref].valued = kind == work.ValueWrite, true
	cmd := command{dst: ref, src: -1}
	cmd.op.SetValue(kind, value)
	return c.record(&cmd, after)
}
