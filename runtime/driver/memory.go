package driver

import "unsafe"

// A Prefetcher moves managed memory ([Caps.Prefetch]).
type Prefetcher interface {
	// Prefetch moves n bytes of managed memory, in stream order. The parameter to is DeviceMem for
	// this device, or HostMem for the host. Contents and access stay the same. Any thread may call
	// Prefetch.
	Prefetch(s Stream, p Ptr, n uint64, to MemKind) error
}

// A ReadOnlyRegistrar pins read-only memory ([Caps.ReadOnlyRegister]).
type ReadOnlyRegistrar interface {
	// RegisterReadOnly is like [Device.Register], but the device only reads the memory, such as a
	// file mapped for reading. The host need not be able to write the memory. Unregister undoes the
	// call. RegisterReadOnly needs a bound thread.
	RegisterReadOnly(p unsafe.Pointer, size uint64) (Ptr, error)
}
