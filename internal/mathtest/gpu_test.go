//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"errors"
	"os"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// openGPU returns the first device of CUDA. Without a device the test is skipped, or fails if
// PUREGPU_TEST_REQUIRE_GPU is set.
func openGPU(t testing.TB) *gpu.Device {
	t.Helper()
	var dev *gpu.Device
	d, err := drivers.Open(drivers.CUDA)
	if err == nil {
		dev, err = gpu.Open(d, 0, gpu.Options{})
	}
	if err != nil {
		if os.Getenv("PUREGPU_TEST_REQUIRE_GPU") != "" {
			t.Fatalf("no GPU: %v", err)
		}
		t.Skipf("no GPU: %v", err)
	}
	t.Cleanup(func() { must(t, dev.Close()) })
	return dev
}

// has skips the test if the error is that a library is missing on this machine. It fails the test
// for any other error.
func has(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, dl.ErrNotFound) {
		t.Skip(err)
	}
	must(t, err)
}
