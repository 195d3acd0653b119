package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// noWay says that a device cannot reach another one's memory.
var noWay = fmt.Errorf("the hardware has no way: %w", driver.ErrUnsupported)

// EnablePeer gives the device access to another one's primary context. The driver takes it for an error that there is access
// already, so it is asked once.
func (d *device) EnablePeer(other driver.Device) error {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return d.fail("enable peer", cuda.ErrorInvalidDevice, "%T is no device of this driver", other)
	}
	if o.id == d.id {
		return nil // its own memory it reaches anyway
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.peers[o.id] == o {
		return nil
	}
	can, err := d.lib.DeviceCanAccessPeer(d.id, o.id)
	if err != nil {
		return d.fail("enable peer", err, "access to device %d", o.info.Index)
	}
	if can == 0 {
		return d.fail("enable peer", noWay, "access to device %d", o.info.Index)
	}
	err = d.lib.CtxEnablePeerAccess(o.ctx, 0)
	switch {
	case err == nil, errors.Is(err, cuda.ErrorPeerAccessAlreadyEnabled): // by somebody else in the process
		d.peers[o.id] = o
		return nil
	case errors.Is(err, cuda.ErrorPeerAccessUnsupported), errors.Is(err, cuda.ErrorTooManyPeers):
		err = unsupported{err}
	}
	return d.fail("enable peer", err, "access to device %d", o.info.Index)
}
