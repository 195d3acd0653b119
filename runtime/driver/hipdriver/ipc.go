package hipdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// The device does not implement driver.IPCEvents, although HIP has events that processes share.
// According to HIP's sources (6.3), making a stream wait for such an event blocks the calling
// thread until the event is complete, and a process misses some records.
var _ driver.IPCMem = (*device)(nil)

// noIPC makes the error of a call on a device without Caps.IPCMem.
func (d *device) noIPC(op string) error {
	return d.refuse(op, driver.ErrUnsupported, "memory shared between processes")
}

// peerFlag is the first release in which hipIpcMemLazyEnablePeerAccess is not 0. OpenMem must pass
// the flag to reach another device's memory.
const peerFlag = 6_00_00000

func (d *device) ipcFlags() uint32 {
	if v := d.lib.Version(); v != 0 && v < peerFlag {
		return 0
	}
	return hip.IpcMemLazyEnablePeerAccess
}

func (d *device) ExportMem(m driver.Mem) (driver.MemHandle, error) {
	const op = "export memory"
	switch {
	case !d.caps.IPCMem:
		return driver.MemHandle{}, d.noIPC(op)
	case m.Kind != driver.DeviceMem:
		return driver.MemHandle{}, d.refuse(op, driver.ErrUnsupported, "memory of kind %d", int(m.Kind))
	}
	h, err := d.lib.IpcGetMemHandle(hip.DevicePtr(m.Ptr))
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
	p, err := d.lib.IpcOpenMemHandle(hip.IpcMemHandle{Reserved: h}, d.ipcFlags())
	if err != nil {
		if errors.Is(err, hip.ErrorInvalidContext) {
			err = fmt.Errorf("%w: %w", driver.ErrSameProcess, err)
		}
		return driver.Mem{}, d.fail(op, err, "memory of another process, which must still have it")
	}
	m := driver.Mem{Kind: driver.DeviceMem, Ptr: driver.Ptr(p)}
	if base, size, err := d.lib.MemGetAddressRange(p); err == nil {
		m.Size = size - uint64(p-base)
	} else {
		d.lib.GetLastError()
	}
	return m, nil
}

// CloseMem waits for the device's work.
func (d *device) CloseMem(m driver.Mem) error {
	const op = "close memory"
	if !d.caps.IPCMem {
		return d.noIPC(op)
	}
	if err := d.lib.IpcCloseMemHandle(hip.DevicePtr(m.Ptr)); err != nil {
		return d.fail(op, err, "memory of another process at %#x", uint64(m.Ptr))
	}
	return nil
}
