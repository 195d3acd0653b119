package gpu

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Mode is a way to run a command buffer.
type Mode int

// The modes.
const (
	AutoMode   Mode = iota // graphs where they cost less than separate commands, otherwise as StreamMode
	StreamMode             // each execution gives the commands to a stream one after the other
	GraphMode              // all commands that a graph can have are in graphs; commands without an order may run in parallel
)

// A Command is the number of a command in its command buffer, from 0 on.
type Command int

// A CommandBuffer is a recording of work that is submitted as a whole, any number of times: see
// [Execute]. Make a command buffer with [Device.NewCommandBuffer], record commands, call End, and
// execute it.
//
// Commands between two barriers may run in parallel, unless [CommandOptions].InOrder is set. A
// barrier comes after all commands that were recorded before it, and before all later commands. A
// command may also name earlier commands that it comes after. Leading, trailing and repeated
// barriers change nothing.
//
// [CommandBuffer.Add] copies the data of uploads and the arguments of kernels. The command buffer
// holds the buffers and modules of its commands until it has been closed and is no longer used by
// an execution or by a command buffer in which it is nested.
//
// A range of a [CommandBuffer.Binding] stands for memory that each execution provides. A range of
// [CommandBuffer.Scratch] stands for scratch memory. A [Param] is a value that each execution may
// set: an argument of a kernel, or the blocks of a launch.
//
// If a method that records a command returns an error, nothing has been recorded, and the error
// names the command by number and operation. All methods may be called concurrently, but then the
// order of the commands is not defined.
//
// The simulated GPU checks the order of commands in a graph. If two commands without an order
// certainly use the same memory, and one of them writes it, the execution fails with an error that
// names both commands. Other devices do not check the order.
type CommandBuffer recording.Recording

// in returns the command buffer's recording.
func (c *CommandBuffer) in() *recording.Recording { return (*recording.Recording)(c) }

// commands returns commands as Commands of package recording. It does not copy them: the types have
// the same layout.
func commands(all []Command) []recording.Command {
	return unsafe.Slice((*recording.Command)(unsafe.Pointer(unsafe.SliceData(all))), len(all))
}

// CommandOptions say how a command buffer runs. The zero value means AutoMode, and not InOrder.
type CommandOptions struct {
	Mode Mode

	// InOrder puts each command behind the previously recorded command. So no command needs to name
	// earlier commands, and no [Barrier] is needed.
	InOrder bool
}

// isZero reports whether the command buffer is nil, or a zero value, which belongs to no device.
func (c *CommandBuffer) isZero() bool { return c.in().Device() == nil }

// NewCommandBuffer makes an empty command buffer. GraphMode on a device without graphs is
// [ErrUnsupported].
func (d *Device) NewCommandBuffer(o CommandOptions) (*CommandBuffer, error) {
	if err := d.ready("new command buffer"); err != nil {
		return nil, err
	}
	c, err := d.recordings.New(recording.Mode(o.Mode), o.InOrder)
	return (*CommandBuffer)(c), err
}

// Binding adds a binding and returns a buffer that stands for it, in this command buffer only. The
// first binding is number 0. The buffer has no size of its own: an execution must bind at least as
// many bytes as the commands use. [Buffer.All] of this buffer means the whole bound range. The
// result of All may be an argument of a kernel, a range of a [Native], or bound to a nested
// recording. Other commands must use a Range with a size.
func (c *CommandBuffer) Binding() (*Buffer, error) {
	if c.isZero() {
		return nil, errs.Zero("binding", "CommandBuffer")
	}
	b, err := c.in().Binding()
	return (*Buffer)(b), err
}

// BindingSlice adds a binding of n elements to a command buffer. An execution must bind at least n
// elements. See [CommandBuffer.Binding].
func BindingSlice[T any](c *CommandBuffer, n int) (Slice[T], error) {
	size, err := sizeOf[T]("bind", n)
	if err != nil {
		return Slice[T]{}, err
	}
	b, err := c.Binding()
	if err != nil {
		return Slice[T]{}, err
	}
	return SliceOf[T](b.Range(0, size))
}

// Scratch returns a buffer of scratch memory, in which commands pass data to later commands. The
// buffer has size bytes, which may be 0. Its address is a multiple of [Alignment]. Its contents are
// undefined before the first command that uses it and after the last such command. The buffer need
// not be closed.
//
// [CommandBuffer.End] places all scratch buffers in one block of [DeviceMem] of
// [CommandBuffer.ScratchSize] bytes, or in memory of the program ([CommandBuffer.SetScratch]).
// Buffers A and B may share bytes if every command that uses A comes before every command that uses
// B. Barriers, host calls, collectives, and the commands named in calls of Add give that order.
// Without them, the order of the calls of Add does not count, unless [CommandOptions].InOrder is
// set.
//
// Without SetScratch, executions that overlap each have an instance with a block of its own.
// [Execute] makes an instance when it needs one. The command buffer keeps its instances until it is
// closed and no longer used. To have one instance only, order the executions: on one queue, in a
// [Stream], or by waits.
//
// Only commands of this recording can use the buffer. The buffer can be bound to a recording that
// is nested in this recording. A nested recording has its own scratch buffers in this recording's
// instance. The call does not block and allocates no device memory.
func (c *CommandBuffer) Scratch(size uint64) (*Buffer, error) {
	if c.isZero() {
		return nil, errs.Zero("scratch", "CommandBuffer")
	}
	b, err := c.in().Scratch(size)
	return (*Buffer)(b), err
}

// ScratchSize returns how many bytes the scratch buffers take together, for the commands that have
// been recorded so far. Before End, each call places the buffers to compute the size, which takes
// time.
func (c *CommandBuffer) ScratchSize() (uint64, error) {
	if c.isZero() {
		return 0, errs.Zero("scratch size", "CommandBuffer")
	}
	return c.in().ScratchSize()
}

