// Package errs has the errors that several packages of the runtime return.
package errs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Package gpu documents these errors under the same names.
var (
	ErrClosed      = sema.ErrClosed
	ErrRange       = errors.New("out of the buffer's range")
	ErrUnallocated = errors.New("memory not allocated")
	ErrArgument    = errors.New("invalid argument")
)

// Zero returns the error of an operation that was called on a nil pointer, or on a zero value that
// was neither opened nor made. The parameter of is the type, such as "Device".
func Zero(op, of string) error { return Argument(op, "a nil or zero %s", of) }

// Argument returns the error of an operation that got an argument which can never be valid.
func Argument(op, format string, args ...any) error {
	return fmt.Errorf("gpu: %s: %s: %w", op, fmt.Sprintf(format, args...), ErrArgument)
}

// At returns err with the place where it happened in its text: "gpu: command 3, fill: ...". If the
// text of err begins with "gpu: ", or then with the operation op, At does not repeat them.
func At(place, op string, err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "gpu: "), op+": ")
	return &located{"gpu: " + place + ": " + text, err}
}

type located struct {
	text string
	err  error
}

func (l *located) Error() string { return l.text }
func (l *located) Unwrap() error { return l.err }

// A summary is several errors, the most severe first. Its text is one line for the first error,
// because the other errors often follow from the first. Unwrap returns all errors.
type summary []error

// Summarize combines errors into one, or returns nil if there are none.
func Summarize(errs []error) error {
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
