package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// EnablePeer gives the device access to another one's primary context.
func (d *device) EnablePeer(other driver.Device) error {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return d.fail("enable peer", cuda.ErrorInvalidValue, "a device of another driver")
	}
	can, err := d.lib.DeviceCanAccessPeer(d.id, o.id)
	if err != nil {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	if can == 0 {
		return d.fail("enable peer", fmt.Errorf("the hardware has no way to device %d: %w", o.info.Index, driver.ErrUnsupported), "access to device %d", o.info.Index)
	}
	if err := d.lib.CtxEnablePeerAccess(o.ctx, 0); err != nil && !errors.Is(err, cuda.ErrorPeerAccessAlreadyEnabled) {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	return nil
}
