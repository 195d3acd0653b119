package cuda_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program reports what is missing, and continues without a GPU if it can.
func ExampleOpen() {
	os.Setenv("PUREGPU_CUDA_LIBRARY", "/no/such/libcuda.so.1") // simulates a machine without a driver
	defer os.Unsetenv("PUREGPU_CUDA_LIBRARY")

	l, err := cuda.Open(cuda.Options{})
	switch {
	case errors.Is(err, dl.ErrNotFound), errors.Is(err, dl.ErrUnsupported):
		fmt.Println("no CUDA driver here: computing on the CPU")
		return
	case err != nil:
		fmt.Println("the CUDA driver is here, but of no use:", err)
		return
	}
	if err := l.Init(0); err != nil {
		fmt.Println("no GPU:", err)
		return
	}
	n, err := l.DeviceGetCount()
	fmt.Println(n, "devices", err)
	// Output: no CUDA driver here: computing on the CPU
}

func ExampleResult_Error() {
	var err error = cuda.ErrorNotReady
	fmt.Println(err)
	fmt.Println(cuda.Result(12345)) // a code that a newer driver added
	// Output:
	// cuda: CUDA_ERROR_NOT_READY (600): not finished yet; ask again
	// cuda: unknown code 12345
}

// An error code is a constant. errors.Is finds it in a wrapped error.
func Example_errorsIs() {
	poll := func() error { return fmt.Errorf("frame 7: %w", cuda.ErrorNotReady) }

	if err := poll(); errors.Is(err, cuda.ErrorNotReady) {
		fmt.Println("later")
	}
	// Output: later
}

// Has checks a group of functions that were introduced together. A call of a missing function also
// returns an error that says so.
func Example_optionalFunctions() {
	var l cuda.Library // a program gets it from Open
	if !l.Has("memory-pools") {
		fmt.Println("no memory pools")
	}
	_, err := l.LogsCurrent(0)
	if missing, ok := errors.AsType[*dl.SymbolError](err); ok {
		fmt.Printf("%s needs CUDA %s, and this is %s\n", missing.Symbol, cuda.FormatVersion(missing.Since), cuda.FormatVersion(missing.Found))
	} else {
		fmt.Println(err)
	}
	// Output:
	// no memory pools
	// cuda: LogsCurrent: library is not open: call cuda.Open
}
