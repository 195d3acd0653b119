package hipdriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// EnablePeer gives the device access to another one's memory.
func (d *device) EnablePeer(other driver.Device) error {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return d.refuse("enable peer", hip.ErrorInvalidDevice, "%T is no device of this driver", other)
	}
	if o.id == d.id {
		return nil // its own memory it reaches anyway
	}
	can, err := d.lib.DeviceCanAccessPeer(d.id, o.id)
	if err != nil {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	if can == 0 {
		return d.refuse("enable peer", fmt.Errorf("the hardware has no way: %w", driver.ErrUnsupported), "access to device %d", o.info.Index)
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
