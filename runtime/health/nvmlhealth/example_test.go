package nvmlhealth_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/health"
	"github.com/puregpu/puregpu/runtime/health/nvmlhealth"
)

// A program watches its GPUs if NVML is installed, and runs without it otherwise.
func ExampleOpen() {
	var devices []driver.Info // devices that the program has opened

	source, err := nvmlhealth.Open(nvml.Options{Path: "/no/such/libnvidia-ml.so.1"}) // simulates a machine without a driver
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no NVML here: nobody watches the GPUs")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	w, err := health.Watch(source, devices, health.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	// Output: no NVML here: nobody watches the GPUs
}
