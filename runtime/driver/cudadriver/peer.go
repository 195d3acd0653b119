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
		return d.fail("enable peer", cuda.ErrorInvalidDevice, "%T is no device of this driver", other)
	}
	if o.id == d.id {
		return nil // its own memory it reaches anyway
	}
	can, err := d.lib.DeviceCanAccessPeer(d.id, o.id)
	if err != nil {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	if can == 0 {
		return d.fail("enable peer", fmt.Errorf("the hardware has no way: %w", driver.ErrUnsupported), "access to device %d", o.info.Index)
	}
	err = d.lib.CtxEnablePeerAccess(o.ctx, 0)
	switch {
	case err == nil, errors.Is(err, cuda.ErrorPeerAccessAlreadyEnabled):
		return nil
	case errors.Is(err, cuda.ErrorPeerAccessUnsupported), errors.Is(err, cuda.ErrorTooManyPeers):
		err = unsupported{err}
	}
	return d.fail("enable peer", err, "access to device %d", o.info.Index)
}

// apart reports whether a call was refused because the hardware has no way from another device to this one's memory, which
// the API says in more than one word.
func (d *device) apart(other *device, err error) bool {
	switch {
	case errors.Is(err, cuda.ErrorPeerAccessUnsupported):
		return true
	case !errors.Is(err, cuda.ErrorInvalidValue) && !errors.Is(err, cuda.ErrorInvalidDevice), other.id == d.id:
		return false
	}
	can, ask := d.lib.DeviceCanAccessPeer(other.id, d.id)
	return ask == nil && can == 0
}
