package driver

import "os"

// MemSharing shares memory between processes by file descriptors ([Caps.MemSharing]). Alloc makes
// the memory, of kind [ShareableMem]. The memory exists until all processes have freed it and
// closed its descriptors. Only the device that has allocated or imported the memory at an address
// can use that address, except by [Peers].CopyPeer.
type MemSharing interface {
	// ExportShareable returns a new descriptor of memory of kind [ShareableMem]. The caller closes
	// the descriptor. ExportShareable needs a bound thread.
	ExportShareable(Mem) (*os.File, error)
	// ImportShareable maps the memory behind a descriptor at a new address, and lets this device
	// use it. The caller closes the descriptor. size is the size of the whole memory: a size with
	// another number of pages is an error. The result is of kind [ShareableMem], and Free releases
	// it. The exporting process may import the memory too. ImportShareable needs a bound thread.
	ImportShareable(f *os.File, size uint64) (Mem, error)
}
