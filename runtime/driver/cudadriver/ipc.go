package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.IPCMem    = (*device)(nil)
	_ driver.IPCEvents = (*device)(nil)
)

// noIPC makes the error of a call on a device without Caps.IPCMem or Caps.IPCEvents.
func (d *device) noIPC(op string) error {
	return d.fail(op, driver.ErrUnsupported, "memory and events shared between processes")
}

// opened makes the error of opening an export. The CUDA driver returns "invalid context" for an
// export of this process.
func (d *device) opened(op string, err error, what string) error {
	if errors.Is(err, cuda.ErrorInvalidContext) {
		err = fmt.Errorf("%w: %w", driver.ErrSameProcess, err)
	}
	return d.fail(op, err, "%s", what)
}

func (d *device) ExportMem(m driver.Mem) (driver.MemHandle, error) {
	const op = "export memory"
	switch {
	case !d.caps.IPCMem:
		return driver.MemHandle{}, d.noIPC(op)
	case m.Kind != driver.DeviceMem:
		return driver.MemHandle{}, d.fail(op, driver.ErrUnsupported, "memory of kind %d", int(m.Kind))
	}
	h, err := d.lib.IpcGetMemHandle(cuda.DevicePtr(m.Ptr))
	if err != nil {
		return driver.MemHandle{}, d.fail(op, err, "%d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	return h.Reserved, nil
}

func (d *device) OpenMem(h driver.MemHandle) (driver.Mem, error) {
	const op = "open memory"
	if !d.caps.IPCMem {
		return driver.Mem{}, d.noIPC(op)
	}
	p, err := d.lib.IpcOpenMemHandle(cuda.IpcMemHandle{Reserved: h}, cuda.IPCMemLazyEnablePeerAccess)
	if err != nil {
		return driver.Mem{}, d.opened(op, err, "memory of another process, which must still have it")
	}
	m := driver.Mem{Kind: driver.DeviceMem, Ptr: driver.Ptr(p)}
	if base, size, err := d.lib.MemGetAddressRange(p); err == nil {
		m.Size = size - uint64(p-base)
	}
	return m, nil
}

func (d *device) CloseMem(m driver.Mem) error {
	const op = "close memory"
	if !d.caps.IPCMem {
		return d.noIPC(op)
	}
	if err := d.lib.IpcCloseMemHandle(cuda.DevicePtr(m.Ptr)); err != nil {
		return d.fail(op, err, "memory of another process at %#x", uint64(m.Ptr))
	}
	return nil
}

func (d *device) NewIPCEvent() (driver.Event, error) {
	const op = "new shared event"
	if !d.caps.IPCEvents {
		return 0, d.noIPC(op)
	}
	e, err := d.lib.EventCreate(cuda.EventInterprocess | cuda.EventDisableTiming)
	if err != nil {
		return 0, d.fail(op, err, "create an event for several processes")
	}
	return driver.Event(e), nil
}

func (d *device) ExportEvent(e driver.Event) (driver.EventHandle, error) {
	const op = "export event"
	if !d.caps.IPCEvents {
		return driver.EventHandle{}, d.noIPC(op)
	}
	h, err := d.lib.IpcGetEventHandle(cuda.Event(e))
	if err != nil {
		return driver.EventHandle{}, d.fail(op, err, "event %#x", uintptr(e))
	}
	return h.Reserved, nil
}

func (d *device) OpenEvent(h driver.EventHandle) (driver.Event, error) {
	const op = "open event"
	if !d.caps.IPCEvents {
		return 0, d.noIPC(op)
	}
	e, err := d.lib.IpcOpenEventHandle(cuda.IpcEventHandle{Reserved: h})
	if err != nil {
		return 0, d.opened(op, err, "an event of another process, which must still have it")
	}
	return driver.Event(e), nil
}
