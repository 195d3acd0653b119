package nvml_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that shows the use of GPUs continues without a driver.
func ExampleOpen() {
	os.Setenv("PUREGPU_NVML_LIBRARY", "/no/such/libnvidia-ml.so.1") // simulates a machine without NVIDIA's driver
	defer os.Unsetenv("PUREGPU_NVML_LIBRARY")

	l, err := nvml.Open(nvml.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no NVML here")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("NVML of CUDA", nvml.FormatVersion(l.Version()))
	// Output: no NVML here
}

func ExampleLibrary_DeviceGetMemoryInfoV2() {
	l, err := nvml.Open(nvml.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Init(); err != nil {
		fmt.Println(err)
		return
	}
	defer l.Shutdown()
	n, err := l.DeviceGetCount()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range n {
		device, err := l.DeviceGetHandleByIndex(i)
		if err != nil {
			fmt.Println(err)
			continue
		}
		m := nvml.MemoryV2{Version: nvml.MemoryV2Version}
		if err := l.DeviceGetMemoryInfoV2(device, &m); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("GPU %d: %d of %d MiB are free\n", i, m.Free>>20, m.Total>>20)
	}
}

// This example lists the processes that compute on a GPU. The first call returns their number. The
// second call gets a slice with room for that many processes, and for a few that may have started
// since.
func ExampleLibrary_DeviceGetComputeRunningProcesses() {
	processes := func(l *nvml.Library, device nvml.Device) ([]nvml.ProcessInfoV2, error) {
		var list []nvml.ProcessInfoV2
		for {
			n, err := l.DeviceGetComputeRunningProcesses(device, list)
			if errors.Is(err, nvml.ErrorInsufficientSize) {
				list = make([]nvml.ProcessInfoV2, n+8)
				continue
			}
			if err != nil {
				return nil, err
			}
			return list[:n], nil
		}
	}
	_ = processes
}
