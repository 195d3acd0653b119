// Package errs has the errors that several packages of the runtime return.
package errs

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Package gpu documents these under the same names.
var (
	ErrClosed      = sema.ErrClosed
	ErrRange       = errors.New("out of the buffer's range")
	ErrUnallocated = errors.New("memory not allocated")
	ErrArgument    = errors.New("invalid argument")
)

// ErrZero is the error of a value that was neither opened nor made.
var ErrZero = fmt.Errorf("gpu: a zero value, which was neither opened nor made: %w", ErrArgument)

// Argument returns the error of an operation that got an argument which can never be valid.
func Argument(op, format string, args ...any) error {
	return fmt.Errorf("gpu: %s: %s: %w", op, fmt.Sprintf(format, args...), ErrArgument)
}
