package driver

import "os"

// MemSharing shares memory between processes by file descriptors ([Caps.MemSharing]). Alloc makes
// it, of kind [ShareableMem]. It exists until no process has it and no descriptor of it is open, in
// any order. Only this device can use it, except by [Peers].CopyPeer.
type MemSharing interface {
	// ExportShareable returns a new descriptor of memory of kind [ShareableMem], which the caller
	// closes. Creating.
	ExportShareable(Mem) (*os.File, error)
	// ImportShareable maps the memory behind a descriptor, which the caller closes, at an address
	// of its own, and lets this device use it. The size must be the whole memory's: another number
	// of pages is an error. The result is of kind [ShareableMem], and Free releases it. The
	// exporting process may import it too. Creating.
	ImportShareable(f *os.File, size uint64) (Mem, error)
}
