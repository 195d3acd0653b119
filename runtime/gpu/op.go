package gpu

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// An Op says what to do: fill memory, launch a kernel, execute a recording. Functions such as
// [Fill], [Copy], [Launch] and [Execute] make Ops. [Stream.Do] does Ops in order, [Queue.Submit]
// does one Op between points that it waits for and points that it signals, and [CommandBuffer.Add]
// records one Op.
//
// An Op does nothing until it is used. An Op is a value: it may be copied and used any number of
// times. Several goroutines may use it concurrently, unless it writes memory of the program, as
// [Download] and [Alloc] do, or has a Timing. An Op holds no resources. Its constructor copies
// kernel arguments, patterns and ranges into the Op. It does not copy the data of an upload, which
// is read when the Op is used, or later: see [Upload] and [UploadCopy].
//
// A constructor that gets wrong arguments returns an Op that carries an error. Do, Submit and Add
// return that error. They also make the checks that depend on the device.
//
// An Op has room for 16 kernel arguments or ranges, for 16 bindings and values of parameters
// together, or for 5 collectives. Longer lists allocate, and so do arguments of more than 16 bytes.
// Using the zero Op is [ErrArgument].
type Op struct {
	_      [0]func() // Ops cannot be compared
	kind   opKind
	values uint8 // how many elements at the end of args are values of parameters
	again  bool  // each execution of a recording calls the native function: no graph captures it
	// n is the number of ranges or of kernel arguments. They are the first n elements of args or,
	// if args is too small, in more.ranges. For a group, n is the number of collectives. Each
	// collective has three elements of args. If args is too small, the group is in more.group.
	n      int32
	obj    any            // such as a function, a kernel or a recording; for a wrong Op, the error
	data   unsafe.Pointer // host memory, event of Begun, communicator, or where Alloc puts the buffer
	more   *opMore        // the parts that do not fit; nil in most Ops
	label  string
	timing *Timing
	grid   Grid // of a native operation: Blocks[0] and Blocks[1] are the scratch size (see Scratch)
	// The field args has the ranges of the operation, first the destination. An argument that is no
	// range, such as a pattern or a scalar of a kernel, is in Range.Offset and Range.Size of an
	// element.
	args [opArgs]Range
}

// opArgs is the number of arguments that fit into an Op.
const opArgs = 16

// opMore has the parts of an Op that do not fit into the Op.
type opMore struct {
	ranges []Range           // all ranges or kernel arguments, if Op.args is too small for them
	wide   []uint64          // kernel arguments of more than 16 bytes; see setArg
	given  []recording.Given // all values of parameters, if Op.args is too small for them
	uses   []recording.Use   // uses of parameters, in Ops that are to be recorded
	group  comm.Group        // a group with more collectives than fit into Op.args
}

// An opKind says which function made an Op.
type opKind uint8

const (
	zeroOp opKind = iota
	wrongOp
	barrierOp
	fillOp
	copyOp
	prefetchOp
	uploadOp
	uploadCopyOp
	downloadOp
	readFromOp
	writeToOp
	launchOp
	executeOp
	allocOp
	freeOp
	hostCallOp
	notifyOp
	nativeOp
	writeValueOp
	waitValueOp
	recordEventOp
	waitEventOp
	collectiveOp
	controlOp
	opKinds
)

var opNames = [opKinds]string{"zero Op", "wrong Op", "barrier", "fill", "copy", "prefetch", "upload", "upload", "download", "read", "write",
	"launch", "execute", "alloc", "free", "host call", "notify", "native", "value write", "value wait", "event record", "event wait", "collective", "control"}

// Label returns the Op with a label, which errors, traces and profiles show.
func (op Op) Label(label string) Op {
	op.label = label
	return op
}

// Timed returns the Op with a Timing, which measures how long the device takes for the operation. A
// recording refuses an Op with a Timing. Use [CommandBuffer.Timestamp] there.
func (op Op) Timed(t *Timing) Op {
	op.timing = t
	return op
}

// String returns the names of the operation and of a launched kernel, and the label: for example
// `fill ("gradients")`.
func (op Op) String() string { return operation(opNames[op.kind], op.kernelName(), op.label) }

// kernelName returns the name of the kernel that the Op launches, or "".
func (op *Op) kernelName() string {
	if b, ok := op.obj.(*boundKernel); ok && b.kernel != nil {
		return b.kernel.name
	}
	return ""
}

// BadOp returns an Op that Do, Submit and Add refuse with the error err. A function that makes Ops
// can return BadOp(err) for wrong arguments. If err is nil, BadOp returns the zero Op.
func BadOp(err error) Op {
	if err == nil {
		return Op{}
	}
	return Op{kind: wrongOp, obj: err}
}

// Barrier returns an Op without work. In a queue the Op's signals are reached when its waits are
// reached. In a [Stream] the Op waits for the points given to [Stream.After]. So a later
// [Stream.Wait] waits for these points, and a later [Stream.Point] is reached only after them. In a
// recording all later commands come after all earlier ones.
func Barrier() Op { return Op{kind: barrierOp} }

// setRanges copies any number of ranges into the Op.
func (op *Op) setRanges(all []Range) {
	if op.n = int32(len(all)); len(all) > opArgs {
		op.more = &opMore{ranges: append([]Range(nil), all...)}
		return
	}
	copy(op.args[:], all)
}

func (op *Op) all() []Range {
	if op.more != nil && op.more.ranges != nil {
		return op.more.ranges
	}
	return op.args[:op.n]
}

// setData stores a slice of host memory in the Op. It does not copy the bytes.
func (op *Op) setData(data []byte) {
	op.data, op.args[1].Size = unsafe.Pointer(unsafe.SliceData(data)), uint64(len(data))
}