// SetScratch places the scratch buffers in the range r, instead of in memory of the command
// buffer's own. The range must begin at a multiple of [Alignment]. If it has fewer than
// [CommandBuffer.ScratchSize] bytes when the recording ends, [CommandBuffer.End] returns
// [ErrRange]. The range may be memory of a pool or of a [CommandBuffer.Binding]. Several recordings
// may share the range. The program must order the executions that use the range, including
// executions of recordings in which this recording is nested. The command buffer holds the buffer
// of the range as it holds the buffers of its commands.
func (c *CommandBuffer) SetScratch(r Range) error {
	if c.isZero() {
		return errs.Zero("set scratch", "CommandBuffer")
	}
	return c.in().SetScratch(r.in())
}

// add is like Add, without the label. It returns a Command of package recording.
func (c *CommandBuffer) add(op *Op, after []Command) (recording.Command, error) {
	if c.isZero() {
		return -1, errs.Zero(op.String(), "CommandBuffer")
	}
	r, behind := c.in(), commands(after)
	if op.timing != nil {
		return r.Refuse(fmt.Errorf("gpu: %s: a Timing cannot be recorded; Timestamp measures in a recording: %w", op.String(), ErrArgument))
	}
	switch op.kind {
	case barrierOp:
		return r.Barrier(behind)
	case fillOp:
		return r.Fill(op.args[0].in(), op.args[1].Offset, op.args[1].Size, behind)
	case copyOp:
		return r.Copy(op.args[0].in(), op.args[1].in(), behind)
	case uploadOp, uploadCopyOp:
		return r.UploadCopy(op.args[0].in(), op.bytes(), behind)
	case launchOp:
		return c.addLaunch(op, behind)
	case executeOp:
		return r.Nest(op.obj.(*CommandBuffer).in(), ranges(op.all()), op.given(), op.uses(), behind)
	case hostCallOp:
		return r.HostCall(op.obj.(func() error), behind)
	case nativeOp:
		return c.addNative(op, behind)
	case writeValueOp:
		return r.Value(work.ValueWrite, op.args[0].in(), op.args[1].Offset, behind)
	case waitValueOp:
		return r.Value(work.ValueWait, op.args[0].in(), op.args[1].Offset, behind)
	case collectiveOp:
		return c.addCollective(op, behind)
	case controlOp:
		return c.addControl(op.obj.(*control), behind)
	case wrongOp:
		return r.Refuse(op.obj.(error))
	case zeroOp:
		return r.Refuse(errZeroOp)
	}
	return r.Refuse(fmt.Errorf("gpu: %s cannot be recorded: submit it to a queue: %w", op.String(), ErrArgument))
}

// device returns the device of the command buffer, which must not be zero.
func (c *CommandBuffer) device() *Device { return deviceOf(c.in().Device().Engine) }

// Timestamp records a timestamp: the time when the device is done with all commands before the last
// barrier, and with the given commands. [CommandBuffer.Elapsed] returns the time between two
// timestamps. If the device cannot measure times, the error is [ErrUnsupported].
//
// [CommandBuffer.End] makes an event for the timestamp. Executions that overlap have events of
// their own, in their instances (see [Execute]). If the driver does not let an event be recorded
// again before it is complete ([driver.Caps].RerecordEvents), each execution in flight has its own
// instance, even if the executions are ordered.
func (c *CommandBuffer) Timestamp(after ...Command) (Command, error) {
	if c.isZero() {
		return -1, errs.Zero("timestamp", "CommandBuffer")
	}
	at, err := c.in().Timestamp(commands(after))
	return Command(at), err
}

// Elapsed returns the time from one timestamp to another in the execution that was issued last.
// Wait for a signal of that execution first. If no execution was issued, or the device has not
// reached both timestamps, the error is [ErrArgument]. If an execution is in flight, the time may
// mean nothing. Elapsed blocks until the driver has answered.
func (c *CommandBuffer) Elapsed(from, to Command) (t time.Duration, err error) {
	if c.isZero() {
		return 0, errs.Zero("elapsed", "CommandBuffer")
	}
	return c.in().Elapsed(recording.Command(from), recording.Command(to))
}

// End ends the recording, and makes it ready to run. It blocks while the driver makes graphs,
// events for timestamps, and memory for buffers of [CommandBuffer.Scratch]. If one of these cannot
// be made, End returns the error, and so does each execution.
//
// Some graphs are made by the first execution instead: graphs with a function of [Native] that uses
// memory which is bound or allocated after End, and graphs with a fill or a copy of more than 64
// KiB in such memory, if the driver cannot enlarge the node of the fill or copy. CUDA cannot
// enlarge fills with patterns of 8 bytes, and HIP cannot enlarge any node.
func (c *CommandBuffer) End() error {
	if c.isZero() {
		return errs.Zero("end", "CommandBuffer")
	}
	return c.in().End()
}

// Close releases the command buffer, and returns nil. It may be called before End. Executions in
// flight still use the command buffer, and so do command buffers in which it is nested. After the
// last use, everything that the command buffer holds is released. Closing again does nothing.
func (c *CommandBuffer) Close() error {
	return c.in().Close()
}

// A recordingHost is a Device that implements recording.Host.
type recordingHost Device

// EnterNative calls a function of the program with the device current on the thread.
func (h *recordingHost) EnterNative(fn func() error) error { return (*Device)(h).enterNative(fn) }

// Elapsed returns the time between two events.
func (h *recordingHost) Elapsed(from, to driver.Event) (time.Duration, error) {
	return (*Device)(h).elapsed(from, to)
}
