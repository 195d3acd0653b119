package cudadriver

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func (d *device) Fill(s driver.Stream, dst driver.Ptr, pattern uint32, width int, count uint64) error {
	if s <= defaultStreams {
		return d.noStream("fill", s)
	}
	if count == 0 {
		return nil // for 0 elements driver releases behave differently
	}
	var err error
	switch width {
	case 1:
		err = d.submit(func() error { return d.lib.MemsetD8Async(cuda.DevicePtr(dst), uint8(pattern), count, cuda.Stream(s)) })
	case 2:
		err = d.submit(func() error { return d.lib.MemsetD16Async(cuda.DevicePtr(dst), uint16(pattern), count, cuda.Stream(s)) })
	case 4:
		err = d.submit(func() error { return d.lib.MemsetD32Async(cuda.DevicePtr(dst), pattern, count, cuda.Stream(s)) })
	default:
		err = fmt.Errorf("the width must be 1, 2 or 4 bytes: %w", cuda.ErrorInvalidValue)
	}
	if err != nil {
		return d.fail("fill", err, "%d elements of %d bytes at %#x in stream %#x", count, width, uint64(dst), uintptr(s))
	}
	return nil
}

// FillStrided fills a matrix of one column.
func (d *device) FillStrided(s driver.Stream, dst driver.Ptr, pattern uint32, stride, count uint64) error {
	if s <= defaultStreams {
		return d.noStream("fill", s)
	}
	if count == 0 {
		return nil
	}
	if err := d.submit(func() error {
		return d.lib.MemsetD2D32Async(cuda.DevicePtr(dst), stride, pattern, 1, count, cuda.Stream(s))
	}); err != nil {
		return d.fail("fill", err, "%d elements of 4 bytes, %d bytes apart, at %#x in stream %#x", count, stride, uint64(dst), uintptr(s))
	}
	return nil
}

// Copy lets the driver find the kinds of memory from the addresses: all devices and the host share
// one address space.
//
// If the driver refuses a copy with cuda.ErrorInvalidValue, Copy, Upload and Download repeat it
// with the device's context current. If the calling thread has another device's context, the driver
// refuses memory of pools that the other device cannot access, although the stream's device can.
// (Seen on two H200s, driver 580.)
func (d *device) Copy(s driver.Stream, dst, src driver.Ptr, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("copy", s)
	}
	if n == 0 {
		return nil
	}
	err := d.submit(func() error { return d.lib.MemcpyAsync(cuda.DevicePtr(dst), cuda.DevicePtr(src), n, cuda.Stream(s)) })
	if err == cuda.ErrorInvalidValue {
		err = d.inContext(func() error { return d.lib.MemcpyAsync(cuda.DevicePtr(dst), cuda.DevicePtr(src), n, cuda.Stream(s)) })
	}
	if err != nil {
		return d.fail("copy", err, "%d bytes from %#x to %#x in stream %#x", n, uint64(src), uint64(dst), uintptr(s))
	}
	return nil
}

func (d *device) Upload(s driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("upload", s)
	}
	if n == 0 {
		return nil
	}
	err := d.submit(func() error { return d.upload(s, dst, src, n) })
	if err == cuda.ErrorInvalidValue {
		err = d.inContext(func() error { return d.upload(s, dst, src, n) })
	}
	if err != nil {
		return d.fail("upload", err, "%d bytes from %p to %#x in stream %#x", n, src, uint64(dst), uintptr(s))
	}
	return nil
}

func (d *device) upload(s driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	if d.hostPools.ever() { // dst may be in a pool of host memory, which MemcpyHtoDAsync refuses
		return d.lib.MemcpyAsync(cuda.DevicePtr(dst), cuda.DevicePtr(uintptr(src)), n, cuda.Stream(s))
	}
	return d.lib.MemcpyHtoDAsync(cuda.DevicePtr(dst), src, n, cuda.Stream(s))
}

func (d *device) Download(s driver.Stream, dst unsafe.Pointer, src driver.Ptr, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("download", s)
	}
	if n == 0 {
		return nil
	}
	err := d.submit(func() error { return d.download(s, dst, src, n) })
	if err == cuda.ErrorInvalidValue {
		err = d.inContext(func() error { return d.download(s, dst, src, n) })
	}
	if err != nil {
		return d.fail("download", err, "%d bytes from %#x to %p in stream %#x", n, uint64(src), dst, uintptr(s))
	}
	return nil
}

func (d *device) download(s driver.Stream, dst unsafe.Pointer, src driver.Ptr, n uint64) error {
	if d.hostPools.ever() { // src may be in a pool of host memory, which MemcpyDtoHAsync refuses
		return d.lib.MemcpyAsync(cuda.DevicePtr(uintptr(dst)), cuda.DevicePtr(src), n, cuda.Stream(s))
	}
	return d.lib.MemcpyDtoHAsync(dst, cuda.DevicePtr(src), n, cuda.Stream(s))
}
