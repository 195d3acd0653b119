package simdriver

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// perform executes o. If it returns an error, the device is lost.
func (s *stream) perform(o *operation) error {
	d, v := s.dev.d, s.dev
	switch o.code {
	case codeFill:
		n, ok := product(o.n, uint64(o.width))
		if o.stride > 0 && o.n > 0 {
			n, ok = product(o.n-1, o.stride)
			n += uint64(o.width)
			ok = ok && n >= uint64(o.width)
		}
		if !ok {
			n = ^uint64(0) // a size too large to be valid, so that reachTo returns an error
		}
		if n > 0 && uint64(o.dst)%uint64(o.width) != 0 {
			e := d.miss(o.dst, n)
			e.Align = uint64(o.width)
			return s.blame(o, e)
		}
		b, e := v.reachTo(o.dst, n)
		if e != nil {
			return s.blame(o, e)
		}
		if o.stride == 0 {
			fill(b, o.pattern, int(o.width))
			break
		}
		for at := uint64(0); at < uint64(len(b)); at += o.stride {
			fill(b[at:at+uint64(o.width)], o.pattern, int(o.width))
		}
	case codeCopy:
		to, from := v, v
		if o.to != nil {
			to, from = o.to, o.from
		}
		src, e := from.reach(o.src, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		dst, e := to.reachTo(o.dst, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		copy(dst, src)
	case codeUpload:
		src, e := v.reachHost(o.host, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		dst, e := v.reachTo(o.dst, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		copy(dst, src)
	case codeDownload:
		src, e := v.reach(o.src, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		dst, e := v.reachHost(o.host, o.n)
		if e != nil {
			return s.blame(o, e)
		}
		copy(dst, src)
	case codePrefetch:
		if _, e := v.reach(o.dst, o.n); e != nil {
			return s.blame(o, e)
		}
	case codeWriteValue:
		w, e := v.word(o.dst, true)
		if e != nil {
			return s.blame(o, e)
		}
		w.Store(o.n)
	case codeWaitValue:
		s.pause = 0
		if _, e := v.word(o.dst, false); e != nil {
			return s.blame(o, e)
		}
	case codeTest:
		return s.testNow(o)
	case codeLaunch:
		return s.run(o)
	case codeAllocAsync:
		o.block.begin()
	case codeFreeAsync:
		if e := o.block.yield(); e != nil {
			return s.blame(o, e)
		}
	case codeCollect:
		return o.group.err
	case codeLaunchGraph:
		if !d.manual { // if the driver is deterministic, Step has executed the nodes already
			return o.plan.exec.run.execute(s, o)
		}
	}
	return nil
}

// blame sets the fields of e that say which operation made the access, and returns e.
func (s *stream) blame(o *operation, e *AccessError) error {
	e.Op, e.Node, e.Device, e.Stream = ops[o.code], o.node, s.dev.index, s.id
	return e
}

// find returns the allocation that p is in, or nil.
func (d *Driver) find(p driver.Ptr) *allocation {
	if v := d.owner(p); v != nil {
		return v.space.find(p)
	}
	return d.host.find(p)
}

// reach returns n bytes of memory at p for the device to read.
func (v *device) reach(p driver.Ptr, n uint64) ([]byte, *AccessError) {
	return v.access(p, n, false)
}

// reachTo does what reach does, for memory that the device writes.
func (v *device) reachTo(p driver.Ptr, n uint64) ([]byte, *AccessError) {
	return v.access(p, n, true)
}

func (v *device) access(p driver.Ptr, n uint64, writes bool) ([]byte, *AccessError) {
	if n == 0 {
		return nil, nil
	}
	a := v.d.find(p)
	if a != nil && a.segment != nil {
		if e := a.segment.allows(v, p, n); e != nil {
			return nil, e
		}
	} else if a != nil && a.virtual != nil {
		if e := a.virtual.allows(v, a, p, n); e != nil {
			return nil, e
		}
	} else if a == nil || n > a.size-uint64(p-a.base) {
		return nil, v.d.miss(p, n)
	}
	if a.origin != nil && a.origin.withdrawn.Load() {
		return nil, &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Freed: true, Opened: true}
	}
	if a.kind == driver.ShareableMem && a.dev != v {
		return nil, &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Barred: true}
	}
	if writes && a.readOnly {
		return nil, &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, ReadOnly: true}
	}
	offset := uint64(p - a.base)
	if a.origin != nil && a.origin.segment != nil {
		if e := a.origin.segment.offers(offset, n); e != nil {
			e.Addr, e.Base = p, a.base+(e.Base-a.origin.base) // addresses as this process sees them
			return nil, e
		}
	}
	return a.bytes()[offset : offset+n : offset+n], nil
}

// reachHost returns n bytes at the host address p, which the program has passed to Upload or
// Download. It checks p only if the driver has allocated or registered memory there.
func (v *device) reachHost(p unsafe.Pointer, n uint64) ([]byte, *AccessError) {
	if n == 0 {
		return nil, nil
	}
	at := driver.Ptr(uintptr(p))
	if v.d.host.knows(at) {
		return v.reach(at, n)
	}
	if n > 1<<47 {
		return nil, v.d.miss(at, n)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// miss makes the error of an access to n bytes at p that is not allowed.
func (d *Driver) miss(p driver.Ptr, n uint64) *AccessError {
	e := &AccessError{Addr: p, Size: n}
	if v := d.owner(p); v != nil {
		v.space.explain(e)
	} else {
		d.host.explain(e)
	}
	return e
}

// owner returns the device whose range of addresses contains p, or nil.
func (d *Driver) owner(p driver.Ptr) *device {
	if i := (p - rangeOfDevices) >> rangeBits; p >= rangeOfDevices && i < driver.Ptr(len(d.devices)) {
		return d.devices[i]
	}
	return nil
}

// fill fills b with a pattern of 1, 2 or 4 bytes. The length of b must be a multiple of width.
func fill(b []byte, pattern uint32, width int) {
	if len(b) == 0 {
		return
	}
	for i := range width {
		b[i] = byte(pattern >> (8 * i))
	}
	for n := width; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// product returns a·b, or false if it overflows.
func product(a, b uint64) (uint64, bool) {
	if a != 0 && b > ^uint64(0)/a {
		return 0, false
	}
	return a * b, true
}
