//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestPeers(t *testing.T) {
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
		f.calls()
		for range 2 { // the second time it is so already
			if err := d.EnablePeer(two); err != nil || f.last() != 0 || f.current() != 0 {
				t.Errorf("%v; the thread remembers %d, and is on %d", err, f.last(), f.current())
			}
			f.want("hipDeviceCanAccessPeer(0, 1)", "hipDeviceEnablePeerAccess(1, 0)")
		}
		if err := d.EnablePeer(d); err != nil {
			t.Errorf("its own memory: %v", err)
		}
		f.want("")
		s, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		a, b := new(uint64), uint64(7)
		f.calls()
		if err := d.CopyPeer(s, driver.Ptr(uintptr(unsafe.Pointer(a))), two, driver.Ptr(uintptr(unsafe.Pointer(&b))), d, 8); err != nil || *a != 7 {
			t.Errorf("CopyPeer: %v, %d", err, *a)
		}
		f.want("hipMemcpyPeerAsync(1, 0, 8, 0x5000)")
		for what, c := range map[string]struct {
			fn   string
			code hip.Result
			want error
			lost bool
		}{
			"no way":            {"apart", 1, driver.ErrUnsupported, false},
			"not supported":     {"hipDeviceEnablePeerAccess", hip.ErrorPeerAccessUnsupported, driver.ErrUnsupported, false},
			"its code too":      {"hipDeviceEnablePeerAccess", hip.ErrorPeerAccessUnsupported, hip.ErrorPeerAccessUnsupported, false},
			"cannot be asked":   {"hipDeviceCanAccessPeer", hip.ErrorInvalidDevice, hip.ErrorInvalidDevice, false},
			"refused":           {"hipDeviceEnablePeerAccess", hip.ErrorInvalidValue, hip.ErrorInvalidValue, false},
			"the device is out": {"hipDeviceEnablePeerAccess", hip.ErrorIllegalAddress, driver.ErrLost, true},
		} {
			f.set(c.fn, int(c.code))
			err := d.EnablePeer(two)
			f.set(c.fn, 0)
			e, ok := err.(*driver.Error)
			if !ok || e.Op != "enable peer" || !errors.Is(err, c.want) || e.Lost != c.lost || f.last() != 0 {
				t.Errorf("%s: %v; the thread remembers %d", what, err, f.last())
			}
		}
		other, err := newFake(t, release).driver().Open(1)
		if err != nil {
			t.Fatal(err)
		}
		for what, v := range map[string]driver.Device{"nothing": nil, "of another library": other} {
			if err := d.EnablePeer(v); !errors.Is(err, hip.ErrorInvalidDevice) {
				t.Errorf("%s: %v", what, err)
			}
			if err := errors.Join(d.CopyPeer(s, 8, d, 8, v, 8), d.CopyPeer(s, 8, v, 8, d, 8)); !errors.Is(err, hip.ErrorInvalidDevice) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
