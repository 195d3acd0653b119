// Package example is what the example programs share: a flag, and how they end where something is missing.
package example

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/cuda"
)

// A MissingError says that the machine lacks what a program needs. It is no failure of the program's.
type MissingError struct{ Err error }

func (e *MissingError) Error() string { return e.Err.Error() }
func (e *MissingError) Unwrap() error { return e.Err }

// Missing wraps the error of opening a library.
func Missing(err error) error {
	if err == nil {
		return nil
	}
	return &MissingError{err}
}

// noGPU are the answers of cuInit that mean that there is no GPU to use; any other is a failure.
var noGPU = []error{
	cuda.ErrorNoDevice, cuda.ErrorStubLibrary, cuda.ErrorDeviceUnavailable, cuda.ErrorDeviceNotLicensed,
	cuda.ErrorSystemNotReady, cuda.ErrorSystemDriverMismatch, cuda.ErrorCompatNotSupportedOnDevice, cuda.ErrorOperatingSystem,
}

// Init starts CUDA. Where there is no GPU to use, the error is a MissingError.
func Init(lib interface{ Init(flags uint32) error }) error {
	err := lib.Init(0)
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("the CUDA driver finds no GPU to use: %w", err)
	if slices.ContainsFunc(noGPU, func(e error) bool { return errors.Is(err, e) }) {
		return Missing(wrapped)
	}
	return fmt.Errorf("start CUDA: %w", err)
}

// Main runs a program with its arguments and returns its exit status. Something missing is said and is no failure,
// unless the flag -require-gpu is given.
func Main(name string, args []string, stdout, stderr io.Writer, run func(stdout io.Writer) error) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	require := flags.Bool("require-gpu", false, "fail if there is no GPU")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: takes no arguments, got %q\n", name, flags.Args())
		return 2
	}
	err := run(stdout)
	var missing *MissingError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &missing) && !*require:
		fmt.Fprintf(stdout, "%s: not run: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return 1
}

// Release gives back v in a deferred call, and adds its failure to *err.
func Release[T any](err *error, what string, release func(T) error, v T) {
	if e := release(v); e != nil {
		*err = errors.Join(*err, fmt.Errorf("%s: %w", what, e))
	}
}
