//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestIPC(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	m, err := d.Alloc(driver.DeviceMem, 4096)
	ok(t, err)
	h, err := d.ExportMem(m)
	ok(t, err)
	f.calls()
	o, err := d.OpenMem(h)
	ok(t, err)
	if o.Kind != driver.DeviceMem || o.Ptr != m.Ptr || o.Size != 4096-256 || o.Host != nil {
		t.Errorf("opened %+v", o) // the fake has the address lie 256 bytes behind the allocation's begin
	}
	ok(t, d.CloseMem(o))
	f.want("cuIpcOpenMemHandle_v2(memory, 1)", "cuMemGetAddressRange_v2()", "cuIpcCloseMemHandle()")
	ok(t, d.Free(m))
	f.calls()

	e, err := d.NewIPCEvent()
	ok(t, err)
	name, err := d.ExportEvent(e)
	ok(t, err)
	opened, err := d.OpenEvent(name)
	ok(t, err)
	ok(t, d.Record(e, stream0))
	ok(t, d.StreamWait(stream0, opened))
	ok(t, d.DestroyEvent(opened))
	ok(t, d.DestroyEvent(e))
	f.want("cuEventCreate(6)", "cuIpcGetEventHandle(0xe000)", "cuIpcOpenEventHandle(event 0xe000)", "cuEventRecord(0xe000, 0x5000)",
		"cuStreamWaitEvent(0x5000, 0xe000, 0)", "cuEventDestroy_v2(0xe000)", "cuEventDestroy_v2(0xe000)")
	if f.live() != 0 {
		t.Errorf("%d objects are left", f.live())
	}

	// What the driver does not tell the size of can be opened as well.
	f.set("cuMemGetAddressRange_v2", int(cuda.ErrorInvalidValue))
	o, err = d.OpenMem(h)
	if o.Size != 0 {
		t.Errorf("opened %+v", o)
	}
	ok(t, err)
	ok(t, d.CloseMem(o))

	f.set("own process", 1)
	_, err = d.OpenMem(h)
	_, err2 := d.OpenEvent(name)
	for _, err := range []error{err, err2} {
		if !errors.Is(err, driver.ErrSameProcess) || !errors.Is(err, cuda.ErrorInvalidContext) || !strings.Contains(err.Error(), "device 0 (Fake 0)") {
			t.Errorf("a handle of this process: %v", err)
		}
	}
	f.set("own process", 0)
	for what, call := range map[string]func() error{
		"cuIpcOpenMemHandle_v2": func() error { _, err := d.OpenMem(driver.MemHandle{}); return err },
		"cuIpcOpenEventHandle":  func() error { _, err := d.OpenEvent(driver.EventHandle{}); return err },
		"cuIpcGetEventHandle":   func() error { _, err := d.ExportEvent(1); return err },
	} {
		if err := call(); err == nil || errors.Is(err, driver.ErrSameProcess) || errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.ExportMem(driver.Mem{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("memory of the host: %v", err)
	}
}

// TestNoIPC has devices that cannot share anything with other processes: those that say so, and those of which the driver lacks something.
func TestNoIPC(t *testing.T) {
	f := newFake(t, 13000)
	f.set("attr 125", 1) // which is 0
	d := f.device()
	if caps := d.Caps(); caps.IPCMem || caps.IPCEvents {
		t.Errorf("%+v", caps)
	}
	f.calls()
	calls := all(d)
	for _, op := range []string{"export memory", "open memory", "close memory", "new shared event", "export event", "open event"} {
		if err := calls[op](); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", op, err)
		}
	}
	_, err := d.OpenMem(driver.MemHandle{})
	_, err2 := d.OpenEvent(driver.EventHandle{})
	if !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err2, driver.ErrUnsupported) {
		t.Errorf("%v, %v", err, err2)
	}

	old := newFake(t, 11020) // which does not know the attribute
	if caps := old.device().Caps(); !caps.IPCMem || !caps.IPCEvents {
		t.Errorf("%+v", caps)
	}
}
