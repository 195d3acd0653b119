package drivers_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// A program that runs with or without a GPU opens the best driver that has a device.
func ExampleBest() {
	d, err := drivers.Best(drivers.WithSim(simdriver.Config{Devices: 2}))
	if err != nil {
		fmt.Println(err) // if PUREGPU_DRIVER names a driver that cannot be used
		return
	}
	devices, err := d.Devices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, info := range devices {
		fmt.Printf("%s: device %d is %s\n", d.Name(), info.Index, info.Name)
	}
}

// The user chooses the driver with an environment variable.
func ExampleBest_environment() {
	os.Setenv("PUREGPU_DRIVER", "sim")
	defer os.Unsetenv("PUREGPU_DRIVER")
	d, err := drivers.Best()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Name())

	os.Setenv("PUREGPU_DRIVER", "vulkan")
	_, err = drivers.Best()
	fmt.Println(err)
	// Output:
	// sim
	// drivers: the environment variable PUREGPU_DRIVER is "vulkan": unknown driver; use cuda, hip or sim, or leave it empty for the best
}

// A server that needs a real GPU exits with the errors of all drivers.
func ExampleWithoutSim() {
	_, err := drivers.Best(drivers.WithoutSim())
	if errors.Is(err, drivers.ErrNoGPU) {
		fmt.Println(err)
	}
}

// A program sends the warning about the simulated GPU to its own log.
func ExampleWithLogger() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("part", "gpu")
	d, err := drivers.Best(drivers.WithLogger(logger))
	if err != nil {
		fmt.Println(err)
		return
	}
	logger.Info("open", "driver", d.Name())
}

// A program that ships NCCL says where the library's file is. The file is opened when a call first
// needs NCCL.
func ExampleWithNCCL() {
	d, err := drivers.Open(drivers.CUDA, drivers.WithNCCL(nccl.Options{Path: "/opt/program/lib/libnccl.so.2"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Name())
}

// A test runs on the simulated GPU, which is the same on every machine.
func ExampleOpen() {
	d, err := drivers.Open(drivers.Sim, drivers.WithSim(simdriver.Config{Devices: 2}))
	if err != nil {
		fmt.Println(err)
		return
	}
	devices, err := d.Devices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, info := range devices {
		fmt.Println(info.Index, info.Name)
	}

	_, err = drivers.Open("vulkan")
	fmt.Println(errors.Is(err, drivers.ErrUnknown))
	// Output:
	// 0 Simulated GPU 0
	// 1 Simulated GPU 1
	// true
}

// A program finds a device by the name that a user gives.
func ExampleFind() {
	d, err := drivers.Open(drivers.Sim, drivers.WithSim(simdriver.Config{Devices: 2}))
	if err != nil {
		fmt.Println(err)
		return
	}
	index, err := drivers.Find(d, "1")
	fmt.Println(index, err)
	_, err = drivers.Find(d, "7")
	fmt.Println(errors.Is(err, drivers.ErrNoDevice))
	_, err = drivers.Find(d, "the fast one")
	fmt.Println(errors.Is(err, drivers.ErrSpec))
	// Output:
	// 1 <nil>
	// true
	// true
}
