package gpu

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Mode is a way to run a command buffer.
type Mode int

// The modes.
const (
	AutoMode   Mode = iota // a graph if the device has graphs and the recording is worth one
	StreamMode             // the commands one after the other, each time
	GraphMode              // one launch of a graph, in which commands without an order may run at once
)

// A Command names a command of a command buffer.
type Command int

// A CommandBuffer is a recording of work that is submitted as a whole, any number of times: see
// [Queue.Execute]. Make one, record, call End, execute.
//
// Commands between two barriers may run at once. A barrier comes after all commands that were
// recorded before it. A command may also name others that it comes after, besides the last barrier.
// Leading, trailing and repeated barriers change nothing.
//
// A recording keeps its contents. The calls copy the data of updates and the arguments of kernels.
// The command buffer holds buffers and kernels until it is closed and no execution is in flight. A
// range of a [CommandBuffer.Binding] stands for memory that is named when the recording is
// executed. A range of [CommandBuffer.Alloca] stands for memory of the recording's own.
//
// A method that returns an error changes nothing. The error names the command by number and
// operation. All methods may be called concurrently, but then the order of the commands is not
// defined.
type CommandBuffer recording.Recording

// in returns the command buffer as the packages below know it.
func (c *CommandBuffer) in() *recording.Recording { return (*recording.Recording)(c) }

// commands returns commands as the packages below know them. It does not copy them: the types have
// the same layout.
func commands(all []Command) []recording.Command {
	return unsafe.Slice((*recording.Command)(unsafe.Pointer(unsafe.SliceData(all))), len(all))
}

// CommandOptions say how a command buffer runs. With the zero value the runtime decides.
type CommandOptions struct {
	Mode Mode
}

// NewCommandBuffer makes an empty command buffer. GraphMode on a device without graphs is
// [driver.ErrUnsupported].
func (d *Device) NewCommandBuffer(o CommandOptions) (*CommandBuffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	c, err := d.recordings.New(recording.Mode(o.Mode))
	return (*CommandBuffer)(c), err
}

// Binding adds a binding and returns a buffer that stands for it, in this command buffer only. The
// first binding is number 0. The buffer has no size of its own: an execution must bind as many
// bytes as the commands use. [Buffer.All] of it is all of the bound range. It may be a kernel's
// argument, or bound to a nested recording. Other commands must say how much they use.
func (c *CommandBuffer) Binding() (*Buffer, error) {
	b, err := c.in().Binding()
	return (*Buffer)(b), err
}

// Alloca returns a buffer for what the commands leave for each other: scratch memory, of size bytes, at a multiple of [Alignment]. It is
// the recording's from the first command that uses it to the last, in whatever order they run; before, behind, and between executions the
// bytes are other buffers'. So nothing is in it at first, and it needs no dealloca. A size of zero is legal.
//
// [CommandBuffer.End] places all buffers of Alloca in one block of [DeviceMem] of
// [CommandBuffer.ScratchSize] bytes, or in memory of the program ([CommandBuffer.SetScratch]). Two
// buffers share bytes if every command that uses the first comes before every command that uses the
// second. Barriers, host calls, collectives and lists of commands give that order. The order of the
// recording calls does not count.
//
// Executions that overlap have a block each. [Queue.Execute] makes a block when it needs one. The
// command buffer keeps its blocks until it is closed. To have one block only, order the executions: on
// one queue, in a [Stream], or by waits.
//
// The buffer is for commands of this recording, and for bindings of what is recorded with [CommandBuffer.Execute] and [CommandBuffer.Nest];
// anything else refuses it. A recording that is nested has its scratch memory in the other's block, each time anew. The call does not
// block, allocates no memory of the device, and is safe for concurrent use.
func (c *CommandBuffer) Alloca(size uint64) (*Buffer, error) {
	b, err := c.in().Alloca(size)
	return (*Buffer)(b), err
}

// ScratchSize returns how many bytes the buffers of [CommandBuffer.Alloca] take together, as they are used by the commands that have been
// recorded. It does not block, but takes as long as [CommandBuffer.End] does to find places for them; after End the size is known. It is
// safe for concurrent use.
func (c *CommandBuffer) ScratchSize() (uint64, error) {
	return c.in().ScratchSize()
}

// SetScratch has the buffers of [CommandBuffer.Alloca] be parts of a range, which several recordings may share, instead of blocks of the
// command buffer's own. The range is used as any other that is recorded: it must have [CommandBuffer.ScratchSize] bytes when the recording
// ends, else [CommandBuffer.End] fails with [ErrRange]; it may be memory of a pool, or of a [CommandBuffer.Binding]; and it is for the
// program to order executions that use it, also in recordings that this one is nested in. Its address is a multiple of [Alignment]. The
// buffer is held until the command buffer is closed and no execution is under way. The call does not block, and is safe for concurrent use.
func (c *CommandBuffer) SetScratch(r Range) error {
	return c.in().SetScratch(r.in())
}

// Barrier orders all later commands behind all earlier ones.
func (c *CommandBuffer) Barrier() (Command, error) {
	at, err := c.in().Barrier()
	return Command(at), err
}

// Fill records the operation of [Queue.Fill].
func (c *CommandBuffer) Fill(dst Range, pattern []byte, after ...Command) (Command, error) {
	at, err := c.in().Fill(dst.in(), pattern, commands(after))
	return Command(at), err
}

// Copy records the operation of [Queue.Copy].
func (c *CommandBuffer) Copy(dst, src Range, after ...Command) (Command, error) {
	at, err := c.in().Copy(dst.in(), src.in(), commands(after))
	return Command(at), err
}

