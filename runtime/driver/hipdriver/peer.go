package hipdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// errNoLink is the error of a device that cannot reach another device's memory.
var errNoLink = fmt.Errorf("the hardware has no link: %w", driver.ErrUnsupported)

// peer returns another device of the driver.
func (d *device) peer(op string, other driver.Device) (*device, error) {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return nil, d.refuse(op, hip.ErrorInvalidDevice, "%T is not a device of this driver", other)
	}
	return o, nil
}

// EnablePeer gives the device access to another device's memory.
func (d *device) EnablePeer(other driver.Device) error {
	o, err := d.peer("enable peer", other)
	if err != nil {
		return err
	}
	if o.id == d.id {
		return nil // a device always reaches its own memory
	}
	can, err := d.lib.DeviceCanAccessPeer(d.id, o.id)
	if err != nil {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	if can == 0 {
		return d.refuse("enable peer", errNoLink, "access to device %d", o.info.Index)
	}
	err = d.lib.DeviceEnablePeerAccess(o.id, 0)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, hip.ErrorPeerAccessAlreadyEnabled):
		d.lib.GetLastError()
		return nil
	case errors.Is(err, hip.ErrorPeerAccessUnsupported):
		err = unsupported{err}
	}
	return d.fail("enable peer", err, "access to device %d", o.info.Index)
}

// CopyPeer names the devices of both addresses.
func (d *device) CopyPeer(s driver.Stream, dst driver.Ptr, to driver.Device, src driver.Ptr, from driver.Device, n uint64) error {
	const op = "copy"
	if s <= defaultStreams {
		return d.noStream(op, s)
	}
	if n == 0 {
		return nil
	}
	t, err := d.peer(op, to)
	if err != nil {
		return err
	}
	f, err := d.peer(op, from)
	if err != nil {
		return err
	}
	return d.submit(op, func() error {
		if err := d.lib.MemcpyPeerAsync(hip.DevicePtr(dst), t.id, hip.DevicePtr(src), f.id, n, hip.Stream(s)); err != nil {
			return d.fail(op, err, "%d bytes from %#x of device %d to %#x of device %d in stream %#x",
				n, uint64(src), f.id, uint64(dst), t.id, uintptr(s))
		}
		return nil
	})
}
