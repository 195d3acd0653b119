package driver

import "os"

// PoolSharing is what a [Device] implements besides where [Caps.PoolSharing] is set: pools whose memory processes share, by file
// descriptors, which they send to each other. A process imports a pool, and of that one allocation after the other; it allocates nothing from it.
type PoolSharing interface {
	// ExportPool returns a new descriptor of a pool that NewPool has made with [PoolDesc].Shareable, for the caller to close. It is good for as long as
	// it is open. Creating.
	ExportPool(Pool) (*os.File, error)
	// ImportPool makes a pool of a descriptor, which is closed by the caller, and lets this device use its memory. DestroyPool gives it back, which may
	// have memory left that is open. Creating.
	ImportPool(*os.File) (Pool, error)
	// ExportPoolMem names what AllocAsync has allocated from a shareable pool. Others may use it when the allocation is done, and must have closed
	// it before it is freed. Creating.
	ExportPoolMem(Mem) (MemHandle, error)
	// OpenPoolMem makes an allocation of an imported pool accessible. The Size of what it returns is the allocation's, or 0 if the API does not
	// tell. Creating.
	OpenPoolMem(Pool, MemHandle) (Mem, error)
	// ClosePoolMem undoes OpenPoolMem, and may wait for the device. Creating.
	ClosePoolMem(Mem) error
}
