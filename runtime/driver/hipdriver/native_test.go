//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestNativeOf(t *testing.T) {
	d := newFake(t, hip64).device()
	if n, ok := NativeOf(d); !ok || n != (Native{d.lib, 0}) {
		t.Errorf("%+v, %v", n, ok)
	}
	for _, other := range []driver.Device{nil, struct{ driver.Device }{d}} {
		if n, ok := NativeOf(other); ok || n != (Native{}) {
			t.Errorf("of another driver: %+v, %v", n, ok)
		}
	}
	if s := Stream(stream0); s != hip.Stream(stream0) {
		t.Errorf("stream %#x", s)
	}
}

// TestEnter checks that the device is current between Enter and Leave, also in nested calls. Leave
// restores the previous device, even if other code has chosen another one meanwhile.
func TestEnter(t *testing.T) {
	f := newFake(t, hip64)
	drv := f.driver()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var devs [2]*device
	for i := range devs {
		d, err := drv.Open(i)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devs[i] = d.(*device)
	}
	step := func(err error, want int) {
		t.Helper()
		if got := f.current(); err != nil || got != want {
			t.Errorf("device %d is current, want %d: %v", got, want, err)
		}
	}
	f.Calls()
	was, err := devs[1].Enter()
	step(err, 1)
	step(devs[1].Leave(was), 0)
	f.Want("hipGetDevice()", "hipSetDevice(1)", "hipSetDevice(0)")
	for _, theirs := range []int{0, 1} {
		step(devs[0].lib.SetDevice(int32(theirs)), theirs)
		outer, err := devs[0].Enter()
		step(err, 0)
		inner, err := devs[1].Enter()
		step(err, 1)
		step(devs[0].lib.SetDevice(0), 0) // other code may choose a device
		step(devs[1].Leave(inner), 0)
		step(devs[0].lib.SetDevice(1), 1)
		step(devs[0].Leave(outer), theirs)
	}
	step(devs[0].lib.SetDevice(0), 0)
}
