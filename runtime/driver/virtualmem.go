package driver

// Pages are physical memory of a device. Zero means no pages.
type Pages uint64

// VirtualMem maps physical memory at reserved addresses ([Caps.VirtualMem]). All sizes, and all
// offsets from the beginning of a reservation, are multiples of PageSize.
type VirtualMem interface {
	// PageSize returns the granularity of physical memory in bytes. It is the same in all calls.
	PageSize() uint64

	// ReserveAddresses reserves addresses without memory. Work that touches addresses where nothing
	// is mapped loses the device. ReserveAddresses needs a bound thread.
	ReserveAddresses(size uint64) (Ptr, error)
	// FreeAddresses frees a whole reservation, in which nothing may be mapped. It needs a bound
	// thread.
	FreeAddresses(p Ptr, size uint64) error

	// NewPages allocates physical memory of the device, without an address. It needs a bound
	// thread.
	NewPages(size uint64) (Pages, error)
	// FreePages gives up the handle of pages. Their memory is freed when it is no longer mapped
	// anywhere. FreePages needs a bound thread.
	FreePages(Pages) error

	// MapPages maps all of pages at reserved addresses where nothing is mapped. The same pages may
	// be mapped at several places. No device has access until AccessPages. Work in flight is not
	// affected. MapPages needs a bound thread.
	MapPages(p Ptr, pages Pages, size uint64) error
	// UnmapPages undoes one call of MapPages. It may wait for the device. No work may use the
	// addresses any more. UnmapPages needs a bound thread.
	UnmapPages(p Ptr, size uint64) error
	// AccessPages lets devices of the driver use mapped addresses as their own memory. Other devices
	// keep their access. The range may span several calls of MapPages, and must not begin or end
	// within the range of one. [ErrUnsupported] means that the hardware has no link to one of the
	// devices. Devices without access can only use [Peers].CopyPeer. AccessPages needs a bound
	// thread.
	AccessPages(p Ptr, size uint64, devices []Device) error
}
