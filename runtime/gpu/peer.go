package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// same reports whether two devices are the same one of the same driver, which may have been opened more than once.
func (d *Device) same(o *Device) bool {
	return d == o || d.native.Driver == o.native.Driver && d.native.Info.Index == o.native.Info.Index
}

// foreign reports whether a buffer's memory is of another device, so that copies of it name that device. What is the host's, or
// everybody's, is not.
func (d *Device) foreign(b *Buffer) bool {
	return b != nil && !d.same(b.dev) && d.faces.peers != nil && b.mem.Kind.OfDevice()
}

// ofHostPool reports whether a buffer's memory is the host's and of a pool of the driver's.
func (b *Buffer) ofHostPool() bool {
	return b != nil && b.from == pooled && b.pool.blocks == nil && b.mem.Kind == HostMem
}

// usable returns an error if a range, which has been checked, is shareable memory of another device, or of a pool that has not let a device in: drivers may end the process
// where anything but a copy is made of that, and a kernel that touches it loses the device.
func (r Range) usable(op string, d *Device) error {
	b := r.Buffer
	if b.mem.Kind == ShareableMem && !d.same(b.dev) {
		return argument(op, "the buffer is shareable memory of %s, which %s can only copy", b.dev.native.Info.Name, d.native.Info.Name)
	}
	if d.same(b.dev) || b.from != pooled || b.pool.blocks != nil || b.mem.Kind != DeviceMem {
		return nil
	}
	if _, ok := b.pool.users.Load(d.native.Info.Index); ok {
		return nil
	}
	return argument(op, "the buffer is of a pool of %s, to which %s was given no access: Pool.Access gives it", b.dev.native.Info.Name, d.native.Info.Name)
}

// owners returns whose memory a copy by this device has to say that two buffers' is, or nil where it needs not. A buffer that is nil
// is memory of the runtime's own, for staging. A copy is the only thing that the runtime does with memory to which the device may
// have no access.
func (d *Device) owners(dst, src *Buffer) (dstOf, srcOf driver.Device, err error) {
	switch {
	case !d.foreign(dst) && !d.foreign(src):
	case !dst.ofHostPool() && !src.ofHostPool():
		return d.deviceOf(dst), d.deviceOf(src), nil
	case d.foreign(dst) && !dst.shown() || d.foreign(src) && !src.shown():
		return nil, nil, errHostPool
	}
	return nil, nil, nil
}

// shown reports whether devices with access to another one's memory have it to the buffer's.
func (b *Buffer) shown() bool { return b.from == allocated && b.mem.Kind != ShareableMem }

// deviceOf returns the driver's device that a copy names as the owner of a buffer's memory.
func (d *Device) deviceOf(b *Buffer) driver.Device {
	if d.foreign(b) {
		return b.dev.native.Native
	}
	return d.native.Native
}

// errHostPool is of copies that drivers do not make: no device that a copy names has memory of theirs that is the host's.
var errHostPool = fmt.Errorf("a copy between a pool of the host's memory and memory of another device takes a queue of that device: %w", driver.ErrUnsupported)
