//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// errSink keeps the compiler from removing the tested computation.
var errSink error

// TestCallsAllocateNothing checks that the kinds of calls in a program's inner loop do not
// allocate, both when they succeed and when they return not ready.
func TestCallsAllocateNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	l := openFake(t, 13000, nil)
	counter := new(uint64)
	params := []unsafe.Pointer{unsafe.Pointer(counter)}
	operations := []AtomicOperation{3, 4, 5}
	capabilities := make([]AtomicOperationCapability, len(operations))
	for _, code := range []Result{Success, ErrorNotReady} {
		var want error
		if code != Success {
			want = code
		}
		for name, f := range map[string]func() error{
			"EventQuery":  func() error { return l.EventQuery(Event(code)) },
			"StreamQuery": func() error { return l.StreamQuery(Stream(code)) },
			"DeviceGetAttribute": func() error {
				v, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, Device(code))
				if v != int32(DeviceAttributeWarpSize)*10 {
					t.Errorf("DeviceGetAttribute = %d", v)
				}
				return err
			},
			"DeviceGetHostAtomicCapabilities": func() error {
				err := l.DeviceGetHostAtomicCapabilities(capabilities, operations, Device(code))
				if capabilities[0] != 7 || capabilities[2] != 11 {
					t.Errorf("capabilities %v", capabilities)
				}
				return err
			},
			"LaunchKernel": func() error { return l.LaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, Stream(code), params, nil) },
		} {
			if n := testing.AllocsPerRun(100, func() { errSink = f() }); n != 0 {
				t.Errorf("%s with code %d allocates %v times", name, int32(code), n)
			}
			if errSink != want {
				t.Errorf("%s: %v, want %v", name, errSink, want)
			}
		}
	}
	if *counter != 2*101 {
		t.Errorf("%d launches, want %d", *counter, 2*101)
	}
}

// TestSlowCallsAnswerAlike checks that the slow path returns the same results as the fast path.
func TestSlowCallsAnswerAlike(t *testing.T) {
	l := openFake(t, 13000, nil)
	l.HeapFrames()
	counter := new(uint64)
	operations := []AtomicOperation{3, 4, 5}
	capabilities := make([]AtomicOperationCapability, len(operations))
	if v, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, 600); v != int32(DeviceAttributeWarpSize)*10 || err != ErrorNotReady {
		t.Errorf("DeviceGetAttribute = %d, %v", v, err)
	}
	if err := l.DeviceGetHostAtomicCapabilities(capabilities, operations, 0); capabilities[1] != 9 || err != nil {
		t.Errorf("DeviceGetHostAtomicCapabilities = %v, %v", capabilities, err)
	}
	if err := l.LaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, 0, []unsafe.Pointer{unsafe.Pointer(counter)}, nil); *counter != 1 || err != nil {
		t.Errorf("LaunchKernel counts %d, %v", *counter, err)
	}
	if err := l.EventQuery(12345); err != Result(12345) {
		t.Errorf("EventQuery: %v", err)
	}
}
