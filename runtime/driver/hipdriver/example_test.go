package hipdriver_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/hipdriver"
)

// A program that uses only HIP opens this driver directly, here with HIP's own memory pools.
func ExampleOpen() {
	d, err := hipdriver.Open(
		hip.Options{Path: "/no/such/libamdhip64.so.7"}, // as on a machine without ROCm
		hipdriver.WithPools(),
	)
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no HIP here")
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	devices, err := d.Devices()
	fmt.Println(len(devices), "devices", err)
	// Output: no HIP here
}
