package testkit

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// Profile sets a profiler for the process's simulated GPUs, until the test ends. The profiler's
// Start returns err, and timer makes the timer of each device.
func Profile(t testing.TB, err error, timer func() driver.NodeTimer) {
	was := observe.Profilers.Swap(&observe.Profiler{
		Driver: "sim",
		Start:  func() (string, error) { return "the test's profiler", err },
		Timer:  func(driver.Device) driver.NodeTimer { return timer() },
	})
	t.Cleanup(func() { observe.Profilers.Store(was) })
}
