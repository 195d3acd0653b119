package driver

// Pages are physical memory of a device. Zero is none.
type Pages uint64

// VirtualMem maps physical memory at reserved addresses ([Caps.VirtualMem]). All sizes are
// multiples of PageSize, and so are distances from the begin of a reservation.
type VirtualMem interface {
	// PageSize is the granularity of physical memory. It is always the same.
	PageSize() uint64

	// ReserveAddresses reserves addresses without memory. Work that touches them loses the device.
	// Creating.
	ReserveAddresses(size uint64) (Ptr, error)
	// FreeAddresses gives a whole reservation back. Nothing is mapped in it. Creating.
	FreeAddresses(p Ptr, size uint64) error

	// NewPages allocates physical memory of the device, without an address. Creating.
	NewPages(size uint64) (Pages, error)
	// FreePages gives up pages. Their memory is freed when it is mapped nowhere. Creating.
	FreePages(Pages) error

	// MapPages maps whole pages at reserved addresses where nothing is mapped. The same pages may
	// be mapped at several places. No device has access yet. Nothing in flight is disturbed.
	// Creating.
	MapPages(p Ptr, pages Pages, size uint64) error
	// UnmapPages undoes one call of MapPages. It may wait for the device. Work that touches the
	// addresses must be over. Creating.
	UnmapPages(p Ptr, size uint64) error
	// AccessPages lets devices of the driver use mapped addresses, as memory of their own, from any
	// number of calls of MapPages. [ErrUnsupported] means that the hardware has no link to one of
	// them. Other devices can only do [Peers].CopyPeer. Creating.
	AccessPages(p Ptr, size uint64, devices []Device) error
}
