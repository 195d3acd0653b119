package hipdriver

import (
	"errors"
	"os"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// libraryEnv is the variable that names a HIP library for the tests of this file and of
// library_test.go. These tests run on the devices that the library finds, with and without HIP's
// own pools. They skip if the variable is not set. They also skip if there is no device, but fail
// then if PUREGPU_TEST_REQUIRE_GPU is set.
const libraryEnv = "PUREGPU_TEST_HIP_LIBRARY"

// namedLibrary opens the library that libraryEnv names.
func namedLibrary(t testing.TB) *hip.Library {
	t.Helper()
	path := os.Getenv(libraryEnv)
	if path == "" {
		t.Skipf("set %s to test against a HIP library", libraryEnv)
	}
	lib, err := hip.Open(hip.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(lib); errors.Is(err, hip.ErrorNoDevice) && os.Getenv("PUREGPU_TEST_REQUIRE_GPU") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return lib
}

// TestLibraryConformance runs the runtime's suite on the devices that the library finds.
func TestLibraryConformance(t *testing.T) {
	conform(t, namedLibrary(t), nil)
}

// TestNativePoolsConformance runs the suite with HIP's own pools.
func TestNativePoolsConformance(t *testing.T) {
	conform(t, libraryWithPools(t), nil, WithPools())
}

// libraryWithPools opens the named library. It skips the test if device 0 has no pools.
func libraryWithPools(t testing.TB) *hip.Library {
	t.Helper()
	lib := namedLibrary(t)
	drv, err := New(lib, WithPools())
	if err != nil {
		t.Fatal(err)
	}
	d, err := drv.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.Caps().Pools {
		_, err := d.(*device).DefaultPool()
		t.Skip(err)
	}
	return lib
}

// TestLibraryFar is the second process of the sharing tests.
func TestLibraryFar(t *testing.T) {
	gputest.BeFar(t, func() (driver.Driver, error) { return New(namedLibrary(t)) })
}

// conform runs the runtime's suite. If stall is not nil, the suite uses it to hold back a device's
// work.
func conform(t *testing.T, lib *hip.Library, stall func(device int) (resume func()), opts ...Option) {
	gputest.Run(t, func(t *testing.T) gputest.Harness {
		d, err := New(lib, opts...)
		if err != nil {
			t.Fatal(err)
		}
		var far func(t *testing.T) gputest.Far
		if stall == nil { // other processes cannot share a fake GPU
			far = func(t *testing.T) gputest.Far { return gputest.StartFar(t, "TestLibraryFar") }
		}
		return gputest.Harness{
			Driver:  d,
			Kernels: takesPTX(d),
			Stall:   stall,
			Far:     far,
			Brief:   stall != nil, // brief with a fake GPU, because the simulated GPU already runs the long tests
			Current: func() any {
				device, err := lib.GetDevice()
				if err != nil {
					t.Fatal(err)
				}
				return device
			},
			SetCurrent: func(device int) {
				if err := lib.SetDevice(int32(device)); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
