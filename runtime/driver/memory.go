package driver

import "unsafe"

// A Prefetcher is what a [Device] implements besides where [Caps.Prefetch] is set.
type Prefetcher interface {
	// Prefetch moves n bytes of managed memory, in stream order, to where memory of a kind is: DeviceMem is this device, HostMem the
	// host. What is in it stays the same, and so does who may use it. Submitting.
	Prefetch(s Stream, p Ptr, n uint64, to MemKind) error
}

// A ReadOnlyRegistrar is what a [Device] implements besides where [Caps.ReadOnlyRegister] is set.
type ReadOnlyRegistrar interface {
	// RegisterReadOnly is [Device.Register] for memory that the device only reads, which the host need not be able to write to
	// either, such as a file that is mapped for reading. Unregister undoes it. Creating.
	RegisterReadOnly(p unsafe.Pointer, size uint64) (Ptr, error)
}
