package driver

import "os"

// PoolSharing shares memory of pools between processes, by file descriptors ([Caps.PoolSharing]). A
// process imports a pool, and then opens the pool's allocations one by one. A process cannot
// allocate from an imported pool.
type PoolSharing interface {
	// ExportPool returns a new descriptor of a pool of NewPool with [PoolDesc].Shareable. The
	// caller closes the descriptor, which is valid until then. ExportPool needs a bound thread.
	ExportPool(Pool) (*os.File, error)
	// ImportPool makes a pool from a descriptor, and lets this device use the pool's memory. The
	// caller closes the descriptor. DestroyPool releases the pool, even while memory of the pool is
	// open. ImportPool needs a bound thread.
	ImportPool(*os.File) (Pool, error)
	// ExportPoolMem returns a handle of an allocation of AllocAsync from a shareable pool. Other
	// processes may use the memory when the stream has executed the allocation. They must call
	// ClosePoolMem before the memory is freed. ExportPoolMem needs a bound thread.
	ExportPoolMem(Mem) (MemHandle, error)
	// OpenPoolMem makes an allocation of an imported pool accessible. The returned Size is the
	// allocation's, or 0 if the API does not report it. OpenPoolMem needs a bound thread.
	OpenPoolMem(Pool, MemHandle) (Mem, error)
	// ClosePoolMem undoes OpenPoolMem, and may wait for the device. It needs a bound thread.
	ClosePoolMem(Mem) error
}