// UploadCopy records the operation of [Queue.UploadCopy]. The call copies the data to pinned memory
// that the command buffer keeps.
func (c *CommandBuffer) UploadCopy(dst Range, data []byte, after ...Command) (Command, error) {
	at, err := c.in().UploadCopy(dst.in(), data, commands(after))
	return Command(at), err
}

// Dispatch records the operation of [Queue.Dispatch].
func (c *CommandBuffer) Dispatch(d Dispatch, after ...Command) (Command, error) {
	if err := c.in().Begin(work.Dispatch); err != nil {
		return -1, err
	}
	defer c.in().Leave()
	g, layout, err := d.check(c.device())
	if err != nil {
		return -1, c.in().Fail(work.Dispatch, err)
	}
	if d.Kernel.info.Params == nil { // then they are the caller's
		layout = slices.Clone(layout)
	}
	return c.recordLaunch(&g, &boundKernel{kernel: d.Kernel, layout: layout}, d.Args, d.Buffers, after)
}

// device returns the device of a command buffer that is being recorded.
func (c *CommandBuffer) device() *Device { return deviceOf(c.in().Device().Engine) }

// recordLaunch records a launch that has been checked, and copies its arguments that are not
// buffers. The caller has called Begin.
func (c *CommandBuffer) recordLaunch(g *Grid, k *boundKernel, args []unsafe.Pointer, buffers []BufferArg, after []Command) (Command, error) {
	if g.Begun != nil {
		return -1, c.in().Fail(work.Dispatch, fmt.Errorf("an event when kernel %s has begun, which no recording has: %w; launch it in a queue", k.kernel.name, driver.ErrUnsupported))
	}
	l := recording.Launch{Code: (*codeUse)(k.kernel.exe), Name: k.kernel.name, Launch: g.launch(k.kernel), Layout: k.layout, Values: args,
		Buffers: bounds(buffers), Nothing: g.nothing()}
	at, wrong, err := c.in().Launch(&l, commands(after))
	if wrong >= 0 {
		return -1, k.refused(wrong, err)
	}
	return Command(at), err
}

// bounds returns buffers as the packages below know them. It does not copy them: the types have the
// same layout.
func bounds(buffers []BufferArg) []recording.Bound {
	return unsafe.Slice((*recording.Bound)(unsafe.Pointer(unsafe.SliceData(buffers))), len(buffers))
}

// HostCall records a function that is called on a goroutine, behind all commands that were recorded
// before it and before all later ones. An error, or a panic, fails the execution, and later
// commands do not run. Executions in flight at the same time may call it at the same time.
func (c *CommandBuffer) HostCall(fn func() error) (Command, error) {
	at, err := c.in().HostCall(fn)
	return Command(at), err
}

// Timestamp records the time at which the device gets there: behind all commands before the last
// barrier, and behind the commands named. [CommandBuffer.Elapsed] tells the time between two
// timestamps. [CommandBuffer.End] makes the event. Executions that overlap have events of their
// own, in blocks (see [Queue.Execute]). If the driver does not let an event be recorded again while
// it is outstanding (Caps.RerecordEvents), each execution in flight has its own.
func (c *CommandBuffer) Timestamp(after ...Command) (Command, error) {
	at, err := c.in().Timestamp(commands(after))
	return Command(at), err
}

// Elapsed returns the time from one timestamp to another in the last execution, which must be over.
// If it is not over, or if there was none, the error is [ErrArgument]. While several executions are
// in flight, the time means nothing. Elapsed blocks until the driver has answered.
func (c *CommandBuffer) Elapsed(from, to Command) (t time.Duration, err error) {
	return c.in().Elapsed(recording.Command(from), recording.Command(to))
}

// Execute records all commands of another command buffer, which has ended, with ranges for its
// bindings. The ranges may be of bindings of this command buffer. The child's barriers are barriers
// here too.
func (c *CommandBuffer) Execute(child *CommandBuffer, bindings ...Range) error {
	return c.in().Execute(child.in(), ranges(bindings))
}

// Nest is Execute, but the child's commands come after the commands in after, and after the last
// barrier. The returned command stands for all commands of the child: a command that comes after it
// comes after each of them.
func (c *CommandBuffer) Nest(child *CommandBuffer, bindings []Range, after ...Command) (Command, error) {
	at, err := c.in().Nest(child.in(), ranges(bindings), commands(after))
	return Command(at), err
}

// End ends the recording, and makes it ready to run. It blocks while the driver makes graphs, events
// for timestamps, and memory for buffers of [CommandBuffer.Alloca]. If one of these cannot be made, End
// returns the error, and so does each execution. One kind of graph is made by the first execution: a
// graph with a fill or a copy of more than 64 KiB in memory that is bound or allocated later, if the
// driver cannot enlarge such a node. That holds for patterns of 8 bytes, and in HIP.
func (c *CommandBuffer) End() error {
	return c.in().End()
}

// Close lets go of the command buffer, recorded or not, and returns nil. Executions in flight and
// command buffers that have recorded it still use it. When they are over, it lets go of everything
// that it holds. Closing again does nothing.
func (c *CommandBuffer) Close() error {
	return c.in().Close()
}

// A recordingHost is a device as package recording sees it.
type recordingHost Device

// EnterNative calls a function of the program with the device current on the thread.
func (h *recordingHost) EnterNative(fn func() error) error { return (*Device)(h).enterNative(fn) }

// Elapsed returns the time between two events.
func (h *recordingHost) Elapsed(from, to driver.Event) (time.Duration, error) {
	return (*Device)(h).elapsed(from, to)
}
