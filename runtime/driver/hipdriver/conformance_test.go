package hipdriver

import (
	"errors"
	"os"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/gputest"
)

// libraryEnv names a HIP library that the tests of this file and of library_test.go run against, on the devices that it
// finds, with and without HIP's own pools. They skip where it is not set, and where there is no device, unless PUREGPU_TEST_REQUIRE_GPU is set: then they fail.
const libraryEnv = "PUREGPU_TEST_HIP_LIBRARY"

// namedLibrary opens that library.
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

// TestNativePoolsConformance does it with HIP's own pools.
func TestNativePoolsConformance(t *testing.T) {
	conform(t, libraryWithPools(t), nil, WithPools())
}

// libraryWithPools is namedLibrary for one whose device 0 has pools.
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

// TestLibraryFar is the other process of the tests of what processes share.
func TestLibraryFar(t *testing.T) {
	gputest.BeFar(t, func() (driver.Driver, error) { return New(namedLibrary(t)) })
}

// conform runs the suite. stall, if it is not nil, is the harness's.
func conform(t *testing.T, lib *hip.Library, stall func(device int) (resume func()), opts ...Option) {
	gputest.Run(t, func(t *testing.T) gputest.Harness {
		d, err := New(lib, opts...)
		if err != nil {
			t.Fatal(err)
		}
		var far func(t *testing.T) gputest.Far
		if stall == nil { // other processes have no part in what stands for a GPU
			far = func(t *testing.T) gputest.Far { return gputest.StartFar(t, "TestLibraryFar") }
		}
		return gputest.Harness{
			Driver:  d,
			Kernels: takesPTX(d),
			Stall:   stall,
			Far:     far,
			Brief:   stall != nil, // no GPU: the simulated ones do the longest
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
