package cudadriver

import (
	"errors"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.VirtualMem = (*device)(nil)

// virtual makes a call of the driver that manages virtual memory.
func (d *device) virtual(op string, call func() error, format string, args ...any) error {
	if !d.caps.VirtualMem {
		return d.fail(op, driver.ErrUnsupported, "virtual memory")
	}
	if err := call(); err != nil {
		return d.fail(op, err, format, args...)
	}
	return nil
}

func (d *device) PageSize() uint64 { return d.private.granule }

func (d *device) ReserveAddresses(size uint64) (p driver.Ptr, err error) {
	err = d.virtual("reserve addresses", func() error {
		at, err := d.lib.MemAddressReserve(size, 0, 0, 0)
		p = driver.Ptr(at)
		return err
	}, "%d bytes of addresses", size)
	return p, err
}

func (d *device) FreeAddresses(p driver.Ptr, size uint64) error {
	return d.virtual("free addresses", func() error {
		return d.lib.MemAddressFree(cuda.DevicePtr(p), size)
	}, "%d bytes at %#x", size, uint64(p))
}

func (d *device) NewPages(size uint64) (pages driver.Pages, err error) {
	err = d.virtual("new pages", func() error {
		h, err := d.lib.MemCreate(size, &d.private.prop, 0)
		pages = driver.Pages(h)
		return err
	}, "%d bytes of physical device memory", size)
	return pages, err
}

func (d *device) FreePages(pages driver.Pages) error {
	return d.virtual("free pages", func() error {
		return d.lib.MemRelease(cuda.MemGenericAllocationHandle(pages))
	}, "pages %#x", uint64(pages))
}

func (d *device) MapPages(p driver.Ptr, pages driver.Pages, size uint64) error {
	return d.virtual("map pages", func() error {
		return d.lib.MemMap(cuda.DevicePtr(p), size, 0, cuda.MemGenericAllocationHandle(pages), 0)
	}, "%d bytes of pages %#x at %#x", size, uint64(pages), uint64(p))
}

func (d *device) UnmapPages(p driver.Ptr, size uint64) error {
	return d.virtual("unmap pages", func() error {
		return d.lib.MemUnmap(cuda.DevicePtr(p), size)
	}, "%d bytes at %#x", size, uint64(p))
}

func (d *device) AccessPages(p driver.Ptr, size uint64, devices []driver.Device) error {
	const op = "access pages"
	descs := make([]cuda.MemAccessDesc, len(devices))
	for i, other := range devices {
		o, err := d.peer(op, other)
		if err != nil {
			return err
		}
		descs[i] = cuda.MemAccessDesc{Location: location(int32(o.info.Index)), Flags: cuda.MemAccessFlagsProtReadWrite}
		if o.id == d.id {
			continue
		}
		switch can, err := d.lib.DeviceCanAccessPeer(o.id, d.id); {
		case err != nil:
			return d.fail(op, err, "access of device %d", o.info.Index)
		case can == 0:
			return d.fail(op, errNoLink, "access of device %d", o.info.Index)
		}
	}
	return d.virtual(op, func() error {
		err := d.lib.MemSetAccess(cuda.DevicePtr(p), size, descs)
		if errors.Is(err, cuda.ErrorPeerAccessUnsupported) {
			err = unsupported{err}
		}
		return err
	}, "access of %d devices to %d bytes at %#x", len(devices), size, uint64(p))
}
