package driver

// A Pool is a native memory pool. Zero is none.
type Pool uintptr

// A PoolDesc describes a new pool.
type PoolDesc struct {
	Kind MemKind // DeviceMem; HostMem if Caps.HostPools is set, and ManagedMem if Caps.ManagedPools is
	// MaxSize is the maximum of reserved bytes, which the API may round up; 0 is no limit, and the
	// only value for ManagedMem.
	MaxSize uint64

	// Shareable lets other processes use its memory, by [PoolSharing]: only DeviceMem, and only if
	// Caps.PoolSharing is set.
	Shareable bool
}

// A PoolAttr is a property of a pool. All are numbers; switches are 0 or 1.
type PoolAttr int

// The properties of pools.
const (
	PoolReuseEvents        PoolAttr = iota // switch: reuse across streams that events order
	PoolReuseOpportunistic                 // switch: reuse across streams if a free happens to be done
	PoolReuseInternal                      // switch: reuse across streams, where one waits for the other
	PoolThreshold                          // bytes that are kept reserved when the device is synchronized
	PoolReserved                           // bytes reserved; read only
	PoolReservedHigh                       // the maximum so far; setting it to 0 resets it
	PoolUsed                               // bytes in use; read only
	PoolUsedHigh                           // the maximum so far; setting it to 0 resets it
)

// PoolStats count a pool's bytes.
type PoolStats struct {
	Reserved, ReservedHigh uint64 // from the system
	Used, UsedHigh         uint64 // in allocations
}

// PoolReuse says when freed memory of one stream may be reused in another stream. The same stream
// may always reuse it.
type PoolReuse struct {
	Events        bool // if an event orders the free before the new use: PoolReuseEvents
	Opportunistic bool // if the free happens to be done: PoolReuseOpportunistic
	Internal      bool // the driver may make the second stream wait for the first: PoolReuseInternal
}

// Pools has memory that is allocated and freed in stream order ([Caps.Pools]).
//
// If [Caps.PoolsByStream] is set, memory must be freed in the stream that it was allocated in: the
// API gives freed memory to the freeing stream again at once, even if another stream still uses it.
// After the stream of the allocation has been destroyed, any other stream may free the memory. If
// Caps.PoolsByStream is set, PoolReuseEvents is 0, and setting it to 1 is [ErrUnsupported].
type Pools interface {
	// DefaultPool returns the pool that the device always has. It is never destroyed. Creating.
	DefaultPool() (Pool, error)
	// CurrentPool returns the pool that programs share by agreement: the default one until
	// SetCurrentPool. Creating.
	CurrentPool() (Pool, error)
	// SetCurrentPool makes a pool of this device the current one. Creating.
	SetCurrentPool(Pool) error

	// NewPool makes a pool. This device can use the pool's memory. If the memory is HostMem or
	// ManagedMem, the host and all devices of the driver can also use it. Creating.
	NewPool(PoolDesc) (Pool, error)
	// DestroyPool destroys a pool of NewPool. If the API allows it, the pool may still have
	// allocations. The pool's memory is then freed when all of them have been freed. While streams
	// have work, the error may be [ErrBusy]. The pool is then not destroyed. Creating.
	DestroyPool(Pool) error

	// PoolAttr reads a property. Creating.
	PoolAttr(Pool, PoolAttr) (uint64, error)
	// SetPoolAttr sets a property. Creating.
	SetPoolAttr(Pool, PoolAttr, uint64) error
	// TrimPool frees reserved memory that is not in use, down to keep bytes. Creating.
	TrimPool(p Pool, keep uint64) error
	// AccessPool allows or forbids another device of the driver to use a pool's memory. All devices
	// may use a pool of host memory from the start. It is not called for pools of managed memory.
	// Creating.
	AccessPool(p Pool, by Device, allow bool) error

	// AllocAsync allocates in stream order: work that the stream orders after it may use the
	// memory. size is not zero. It returns at once unless the pool has to grow. Submitting.
	AllocAsync(s Stream, p Pool, size uint64) (Mem, error)
	// FreeAsync frees memory of AllocAsync in stream order, on any stream. If Caps.PoolsByStream is
	// set, s must be the stream of AllocAsync, unless that stream has been destroyed. Submitting.
	FreeAsync(s Stream, m Mem) error
}
