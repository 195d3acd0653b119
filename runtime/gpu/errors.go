package gpu

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

var (
	// ErrClosed is the error of using an object that has been closed. It is also the error of waits
	// for a closed semaphore, and of work that was parked when its device or queue was closed.
	ErrClosed = sema.ErrClosed

	// ErrValue is the error of a signal that does not raise its semaphore's value.
	ErrValue = sema.ErrValue

	// ErrRange is the error of an access outside a buffer.
	ErrRange = errs.ErrRange

	// ErrUnallocated is the error of using pool memory before it is allocated or after it is freed.
	ErrUnallocated = errs.ErrUnallocated

	// ErrLost is the error of a lost device. A device is lost for example after a fault of a
	// kernel. A lost device accepts no more work.
	ErrLost = driver.ErrLost

	// ErrOutOfMemory is the error of an allocation for which there is no memory.
	ErrOutOfMemory = driver.ErrOutOfMemory

	// ErrUnsupported is the error of something that the device, its driver or a library cannot do.
	ErrUnsupported = driver.ErrUnsupported

	// ErrArgument is the error of an argument that the call does not take.
	ErrArgument = errs.ErrArgument
)

// nilSemaphore returns the error of an operation on a nil semaphore.
func nilSemaphore(op string) error { return errs.Argument(op, "a nil Semaphore") }

// A SubmitError is the error of a submission that failed after it was accepted. Submissions that
// wait for the failed submission fail with the same error, so the error names the operation that
// failed first. If the device is lost, the error may name other work that was in flight.
type SubmitError struct {
	Op     string // the operation, for example "fill"
	Kernel string // the name of the launched kernel; "" for other operations
	Label  string // the label of the Op
	Queue  string // for example `queue 1`, or `queue "copies"` if the queue has a name
	Device string
	Err    error

	received *atomic.Bool // set when the program receives the error (see receipt); nil if Close never returns it
}

func (e *SubmitError) Error() string {
	why := strings.TrimPrefix(fmt.Sprint(e.Err), "gpu: device "+e.Device+": ")
	return fmt.Sprintf("gpu: %s on %s of %s: %s", operation(e.Op, e.Kernel, e.Label), e.Queue, e.Device, why)
}

// operation returns the name of an operation for messages: `launch of saxpy ("layer 3")`.
func operation(op, kernel, label string) string {
	if kernel != "" {
		op += " of " + kernel
	}
	if label != "" {
		op += " (" + strconv.Quote(label) + ")"
	}
	return op
}

func (e *SubmitError) Unwrap() error { return e.Err }

// A PanicError is a panic in a function of the program. If the function of a [HostCall] or of
// [Native] panics, the operation fails with a PanicError. A panic in the function of a [Notify] is
// logged.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack trace, as [runtime/debug.Stack] returns it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("function panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns Value if Value is an error, otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
