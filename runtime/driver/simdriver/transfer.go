package simdriver

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Fill writes count elements of width bytes at dst.
func (v *device) Fill(h driver.Stream, dst driver.Ptr, pattern uint32, width int, count uint64) error {
	later, err := v.submit(codeFill)
	if err != nil {
		return err
	}
	if width != 1 && width != 2 && width != 4 {
		return failf(codeFill, "elements of %d bytes: %w: the size must be 1, 2 or 4", width, ErrInvalidValue)
	}
	s, err := v.stream(codeFill, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.slot(codeFill)
	o.fail, o.dst, o.pattern, o.width, o.stride, o.n = later, dst, pattern, uint8(width), 0, count
	s.publish()
	s.mu.Unlock()
	return nil
}

// FillStrided writes count elements of 4 bytes at dst, one every stride bytes.
func (v *device) FillStrided(h driver.Stream, dst driver.Ptr, pattern uint32, stride, count uint64) error {
	later, err := v.submit(codeFill)
	if err != nil {
		return err
	}
	if stride < 4 || stride%4 != 0 {
		return failf(codeFill, "a stride of %d bytes: %w: it must be a multiple of 4", stride, ErrInvalidValue)
	}
	s, err := v.stream(codeFill, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.slot(codeFill)
	o.fail, o.dst, o.pattern, o.width, o.stride, o.n = later, dst, pattern, 4, stride, count
	s.publish()
	s.mu.Unlock()
	return nil
}

// Prefetch checks in stream order that the device can use n bytes of managed memory. It moves
// nothing.
func (v *device) Prefetch(h driver.Stream, p driver.Ptr, n uint64, to driver.MemKind) error {
	later, err := v.submit(codePrefetch)
	if err != nil {
		return err
	}
	if !v.d.caps.Prefetch {
		return failf(codePrefetch, "device %d: %w", v.index, driver.ErrUnsupported)
	}
	if to != driver.DeviceMem && to != driver.HostMem {
		return failf(codePrefetch, "to memory of kind %d: %w", to, ErrInvalidValue)
	}
	if a := v.d.find(p); n > 0 && (a == nil || a.kind != driver.ManagedMem) {
		return failf(codePrefetch, "%d bytes at %#x: %w: it is not managed memory", n, uint64(p), ErrInvalidValue)
	}
	s, err := v.working(codePrefetch, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.slot(codePrefetch)
	o.fail, o.dst, o.n = later, p, n
	s.publish()
	s.mu.Unlock()
	return nil
}

// Copy copies n bytes.
func (v *device) Copy(h driver.Stream, dst, src driver.Ptr, n uint64) error {
	return v.transfer(codeCopy, h, dst, nil, src, nil, nil, n)
}

// Upload copies n bytes from the host.
func (v *device) Upload(h driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	return v.transfer(codeUpload, h, dst, nil, 0, nil, src, n)
}

// Download copies n bytes to the host.
func (v *device) Download(h driver.Stream, dst unsafe.Pointer, src driver.Ptr, n uint64) error {
	return v.transfer(codeDownload, h, 0, nil, src, nil, dst, n)
}

// transfer submits a copy. host is the source of an upload or the destination of a download. If to
// and from are not nil, to writes dst and from reads src in place of v.
func (v *device) transfer(c code, h driver.Stream, dst driver.Ptr, to *device, src driver.Ptr, from *device, host unsafe.Pointer, n uint64) error {
	later, err := v.submit(c)
	if err != nil {
		return err
	}
	if c != codeCopy && host == nil && n > 0 {
		return failf(c, "%d bytes with a nil host pointer: %w", n, ErrInvalidValue)
	}
	s, err := v.stream(c, h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.slot(c)
	o.fail, o.dst, o.to, o.src, o.from, o.host, o.n = later, dst, to, src, from, host, n
	s.publish()
	s.mu.Unlock()
	return nil
}
