//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestIPC has memory shared by processes, with the flags of each release.
func TestIPC(t *testing.T) {
	for release, flags := range map[dl.Version]string{hip57: "0", hip64: "1"} {
		f := newFake(t, release)
		d := f.device()
		m, err := d.Alloc(driver.DeviceMem, 4096)
		if err != nil {
			t.Fatal(err)
		}
		h, err := d.ExportMem(m)
		if err != nil {
			t.Fatal(err)
		}
		f.calls()
		o, err := d.OpenMem(h)
		if err != nil {
			t.Fatal(err)
		}
		if o.Kind != driver.DeviceMem || o.Ptr != m.Ptr || o.Size != 4096-256 {
			t.Errorf("opened %+v", o) // the fake has the address lie 256 bytes behind the allocation's begin
		}
		if err := d.CloseMem(o); err != nil {
			t.Error(err)
		}
		f.want("hipIpcOpenMemHandle(memory, "+flags+")", "hipMemGetAddressRange()", "hipIpcCloseMemHandle()")
		if err := d.Free(m); err != nil {
			t.Error(err)
		}
		if f.live() != 0 {
			t.Errorf("%d objects are left", f.live())
		}

		f.set("own process", 1)
		if _, err := d.OpenMem(h); !errors.Is(err, driver.ErrSameProcess) || !errors.Is(err, hip.ErrorInvalidContext) {
			t.Errorf("a handle of this process: %v", err)
		}
		f.set("own process", 0)
		f.set("hipMemGetAddressRange", int(hip.ErrorInvalidValue))
		if o, err := d.OpenMem(h); err != nil || o.Size != 0 {
			t.Errorf("opened %+v, %v", o, err)
		}
		_, err = d.OpenMem(driver.MemHandle{})
		if err == nil || errors.Is(err, driver.ErrSameProcess) {
			t.Errorf("no handle: %v", err)
		}
		if f.last() != 0 {
			t.Errorf("HIP remembers %d", f.last())
		}
		if _, err := d.ExportMem(driver.Mem{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("memory of the host: %v", err)
		}
	}

	d := newFake(t, hip64, "hipIpcOpenMemHandle").device()
	if d.Caps().IPCMem {
		t.Error("a library without one of the functions")
	}
	calls := all(d)
	for _, op := range []string{"export memory", "open memory", "close memory"} {
		if err := calls[op](); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
