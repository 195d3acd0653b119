package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A NativeCall is the argument of a function given to [Native]. Packages cudadriver and hipdriver
// convert the device and the stream to handles of CUDA and HIP (NativeOf, Stream). The simulated
// GPU needs no conversion.
type NativeCall struct {
	Device driver.Device // current on the thread
	Stream driver.Stream // the native stream that the function gives work to
	// Ptrs are the addresses of the ranges, in order. If the operation has scratch memory
	// ([Op.Scratch]), the address of the scratch memory is the last element. The slice is valid
	// until the function returns.
	Ptrs []driver.Ptr
}

// Native returns an Op that calls fn. The function fn gives work to a stream, through the driver's
// own API or a library such as cuBLAS. This work is the operation: it runs after the waits, and
// before the signals. The argument name is the Op's label. The arguments uses are the ranges of
// memory that the work uses. The buffers of the ranges are held until the operation is done. Memory
// of pools must have been allocated when fn is called.
//
// Each call of Do or Submit with the Op leads to at most one call of fn. Do or Submit itself calls
// fn if the work for all waits has been issued; otherwise a goroutine of the runtime does. If a
// wait fails or the device is lost or closed before the call, fn is not called. fn must only give
// work to the stream, and return soon: other work of this queue is issued only when fn has
// returned. fn must not use this package, except for functions that only return information, such
// as [Buffer.Size]. fn must not use the [Stream] of the operation, wait for the native stream,
// begin or end a capture, or end the goroutine that runs fn. If fn returns an error, the signals
// fail with that error. If fn panics, the signals fail with a [PanicError]. Work that fn had given
// to the stream by then still runs, and the ranges are held until that work is over.
//
// In a recording that becomes a graph, fn is called when the graph is made, if the driver can
// capture a stream's work (Caps.Capture). End makes the graph if the addresses of all ranges are
// known by then, otherwise the first execution makes it. An execution calls fn again if a range has
// moved since the previous execution, or if the execution makes an instance ([Execute]) or runs
// without the graph. fn should then give the stream the same work with new addresses and arguments.
// If the driver cannot put the new work into the graph, the graph is made again. Without capture,
// each execution calls fn. A recording makes only one call of fn at a time. If this recording is
// nested in others, those recordings call fn too. During a capture fn must not make a call that
// waits for the device.
//
// If the driver gives no access to its streams (Caps.Native), the error is [ErrUnsupported].
func Native(name string, fn func(NativeCall) error, uses ...Range) (op Op) {
	if fn == nil {
		return BadOp(errs.Argument("native", "%q has no function", name))
	}
	op.kind, op.obj, op.label = nativeOp, fn, name
	op.setRanges(uses)
	return op
}

// Scratch returns the Op of a [Native] with scratch memory: size bytes of device memory whose
// contents are undefined before and after the operation. The address of the memory is the last
// element of [NativeCall].Ptrs, and a multiple of [Alignment]. If size is 0, there is no scratch
// memory. For an Op that is not a Native, the error is [ErrArgument].
//
// All native operations of a queue, and of its Streams, share one block of scratch memory. The
// first operation with scratch memory allocates the block, and a later operation that needs more
// bytes allocates a larger block. Do or Submit blocks while the driver allocates. The queue keeps
// the largest block until the queue or the device is closed. In a recording, the operation gets its
// scratch memory from [CommandBuffer.Scratch].
func (op Op) Scratch(size uint64) Op {
	switch op.kind {
	case nativeOp:
		op.grid.Blocks[0], op.grid.Blocks[1] = uint32(size), uint32(size>>32)
	case zeroOp, wrongOp:
	default:
		return BadOp(errs.Argument(opNames[op.kind], "only a native operation has scratch memory"))
	}
	return op
}

// scratch returns the size of a native operation's scratch memory.
func (op *Op) scratch() uint64 { return uint64(op.grid.Blocks[0]) | uint64(op.grid.Blocks[1])<<32 }

// queueScratch is the scratch memory of a queue's native operations, which run one after the other.
type queueScratch struct {
	mu     sync.Mutex     // protects the following fields
	buffer *memory.Buffer // nil until an operation needs scratch memory
	closed bool
}

