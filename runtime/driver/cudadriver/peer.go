package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// errNoWay says that a device cannot reach another one's memory.
var errNoWay = fmt.Errorf("the hardware has no way: %w", driver.ErrUnsupported)

// errClosed is that another device is closed, whose context may be gone. The driver could say so in a way that means that this device's is.
var errClosed = fmt.Errorf("it is closed: %w", cuda.ErrorInvalidContext)

// peer returns another device of the driver.
func (d *device) peer(op string, other driver.Device) (*device, error) {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return nil, d.fail(op, cuda.ErrorInvalidDevice, "%T is no device of this driver", other)
	}
	return o, nil
}

// EnablePeer gives the device access to another one's primary context. The driver takes it for an error that there is access
// already, so it is asked once.
func (d *device) EnablePeer(other driver.Device) error {
	o, err := d.peer("enable peer", other)
	if err != nil {
		return err
	}
	if o.id == d.id {
		return nil // its own memory it reaches anyway
	}
	if o.closed.Load() {
		return d.fail("enable peer", errClosed, "device %d", o.info.Index)
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
		return d.fail("enable peer", errNoWay, "access to device %d", o.info.Index)
	}
	err = d.lib.CtxEnablePeerAccess(o.ctx, 0)
	switch {
	case err == nil, errors.Is(err, cuda.ErrorPeerAccessAlreadyEnabled): // by other code in the process
		d.peers[o.id] = o
		return nil
	case errors.Is(err, cuda.ErrorPeerAccessUnsupported), errors.Is(err, cuda.ErrorTooManyPeers):
		err = unsupported{err}
	}
	return d.fail("enable peer", err, "access to device %d", o.info.Index)
}

// CopyPeer names the contexts that the memory is of. Where the driver is to find them out itself, as in Copy, releases of it crash on
// a thread without a context if one is a pool's that the stream's device has no access to, and refuse the copy on others.
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
	for _, o := range [...]*device{t, f} {
		if o.closed.Load() {
			return d.fail(op, errClosed, "device %d", o.info.Index)
		}
	}
	if err := d.submit(func() error {
		return d.lib.MemcpyPeerAsync(cuda.DevicePtr(dst), t.ctx, cuda.DevicePtr(src), f.ctx, n, cuda.Stream(s))
	}); err != nil {
		return d.fail(op, err, "%d bytes from %#x of device %d to %#x of device %d in stream %#x",
			n, uint64(src), f.info.Index, uint64(dst), t.info.Index, uintptr(s))
	}
	return nil
}
