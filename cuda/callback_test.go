//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// onSmallStack runs f on a new goroutine. The goroutine's stack is small, so it moves at the first
// deep call.
func onSmallStack(f func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// TestLogCallbackMovesTheStack registers a function that the driver runs inside a failing call,
// before the driver writes the call's results. The function moves the caller's stack. The results
// must still arrive, so a call's frame must not be on that stack.
func TestLogCallbackMovesTheStack(t *testing.T) {
	l := openFake(t, 13000, nil)
	calls := 0
	cb, err := dl.Callback(func(data uintptr, level uint32, message unsafe.Pointer, length uintptr) {
		testlib.Deep(2000)
		calls++
		if text := unsafe.String((*byte)(message), length); data != 4711 || LogLevel(level) != LogLevelWarning || text != "no such device" {
			t.Errorf("logged %q, level %d, for %d", text, level, data)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := l.LogsRegisterCallback(LogsCallback(cb), 4711)
	if handle != 1 || err != nil {
		t.Fatalf("LogsRegisterCallback = %#x, %v", handle, err)
	}
	const rounds = 20
	for range rounds {
		onSmallStack(func() {
			if v, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, 101); v != int32(DeviceAttributeWarpSize)*10 || err != ErrorInvalidDevice {
				t.Errorf("DeviceGetAttribute = %d, %v", v, err)
			}
		})
	}
	if err := l.LogsUnregisterCallback(handle); err != nil {
		t.Errorf("LogsUnregisterCallback: %v", err)
	}
	if _, err := l.DeviceGetAttribute(DeviceAttributeWarpSize, 101); err != ErrorInvalidDevice || calls != rounds {
		t.Errorf("%d calls of the function, want %d; %v", calls, rounds, err)
	}
}

// TestCallbackDuringCall tests a call that runs a Go function before the call returns.
func TestCallbackDuringCall(t *testing.T) {
	l := openFake(t, 13000, nil)
	cb, err := dl.Callback(func(blockSize int32) uintptr {
		testlib.Deep(2000)
		return uintptr(blockSize)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		onSmallStack(func() {
			const sum = 32 + 64 + 128 + 256 + 512 + 1024
			if grid, block, err := l.OccupancyMaxPotentialBlockSize(600, OccupancyB2DSize(cb), 5, 77); grid != sum+5 || block != 77 || err != ErrorNotReady {
				t.Errorf("OccupancyMaxPotentialBlockSize = %d, %d, %v", grid, block, err)
			}
		})
	}
	if grid, block, err := l.OccupancyMaxPotentialBlockSize(0, 0, 5, 77); grid != 5 || block != 77 || err != nil {
		t.Errorf("without a callback: %d, %d, %v", grid, block, err)
	}
}