// bytes returns the slice that setData has stored.
func (op *Op) bytes() []byte { return unsafe.Slice((*byte)(op.data), op.args[1].Size) }

// Submit submits an operation that waits for the points in o.Wait and signals the points in
// o.Signal. Submit returns without waiting for the device to run the operation. If Submit returns
// an error, the operation does not run. Reasons are, for example, a wrong argument, an operation
// that the device does not support, no memory, and a lost or closed device. If the device is lost
// or closed, the points in o.Signal fail too.
//
// Submit may block while the driver makes something that later calls reuse: an event, pinned
// memory for an upload or a download, memory of a pool that grows, scratch memory of a queue
// ([Op.Scratch]), a graph, or an instance of a recording ([Execute]). It also blocks while a
// function of [Native] gives work to the queue, while [Alloc] frees unused memory, and while a
// cooperative launch queries [Kernel.Occupancy].
func (q *Queue) Submit(o Order, op Op) error { return q.do(&o, &op) }

// do submits an Op.
func (q *Queue) do(o *Order, op *Op) error {
	if q.isZero() {
		return errs.Zero(op.String(), "Queue")
	}
	o.label, o.timing = op.label, op.timing
	err := q.doKind(o, op)
	if err != nil && op.label != "" {
		return labelled(err, op.label)
	}
	return err
}

// labelled adds a label to an error, unless the error is a SubmitError or its text has the label.
func labelled(err error, label string) error {
	if quoted := strconv.Quote(label); !isSubmitError(err) && !strings.Contains(err.Error(), quoted) {
		return fmt.Errorf("%s: %w", quoted, err)
	}
	return err
}

func (q *Queue) doKind(o *Order, op *Op) error {
	switch op.kind {
	case fillOp:
		return q.fill(o, op)
	case copyOp:
		return q.copy(o, op.args[0], op.args[1])
	case launchOp:
		return q.launch(o, op)
	case uploadOp:
		return q.upload(o, op.args[0], op.bytes())
	case uploadCopyOp:
		return q.uploadCopy(o, op.args[0], op.bytes())
	case downloadOp:
		return q.download(o, op.bytes(), op.args[0])
	case executeOp:
		return q.execute(o, op)
	case allocOp:
		b, err := q.alloc(o, op.obj.(*Pool), op.args[0].Size)
		if err == nil {
			*(**Buffer)(op.data) = b
		}
		return err
	case freeOp:
		return q.free(o, op.args[0].Buffer)
	case barrierOp:
		return q.submit(q.get(work.Barrier), o)
	case prefetchOp:
		return q.prefetch(o, op.args[0], MemKind(op.args[1].Offset))
	case nativeOp:
		return q.native(o, op)
	case hostCallOp:
		return q.hostCall(o, op.obj.(func() error))
	case notifyOp:
		return q.notify(o, op.obj.(func()))
	}
	return q.doRare(o, op)
}

// doRare submits an Op of one of the kinds that doKind leaves out.
func (q *Queue) doRare(o *Order, op *Op) error {
	switch op.kind {
	case readFromOp:
		return q.readFrom(o, op)
	case writeToOp:
		return q.writeTo(o, op)
	case writeValueOp:
		return q.onValue(o, work.ValueWrite, op.args[0].in(), op.args[1].Offset)
	case waitValueOp:
		return q.onValue(o, work.ValueWait, op.args[0].in(), op.args[1].Offset)
	case recordEventOp:
		return q.withEvent(o, op.obj.(*events.Event), work.EventRecord)
	case waitEventOp:
		return q.withEvent(o, op.obj.(*events.Event), work.EventWait)
	case collectiveOp:
		return q.collect(o, op)
	case controlOp:
		return q.control(o, op.obj.(*control))
	case wrongOp:
		return op.obj.(error)
	}
	return errZeroOp
}

var errZeroOp = errs.Argument("do", "a zero Op: functions such as Fill and Launch make Ops")

// Do adds operations to the stream, one behind the other. Operations of other calls come before or
// after all of them. Do returns without waiting for the device to run them. Do may block as
// [Queue.Submit] may. If Do returns an error, the stream has failed with that error. The operation
// that was refused and the operations behind it were not added. Without operations Do adds nothing,
// and returns the error of a stream that has failed.
func (s *Stream) Do(ops ...Op) error {
	if s.isZero() {
		return zeroStream(ops)
	}
	if err := s.begin(); err != nil {
		return err
	}
	if len(ops) == 0 { // the points given to After are for the next operation
		s.mu.Unlock()
		return nil
	}
	var err error
	for i := range ops {
		if err = s.q.do(s.next(), &ops[i]); err != nil {
			break
		}
		s.clearWaits()
	}
	return s.end(err)
}

// zeroStream returns the error of Do of a nil or zero Stream.
func zeroStream(ops []Op) error {
	op := "do"
	if len(ops) > 0 {
		op = ops[0].String()
	}
	return errs.Zero(op, "Stream")
}

// Add records an operation as a command. The list after has earlier commands: the new command runs
// when these are done, and after the last [Barrier]. Otherwise commands between two barriers may
// run in any order, or in parallel, unless [CommandOptions].InOrder is set. Add copies the Op, and
// the data of an upload. An Op with a Timing is [ErrArgument]. So is an Op that only a queue can
// do: a download, a prefetch, reading or writing a file, an allocation, a Free, a notification, and
// recording or waiting for an event.
//
// If Add returns an error, nothing was recorded. The error names the command by number and
// operation, unless the recording has ended or is closed.
func (c *CommandBuffer) Add(op Op, after ...Command) (Command, error) {
	at, err := c.add(&op, after)
	if op.label != "" && err == nil {
		c.in().SetLabel(at, op.label)
	} else if op.label != "" {
		err = labelled(err, op.label)
	}
	return Command(at), err
}
