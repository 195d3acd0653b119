package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

var (
	// ErrClosed is the failure of what was closed, or destroyed, with work or waiters left.
	ErrClosed = sema.ErrClosed

	// ErrValue is a signal that does not raise its semaphore: every value is signalled once at the most.
	ErrValue = sema.ErrValue

	// ErrRange is an access outside a buffer.
	ErrRange = errors.New("out of the buffer's range")

	// ErrUnallocated is a use of memory from a pool that comes before its allocation or after its deallocation.
	ErrUnallocated = errors.New("memory not allocated")

	// ErrAborted is the failure of a channel that was aborted.
	ErrAborted = errors.New("aborted")

	// ErrSuspended is the failure of what was submitted to a channel while it was suspended.
	ErrSuspended = errors.New("suspended")

	// ErrArgument is an argument that can never be right.
	ErrArgument = errors.New("invalid argument")
)

// errZero is the error of a value that was neither opened nor made.
var errZero = fmt.Errorf("gpu: a zero value, which was neither opened nor made: %w", ErrArgument)

// errNoSemaphore is the error of a method of no semaphore.
var errNoSemaphore = fmt.Errorf("gpu: no semaphore: %w", ErrArgument)

// A SubmitError is what a submission failed with after it was accepted. What waits for it fails with the same one, so that it
// names where the failure began.
type SubmitError struct {
	Op     string // what was submitted: "fill"
	Kernel string // that was launched, by its name; "" if it was another operation
	Label  string // of [Order]
	Queue  string // to which: "queue 1", or by its name
	Device string
	Err    error

	received *atomic.Bool // by the program; nil if nobody asks
}

func (e *SubmitError) Error() string {
	why := strings.TrimPrefix(fmt.Sprint(e.Err), "gpu: device "+e.Device+": ")
	return fmt.Sprintf("gpu: %s on %s of %s: %s", operation(e.Op, e.Kernel, e.Label), e.Queue, e.Device, why)
}

// operation is what an operation is called in messages: `dispatch of saxpy ("layer 3")`.
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

// A summary is several errors, the gravest first. As text it is one line, for the others often follow from that; all are behind Unwrap.
type summary []error

// summarize returns what errors there are as one, or nil.
func summarize(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	s := summary(errs)
	return &s
}

func (s *summary) Error() string {
	text, _, _ := strings.Cut((*s)[0].Error(), "\n")
	return fmt.Sprintf("%s (and %d more, which errors.As finds)", text, len(*s)-1)
}

func (s *summary) Unwrap() []error { return *s }

// A PanicError is the panic of a function of the program's: of a host call, which fails with it, or of a notification, where it is logged.
type PanicError struct {
	Value any    // that it panicked with
	Stack []byte // where, as of [runtime/debug.Stack]
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("function panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func argument(op, format string, args ...any) error {
	return fmt.Errorf("gpu: %s: %s: %w", op, fmt.Sprintf(format, args...), ErrArgument)
}
