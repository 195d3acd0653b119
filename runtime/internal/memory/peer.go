package memory

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// same reports whether d and o are one device of one driver. A device may have been opened more
// than once.
func (d *Device) same(o *Device) bool {
	return d == o || d.Engine.Driver == o.Engine.Driver && d.Engine.Info.Index == o.Engine.Info.Index
}

// EnablePeers gives the device access to the memory of other devices. It skips devices of other
// drivers. If the driver does not support access to the memory of a device, EnablePeers returns an
// error if must is set, and otherwise skips the device. EnablePeers stops at any other error of the
// driver, and returns that error.
func (d *Device) EnablePeers(others []*Device, must bool) error {
	if d.Faces.Peers == nil {
		if must {
			return fmt.Errorf("gpu: access of %s to the memory of others: %w", d.Engine.Info.Name, driver.ErrUnsupported)
		}
		return nil
	}
	err := d.Engine.Do(func() error {
		for _, o := range others {
			if o == d || o.Engine.Driver != d.Engine.Driver {
				continue
			}
			if err := d.Faces.Peers.EnablePeer(o.Engine.Native); err != nil && (must || !errors.Is(err, driver.ErrUnsupported)) {
				return fmt.Errorf("gpu: access of %s to the memory of %s: %w", d.Engine.Info.Name, o.Engine.Info.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		d.Engine.Check(err)
	}
	return err
}

// Foreign reports whether a buffer's memory is on another device, so that a copy must name that
// device. Host memory and managed memory are on no device. If the driver gives devices no access to
// each other, Foreign returns false.
func (d *Device) Foreign(b *Buffer) bool {
	return b != nil && !d.same(b.dev) && d.Faces.Peers != nil && b.mem.Kind.OfDevice()
}

// ofHostPool reports whether a buffer has host memory of a native pool.
func (b *Buffer) ofHostPool() bool {
	return b != nil && b.from == pooled && b.pool.blocks == nil && b.mem.Kind == driver.HostMem
}

// Usable returns an error if the device can only copy the range. That is so for three sorts of
// memory of another device: shareable memory, growing memory that the device was given no access
// to, and device memory of a native pool that the device was given no access to. A driver may end
// the process if an operation other than a copy uses such memory, and a kernel that uses it loses
// the device. The caller has checked the range.
func (r Range) Usable(op string, d *Device) error {
	b := r.Buffer
	if b.mem.Kind == driver.ShareableMem && !d.same(b.dev) {
		return errs.Argument(op, "the buffer is shareable memory of %s, which %s can only copy", b.dev.Engine.Info.Name, d.Engine.Info.Name)
	}
	if b.from == mapped {
		if b.rare.growing.allows(d) {
			return nil
		}
		return errs.Argument(op, "the buffer is growing memory of %s, to which %s was given no access: Options.Peers of package growing gives it", b.dev.Engine.Info.Name, d.Engine.Info.Name)
	}
	if d.same(b.dev) || b.from != pooled || b.pool.blocks != nil || b.mem.Kind != driver.DeviceMem {
		return nil
	}
	if _, ok := b.pool.users.Load(d.Engine.Info.Index); ok {
		return nil
	}
	return errs.Argument(op, "the buffer is of a pool of %s, to which %s was given no access: Pool.Access gives it", b.dev.Engine.Info.Name, d.Engine.Info.Name)
}

// Owners returns the devices that a copy by this device must name as owners of two buffers' memory,
// or nil if the copy need not name owners. A nil buffer is pinned memory of the runtime. No owners
// can be named if one of the buffers is host memory of a native pool. In that case Owners returns
// an error if the device may lack access to the other buffer: only copies that name owners can use
// memory to which the device has no access.
func (d *Device) Owners(dst, src *Buffer) (dstOf, srcOf driver.Device, err error) {
	switch {
	case !d.Foreign(dst) && !d.Foreign(src):
	case !dst.ofHostPool() && !src.ofHostPool():
		return d.deviceOf(dst), d.deviceOf(src), nil
	case d.Foreign(dst) && !dst.shown() || d.Foreign(src) && !src.shown():
		return nil, nil, errHostPool
	}
	return nil, nil, nil
}

// shown reports whether a device with access to the buffer's device always has access to the
// buffer.
func (b *Buffer) shown() bool { return b.from == allocated && b.mem.Kind != driver.ShareableMem }

// deviceOf returns the driver's device that a copy names as the owner of a buffer's memory.
func (d *Device) deviceOf(b *Buffer) driver.Device {
	if d.Foreign(b) {
		return b.dev.Engine.Native
	}
	return d.Engine.Native
}

// errHostPool is the error of a copy between host memory of a native pool and memory that the
// device may have no access to. Without access, the copy must name the owners of both buffers'
// memory, and no device owns host memory.
var errHostPool = fmt.Errorf("a copy between a pool of the host's memory and memory of another device takes a queue of that device: %w", driver.ErrUnsupported)
