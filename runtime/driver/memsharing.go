package driver

import "os"

// MemSharing is what a [Device] implements besides where [Caps.MemSharing] is set: memory that processes share by file descriptors. Alloc
// makes it, of kind [ShareableMem]. It is there until no process has it any more, and no descriptor of it is open, in whatever order they let go of
// it. Only this device can use it, other than by [Peers].CopyPeer.
type MemSharing interface {
	// ExportShareable returns a new descriptor of memory that Alloc has made of kind [ShareableMem], for the caller to close. Creating.
	ExportShareable(Mem) (*os.File, error)
	// ImportShareable gives the memory behind a descriptor, which is closed by the caller, an address of its own, and lets this device use it. The
	// size is that of the memory, which can be had as a whole only: another number of pages is an error. What it returns is of kind
	// [ShareableMem], and Free gives it back.
	// The process that has exported it can import it, too. Creating.
	ImportShareable(f *os.File, size uint64) (Mem, error)
}
