package hipdriver

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

func (d *device) Fill(s driver.Stream, dst driver.Ptr, pattern uint32, width int, count uint64) error {
	if s <= defaultStreams {
		return d.noStream("fill", s)
	}
	if count == 0 {
		return nil
	}
	return d.submit("fill", func() error {
		var err error
		switch width {
		case 1:
			err = d.lib.MemsetD8Async(hip.DevicePtr(dst), uint8(pattern), count, hip.Stream(s))
		case 2:
			err = d.lib.MemsetD16Async(hip.DevicePtr(dst), uint16(pattern), count, hip.Stream(s))
		case 4:
			err = d.lib.MemsetD32Async(hip.DevicePtr(dst), int32(pattern), count, hip.Stream(s))
		default:
			return d.refuse("fill", fmt.Errorf("the width must be 1, 2 or 4 bytes: %w", hip.ErrorInvalidValue), "%d elements of %d bytes at %#x in stream %#x",
				count, width, uint64(dst), uintptr(s))
		}
		if err != nil {
			return d.fail("fill", err, "%d elements of %d bytes at %#x in stream %#x", count, width, uint64(dst), uintptr(s))
		}
		return nil
	})
}

// Copy lets the library find the kinds of memory from the addresses: all devices and the host share
// one address space.
func (d *device) Copy(s driver.Stream, dst, src driver.Ptr, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("copy", s)
	}
	if n == 0 {
		return nil
	}
	return d.submit("copy", func() error {
		if err := d.lib.MemcpyDtoDAsync(hip.DevicePtr(dst), hip.DevicePtr(src), n, hip.Stream(s)); err != nil {
			return d.fail("copy", err, "%d bytes from %#x to %#x in stream %#x", n, uint64(src), uint64(dst), uintptr(s))
		}
		return nil
	})
}

func (d *device) Upload(s driver.Stream, dst driver.Ptr, src unsafe.Pointer, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("upload", s)
	}
	if n == 0 {
		return nil
	}
	return d.submit("upload", func() error {
		if err := d.lib.MemcpyHtoDAsync(hip.DevicePtr(dst), src, n, hip.Stream(s)); err != nil {
			return d.fail("upload", err, "%d bytes from %p to %#x in stream %#x", n, src, uint64(dst), uintptr(s))
		}
		return nil
	})
}

func (d *device) Download(s driver.Stream, dst unsafe.Pointer, src driver.Ptr, n uint64) error {
	if s <= defaultStreams {
		return d.noStream("download", s)
	}
	if n == 0 {
		return nil
	}
	return d.submit("download", func() error {
		if err := d.lib.MemcpyDtoHAsync(dst, hip.DevicePtr(src), n, hip.Stream(s)); err != nil {
			return d.fail("download", err, "%d bytes from %#x to %p in stream %#x", n, uint64(src), dst, uintptr(s))
		}
		return nil
	})
}
