package simdriver

import "github.com/puregpu/puregpu/runtime/driver"

var _ driver.Peers = (*device)(nil)

// EnablePeer lets kernels of the device use the memory of another one, until either of the two is closed.
func (v *device) EnablePeer(other driver.Device) error {
	if err := v.enter(codeEnablePeer, true); err != nil {
		return err
	}
	if !v.d.caps.Peers {
		return v.cannot(codeEnablePeer)
	}
	w, ok := other.(*device)
	switch {
	case !ok || w.d != v.d:
		return failf(codeEnablePeer, "%T: %w: it is no device of this driver", other, ErrInvalidValue)
	case w == v: // its own memory it reaches anyway
		return nil
	case v.d.apart:
		return failf(codeEnablePeer, "from device %d to device %d: the hardware has no way: %w", v.index, w.index, driver.ErrUnsupported)
	}
	if p := w.down.Load(); p != nil && !p.lost {
		return failf(codeEnablePeer, "device %d: %w", w.index, ErrClosed)
	}
	v.peers[w.index].Store(true)
	return nil
}

// forgetPeers ends all access between the device, which is closed, and others.
func (v *device) forgetPeers() {
	for _, w := range v.d.devices {
		v.peers[w.index].Store(false)
		w.peers[v.index].Store(false)
	}
}

// launched is reach for a kernel, which needs more than a copy does: access to the other device whose memory it is.
func (v *device) launched(p driver.Ptr, n uint64) ([]byte, *AccessError) {
	b, e := v.reach(p, n)
	if w := v.d.owner(p); e == nil && n > 0 && w != nil && w != v && !v.peers[w.index].Load() {
		if a := w.space.find(p); a != nil && a.segment == nil { // a pool has its own list
			return nil, &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Apart: true}
		}
	}
	return b, e
}