// hold returns a buffer of at least size bytes, and holds the buffer for the caller. If the queue
// is closed, hold returns nil without an error.
func (x *queueScratch) hold(q *Queue, size uint64) (*memory.Buffer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, nil
	}
	if x.buffer == nil || x.buffer.Size() < size {
		b, err := q.dev.memory.Alloc(driver.DeviceMem, size)
		if err != nil {
			return nil, fmt.Errorf("gpu: native: scratch memory: %w", err)
		}
		if x.buffer != nil {
			x.buffer.Close() // operations in flight still hold it
		}
		x.buffer = b
	}
	return x.buffer, x.buffer.Hold()
}

func (x *queueScratch) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.buffer == nil {
		return nil
	}
	return x.buffer.Close()
}

func (q *Queue) native(o *Order, op *Op) error {
	if q.dev.faces.Natives == nil {
		return fmt.Errorf("gpu: native: driver %s: %w", q.dev.native.Driver.Name(), driver.ErrUnsupported)
	}
	s := q.get(work.Native)
	if q.dev.failed() != nil {
		// The submission fails with the device's error, whatever the state of its buffers.
		return q.submit(s, o)
	}
	for i, r := range op.all() {
		r := r.in()
		_, err := r.Check("native", q.dev.mem())
		if err == nil {
			err = r.Usable("native", q.dev.mem())
		}
		if err == nil {
			if err = s.hold(r.Buffer); err != nil {
				err = fmt.Errorf("gpu: native: %w", err)
			}
		}
		if err != nil {
			s.drop()
			return fmt.Errorf("range %d: %w", i, err)
		}
		s.uses = append(s.uses, r)
	}
	if size := op.scratch(); size > 0 {
		b, err := q.scratch.hold(q, size)
		if err != nil {
			s.drop()
			return err
		}
		if b != nil { // if b is nil, the queue is closed and the submission fails
			s.uses = append(s.uses, memory.Range{Buffer: b, Size: size})
			s.keep(b)
		}
	}
	s.native = op.obj.(func(NativeCall) error)
	return q.submit(s, o)
}

// nativePart has the fields of a record that only a native operation needs.
type nativePart struct {
	native func(NativeCall) error
	uses   []memory.Range
	ptrs   []driver.Ptr // the addresses of the ranges in uses, for the function
}

// nativeAction is the [engine.Action] that calls the function of a [Native].
type nativeAction struct{ engine.SimpleAction }

func (nativeAction) Blocks(*engine.Submission) bool { return true }

func (nativeAction) HoldsUp(*engine.Submission, *engine.Timeline) bool { return true }

func (nativeAction) Issue(s *engine.Submission, tl *engine.Timeline) (bool, error) {
	return recordOf(s).callNative(tl)
}

// callNative calls the function of a [Native]. started reports whether the function was called. A
// function that fails may still have given work to the stream.
func (s *record) callNative(tl *engine.Timeline) (started bool, err error) {
	s.ptrs = s.ptrs[:0]
	for _, r := range s.uses {
		ptr, err := r.Address().Resolve()
		if err != nil {
			return false, err
		}
		s.ptrs = append(s.ptrs, ptr)
	}
	err = s.q.dev.enterNative(func() error { return s.native(NativeCall{tl.Device.Native, tl.Stream, s.ptrs}) })
	return !errors.Is(err, errNotEntered), err
}

// errNotEntered is the error of a call of enterNative that could not make the device current, and
// so did not call the function.
var errNotEntered = errors.New("gpu: the device could not be made current on the thread")

// enterNative calls a function of the program with the device current on the thread. It turns a
// panic of the function into an error.
func (d *Device) enterNative(fn func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was, err := d.faces.Natives.Enter()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotEntered, err)
	}
	returned := false
	defer func() {
		err = errors.Join(err, d.faces.Natives.Leave(was))
		if !returned {
			panic("gpu: a function given to Native has ended its goroutine, which holds the queue")
		}
	}()
	err = guard(fn)
	returned = true
	return err
}

// addNative records a [Native].
func (c *CommandBuffer) addNative(op *Op, after []recording.Command) (recording.Command, error) {
	fn := op.obj.(func(NativeCall) error)
	var call func(driver.Stream, []driver.Ptr) error
	if c.in().Device() != nil {
		d := c.device()
		call = func(h driver.Stream, ptrs []driver.Ptr) error {
			return d.enterNative(func() error { return fn(NativeCall{d.native.Native, h, ptrs}) })
		}
	}
	uses := op.all()
	if size := op.scratch(); size > 0 {
		b, err := c.in().Scratch(size)
		if err != nil {
			return -1, err
		}
		uses = append(slices.Clip(uses), (*Buffer)(b).All())
	}
	return c.in().Native(call, ranges(uses), op.again, after)
}
