package simdriver

import "github.com/puregpu/puregpu/runtime/driver"

var _ driver.Peers = (*device)(nil)

// EnablePeer lets kernels of the device use the memory of another device, until one of the two is
// closed.
func (v *device) EnablePeer(other driver.Device) error {
	if err := v.enter(codeEnablePeer, true); err != nil {
		return err
	}
	if !v.d.caps.Peers {
		return v.cannot(codeEnablePeer)
	}
	w, err := v.peer(codeEnablePeer, other)
	switch {
	case err != nil:
		return err
	case w == v: // a device always reaches its own memory
		return nil
	case v.link(w).Kind == driver.LinkNone:
		return failf(codeEnablePeer, "from device %d to device %d: the hardware has no link: %w", v.index, w.index, driver.ErrUnsupported)
	}
	v.peers[w.index].Store(true)
	return nil
}

// peer returns the given device as a *device. It returns an error if the device belongs to a
// different driver. It also returns an error if the device has been closed, unless the device is v.
func (v *device) peer(c code, other driver.Device) (*device, error) {
	w, ok := other.(*device)
	if !ok || w.d != v.d {
		return nil, failf(c, "%T: %w: it is not a device of this driver", other, ErrInvalidValue)
	}
	if p := w.down.Load(); p != nil && !p.lost && w != v {
		return nil, failf(c, "device %d: %w", w.index, ErrClosed)
	}
	return w, nil
}

// CopyPeer copies n bytes between memory of two devices. Counters, faults and latencies treat the
// call as Copy. It returns ErrInvalidValue if dst is memory of a device that is not the parameter
// to, or if src is memory of a device that is not the parameter from.
func (v *device) CopyPeer(h driver.Stream, dst driver.Ptr, to driver.Device, src driver.Ptr, from driver.Device, n uint64) error {
	if !v.d.caps.Peers {
		return v.cannot(codeCopy)
	}
	t, err := v.peer(codeCopy, to)
	if err != nil {
		return err
	}
	f, err := v.peer(codeCopy, from)
	if err != nil {
		return err
	}
	for _, side := range [...]struct {
		p driver.Ptr
		w *device
	}{{dst, t}, {src, f}} {
		if w := v.d.owner(side.p); w != nil && w != side.w {
			return failf(codeCopy, "memory at %#x: %w: it belongs to device %d, not %d", uint64(side.p), ErrInvalidValue, w.index, side.w.index)
		}
	}
	return v.transfer(codeCopy, h, dst, t, src, f, nil, n)
}

// forgetPeers undoes EnablePeer between the device and all other devices, in both directions.
func (v *device) forgetPeers() {
	for _, w := range v.d.devices {
		v.peers[w.index].Store(false)
		w.peers[v.index].Store(false)
	}
}

// launched does for a kernel what v.reach does. Unlike a copy, a kernel needs EnablePeer for
// another device's memory.
func (v *device) launched(p driver.Ptr, n uint64) ([]byte, *AccessError) {
	b, e := v.reach(p, n)
	if w := v.d.owner(p); e == nil && n > 0 && w != nil && w != v && !v.peers[w.index].Load() {
		if a := w.space.find(p); a != nil && a.segment == nil && a.virtual == nil { // pools and pages have their own lists of devices with access
			return nil, &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Apart: true}
		}
	}
	return b, e
}
