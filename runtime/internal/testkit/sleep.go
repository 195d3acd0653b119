package testkit

import (
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// SleepArgs are the arguments of the kernel that [OpenSleeper] loads.
type SleepArgs struct{ Nanoseconds uint64 }

// OpenSleeper opens a simulated device and loads a kernel that takes as long as its argument says.
func OpenSleeper(t testing.TB, caps driver.Caps, o gpu.Options) (*simdriver.Driver, *gpu.Device, *gpu.TypedKernel[SleepArgs]) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Strict: true, Caps: &caps, Kernels: map[string]simdriver.Kernel{
		"sleep": simdriver.MustKernel(func(_ *simdriver.Grid, ns uint64) { time.Sleep(time.Duration(ns)) }),
	}})
	t.Cleanup(func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
	})
	dev := OpenDevice(t, d, 0, o)
	x, err := dev.Load(simdriver.Image("sleep"))
	Must(t, err)
	k, err := x.Kernel("sleep")
	Must(t, err)
	kernel, err := gpu.Typed[SleepArgs](k)
	Must(t, err)
	return d, dev, kernel
}
