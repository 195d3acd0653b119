package hipdriver

import (
	"errors"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.VirtualMem = (*device)(nil)

// virtualMemory is the first release with the attribute for virtual memory, and with a hipMemCreate
// that package hip can call.
const virtualMemory = 5_03_00000

// askVirtual finds out whether the device can map physical memory.
func (d *device) askVirtual(symbols func(names ...string) bool) (able bool, err error) {
	if d.lib.Version() < virtualMemory || !symbols("hipMemAddressReserve", "hipMemAddressFree", "hipMemCreate", "hipMemRelease", "hipMemMap", "hipMemUnmap",
		"hipMemSetAccess", "hipMemGetAllocationGranularity") {
		return false, nil
	}
	if able, err = d.has(hip.DeviceAttributeVirtualMemoryManagementSupported, false); !able || err != nil {
		return false, err
	}
	d.pages = hip.MemAllocationProp{Type: hip.MemAllocationTypePinned, Location: location(d.id)}
	if d.pageSize, err = d.lib.MemGetAllocationGranularity(&d.pages, hip.MemAllocationGranularityMinimum); err != nil {
		return false, d.fail("open", err, "granularity of physical memory")
	}
	return d.pageSize > 0, nil
}

// virtual makes a call of HIP about virtual memory. On a device without Caps.VirtualMem it returns
// ErrUnsupported instead.
func (d *device) virtual(op string, call func() error, format string, args ...any) error {
	if !d.caps.VirtualMem {
		return d.refuse(op, driver.ErrUnsupported, "virtual memory")
	}
	if err := call(); err != nil {
		return d.fail(op, err, format, args...)
	}
	return nil
}

func (d *device) PageSize() uint64 { return d.pageSize }

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
		return d.lib.MemAddressFree(hip.DevicePtr(p), size)
	}, "%d bytes at %#x", size, uint64(p))
}

func (d *device) NewPages(size uint64) (pages driver.Pages, err error) {
	err = d.virtual("new pages", func() error {
		h, err := d.lib.MemCreate(size, &d.pages, 0)
		pages = driver.Pages(h)
		return err
	}, "%d bytes of physical device memory", size)
	return pages, err
}

func (d *device) FreePages(pages driver.Pages) error {
	return d.virtual("free pages", func() error {
		return d.lib.MemRelease(hip.MemGenericAllocationHandle(pages))
	}, "pages %#x", uint64(pages))
}

func (d *device) MapPages(p driver.Ptr, pages driver.Pages, size uint64) error {
	return d.virtual("map pages", func() error {
		return d.lib.MemMap(hip.DevicePtr(p), size, 0, hip.MemGenericAllocationHandle(pages), 0)
	}, "%d bytes of pages %#x at %#x", size, uint64(pages), uint64(p))
}

func (d *device) UnmapPages(p driver.Ptr, size uint64) error {
	return d.virtual("unmap pages", func() error {
		return d.lib.MemUnmap(hip.DevicePtr(p), size)
	}, "%d bytes at %#x", size, uint64(p))
}

func (d *device) AccessPages(p driver.Ptr, size uint64, devices []driver.Device) error {
	const op = "access pages"
	descs := make([]hip.MemAccessDesc, len(devices))
	for i, other := range devices {
		o, err := d.peer(op, other)
		if err != nil {
			return err
		}
		descs[i] = hip.MemAccessDesc{Location: location(o.id), Flags: hip.MemAccessFlagsProtReadWrite}
		if o.id == d.id {
			continue
		}
		switch can, err := d.lib.DeviceCanAccessPeer(o.id, d.id); {
		case err != nil:
			return d.fail(op, err, "access of device %d", o.info.Index)
		case can == 0:
			return d.refuse(op, errNoLink, "access of device %d", o.info.Index)
		}
	}
	return d.virtual(op, func() error {
		err := d.lib.MemSetAccess(hip.DevicePtr(p), size, descs)
		if errors.Is(err, hip.ErrorPeerAccessUnsupported) {
			err = unsupported{err}
		}
		return err
	}, "access of %d devices to %d bytes at %#x", len(devices), size, uint64(p))
}
