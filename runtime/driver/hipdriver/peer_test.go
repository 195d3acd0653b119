//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestPeerCalls checks the calls of EnablePeer, which asks HIP each time, and of copies between
// devices.
func TestPeerCalls(t *testing.T) {
	for _, release := range []dl.Version{hip64, hip70} {
		f := newFake(t, release)
		d := f.device()
		open, err := New(d.lib)
		if err != nil {
			t.Fatal(err)
		}
		two, err := open.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		f.Calls()
		for range 2 { // the second call returns that access is enabled already
			if err := d.EnablePeer(two); err != nil || f.last() != 0 || f.current() != 0 {
				t.Errorf("%v; the thread's last error is %d, and its device %d", err, f.last(), f.current())
			}
			f.Want("hipDeviceCanAccessPeer(0, 1)", "hipDeviceEnablePeerAccess(1, 0)")
		}
		s, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		a, b := new(uint64), uint64(7)
		f.Calls()
		if err := d.CopyPeer(s, driver.Ptr(uintptr(unsafe.Pointer(a))), two, driver.Ptr(uintptr(unsafe.Pointer(&b))), d, 8); err != nil || *a != 7 {
			t.Errorf("CopyPeer: %v, %d", err, *a)
		}
		f.Want("hipMemcpyPeerAsync(1, 0, 8, 0x5000)")
	}
}
