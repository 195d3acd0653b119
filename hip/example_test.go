package hip_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program reports what is missing, and continues without a GPU if it can.
func ExampleOpen() {
	os.Setenv("PUREGPU_HIP_LIBRARY", "/no/such/libamdhip64.so.6") // simulates a machine without ROCm
	defer os.Unsetenv("PUREGPU_HIP_LIBRARY")

	l, err := hip.Open(hip.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no ROCm here: computing on the CPU")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := l.GetDeviceCount()
	fmt.Println(n, "devices", err)
	// Output: no ROCm here: computing on the CPU
}

func ExampleResult_Error() {
	err := fmt.Errorf("frame 7: %w", hip.ErrorNotReady)
	fmt.Println(err)
	fmt.Println(errors.Is(err, hip.ErrorNotReady))
	// Output:
	// frame 7: hip: hipErrorNotReady (600): not finished yet; ask again
	// true
}

// Releases before 6.0 have another layout of device properties, under another name.
func ExampleLibrary_GetDeviceProperties() {
	var l hip.Library // a program gets it from Open
	if l.Has("device-properties") {
		p, err := l.GetDeviceProperties(0)
		fmt.Println(p.MultiProcessorCount, err)
		return
	}
	p, err := l.GetDevicePropertiesR0000(0)
	fmt.Println(p.MultiProcessorCount, err)
	// Output: 0 hip: GetDevicePropertiesR0000: library is not open: call hip.Open
}
