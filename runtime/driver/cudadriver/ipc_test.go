//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestIPCEvents(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.Calls()
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
	f.Want("cuEventCreate(6)", "cuIpcGetEventHandle(0xe000)", "cuIpcOpenEventHandle(event 0xe000)", "cuEventRecord(0xe000, 0x5000)",
		"cuStreamWaitEvent(0x5000, 0xe000, 0)", "cuEventDestroy_v2(0xe000)", "cuEventDestroy_v2(0xe000)")
	if f.Live() != 0 {
		t.Errorf("%d objects are left", f.Live())
	}

	f.Set("own process", 1)
	_, err = d.OpenEvent(name)
	if !errors.Is(err, driver.ErrSameProcess) || !errors.Is(err, cuda.ErrorInvalidContext) || !strings.Contains(err.Error(), "device 0 (Fake 0)") {
		t.Errorf("a handle of this process: %v", err)
	}
	f.Set("own process", 0)
	for what, call := range map[string]func() error{
		"cuIpcOpenEventHandle": func() error { _, err := d.OpenEvent(driver.EventHandle{}); return err },
		"cuIpcGetEventHandle":  func() error { _, err := d.ExportEvent(1); return err },
	} {
		if err := call(); err == nil || errors.Is(err, driver.ErrSameProcess) || errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNoIPC tests devices that cannot share with other processes, because the device says so or the
// driver lacks functions.
func TestNoIPC(t *testing.T) {
	f := newFake(t, 13000)
	f.Set("attr 125", 1) // makes attribute 125 read 0
	d := f.device()
	if caps := d.Caps(); caps.IPCMem || caps.IPCEvents {
		t.Errorf("%+v", caps)
	}
	f.Calls()
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

	old := newFake(t, 11020) // too old for attribute 125
	if caps := old.device().Caps(); !caps.IPCMem || !caps.IPCEvents {
		t.Errorf("%+v", caps)
	}
}
