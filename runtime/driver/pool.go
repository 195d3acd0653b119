package driver

// A Pool is a native memory pool. Zero means no pool.
type Pool uintptr

// A PoolDesc describes a new pool.
type PoolDesc struct {
	Kind MemKind // kind of memory: DeviceMem; HostMem if Caps.HostPools is set, and ManagedMem if Caps.ManagedPools is set
	// MaxSize is the maximum number of reserved bytes, which the API may round up. 0 means no
	// limit. For ManagedMem MaxSize must be 0.
	MaxSize uint64

	// Shareable lets other processes use the pool's memory; see [PoolSharing]. Shareable is only
	// for pools of DeviceMem, and only if Caps.PoolSharing is set.
	Shareable bool
}

// A PoolAttr is a property of a pool. All properties are numbers. Switches are 0 or 1.
type PoolAttr int

// The properties of pools.
const (
	PoolReuseEvents        PoolAttr = iota // switch: reuse memory in another stream if an event orders that stream after the free
	PoolReuseOpportunistic                 // switch: reuse memory in another stream if the free happens to be complete
	PoolReuseInternal                      // switch: reuse memory in another stream by making that stream wait for the free
	PoolThreshold                          // bytes that stay reserved when the device is synchronized
	PoolReserved                           // bytes reserved; read only
	PoolReservedHigh                       // maximum of PoolReserved so far; setting it to 0 resets it
	PoolUsed                               // bytes in use; read only
	PoolUsedHigh                           // maximum of PoolUsed so far; setting it to 0 resets it
)

// PoolStats counts a pool's bytes.
type PoolStats struct {
	Reserved, ReservedHigh uint64 // bytes reserved from the system
	Used, UsedHigh         uint64 // bytes in allocations
}

// PoolReuse says when memory that was freed in one stream may be reused in another stream. The
// stream of the free may always reuse the memory.
type PoolReuse struct {
	Events        bool // if an event orders the free before the new allocation: PoolReuseEvents
	Opportunistic bool // if the free happens to be complete: PoolReuseOpportunistic
	Internal      bool // if the driver makes the allocating stream wait for the free: PoolReuseInternal
}

// Pools allocates and frees memory in stream order ([Caps.Pools]).
//
// If [Caps.PoolsByStream] is set, memory must be freed in the stream that it was allocated in. If
// another stream freed it, the API could give the memory out again while the freeing stream still
// uses it. After the stream of the allocation has been destroyed, any other stream may free the
// memory. If Caps.PoolsByStream is set, PoolReuseEvents is 0, and setting it to 1 is
// [ErrUnsupported].
type Pools interface {
	// DefaultPool returns the pool that the device always has, and that is never destroyed.
	// DefaultPool needs a bound thread.
	DefaultPool() (Pool, error)
	// CurrentPool returns the device's current pool, which other code in the process may use too.
	// That is the default pool until SetCurrentPool is called. CurrentPool needs a bound thread.
	CurrentPool() (Pool, error)
	// SetCurrentPool makes a pool of this device the current pool. It needs a bound thread.
	SetCurrentPool(Pool) error

	// NewPool makes a pool. This device can use the pool's memory. If the memory is HostMem or
	// ManagedMem, the host and all devices of the driver can also use it. NewPool needs a bound
	// thread.
	NewPool(PoolDesc) (Pool, error)
	// DestroyPool destroys a pool of NewPool. If the API allows it, the pool may still have
	// allocations. The pool's memory is then freed when all allocations have been freed. While
	// streams have work, the error may be [ErrBusy]. The pool is then not destroyed. DestroyPool
	// needs a bound thread.
	DestroyPool(Pool) error

	// PoolAttr reads a property. It needs a bound thread.
	PoolAttr(Pool, PoolAttr) (uint64, error)
	// SetPoolAttr sets a property. It needs a bound thread.
	SetPoolAttr(Pool, PoolAttr, uint64) error
	// TrimPool gives reserved memory that is not in use back to the system, but keeps at least keep
	// bytes reserved. It needs a bound thread.
	TrimPool(p Pool, keep uint64) error
	// AccessPool allows or forbids another device of the driver to use a pool's memory. All devices
	// may use a pool of host memory from the start. Do not call AccessPool for pools of managed
	// memory. AccessPool needs a bound thread.
	AccessPool(p Pool, by Device, allow bool) error

	// AllocAsync allocates memory in stream order. Work that comes after the allocation in stream
	// order may use the memory. size is not zero. AllocAsync returns at once unless the pool has to
	// grow. Any thread may call it.
	AllocAsync(s Stream, p Pool, size uint64) (Mem, error)
	// FreeAsync frees memory of AllocAsync in stream order, in any stream. If Caps.PoolsByStream is
	// set, s must be the stream of AllocAsync, unless that stream has been destroyed. Any thread
	// may call it.
	FreeAsync(s Stream, m Mem) error
}
