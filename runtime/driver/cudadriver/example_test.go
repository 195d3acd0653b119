package cudadriver_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
)

// This program uses only CUDA. It opens the driver itself, and names the library files.
func ExampleOpen() {
	d, err := cudadriver.Open(
		cuda.Options{Path: "/no/such/libcuda.so.1"}, // as on a machine without a driver
		cudadriver.WithNCCL(nccl.Options{Path: "/opt/nccl/lib/libnccl.so.2"}),
	)
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no CUDA driver here")
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	devices, err := d.Devices()
	fmt.Println(len(devices), "devices", err)
	// Output: no CUDA driver here
}
