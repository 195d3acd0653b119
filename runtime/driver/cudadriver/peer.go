package cudadriver

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// errNoLink is the error of a device that cannot reach another device's memory.
var errNoLink = fmt.Errorf("the hardware has no link: %w", driver.ErrUnsupported)

// errClosed is the error for another device that is closed. If the other device's context is
// destroyed, the CUDA driver's error could look as if the context of this device were destroyed.
var errClosed = fmt.Errorf("it is closed: %w", cuda.ErrorInvalidContext)

// peer returns another device of the driver.
func (d *device) peer(op string, other driver.Device) (*device, error) {
	o, ok := other.(*device)
	if !ok || o.lib != d.lib {
		return nil, d.fail(op, cuda.ErrorInvalidDevice, "%T is not a device of this driver", other)
	}
	return o, nil
}

// EnablePeer gives the device access to the memory of another device's primary context. After a
// success it does not ask the CUDA driver about the same Device again.
func (d *device) EnablePeer(other driver.Device) error {
	o, err := d.peer("enable peer", other)
	if err != nil {
		return err
	}
	if o.id == d.id {
		return nil // a device always reaches its own memory
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
		return d.fail("enable peer", errNoLink, "access to device %d", o.info.Index)
	}
	err = d.lib.CtxEnablePeerAccess(o.ctx, 0)
	switch {
	// ErrorPeerAccessAlreadyEnabled means that other code in the process, or an earlier call, has
	// enabled access to the context.
	case err == nil, errors.Is(err, cuda.ErrorPeerAccessAlreadyEnabled):
		d.peers[o.id] = o
		return nil
	case errors.Is(err, cuda.ErrorPeerAccessUnsupported), errors.Is(err, cuda.ErrorTooManyPeers):
		err = unsupported{err}
	}
	return d.fail("enable peer", err, "access to device %d", o.info.Index)
}

// CopyPeer passes the contexts of both addresses. Copy does not. With some driver releases Copy
// fails if the stream's device has no access to the pool of one address: on a thread without a
// context the driver crashes, and on other threads it refuses the copy.
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
