package driver

// A Pool is a native memory pool. Zero is none.
type Pool uintptr

// A PoolDesc says what pool to make.
type PoolDesc struct {
	Kind    MemKind // DeviceMem; HostMem where Caps.HostPools is set, and ManagedMem where Caps.ManagedPools is
	MaxSize uint64  // bytes that it may reserve, which the API may round up; 0 is as much as there is, and all that ManagedMem can have

	// Shareable lets other processes have its memory, by [PoolSharing]. Only where Caps.PoolSharing is set, and of DeviceMem.
	Shareable bool
}

// A PoolAttr is a property of a pool. All are numbers; those that are switches are 0 or 1.
type PoolAttr int

// The properties of pools.
const (
	PoolReuseEvents        PoolAttr = iota // switch: reuse across streams that events order; 0 where Caps.PoolsByStream is set
	PoolReuseOpportunistic                 // switch: reuse across streams where a free happens to be done
	PoolReuseInternal                      // switch: reuse across streams by making the second wait for the first
	PoolThreshold                          // bytes that are kept reserved when the device is synchronized
	PoolReserved                           // bytes reserved; read only
	PoolReservedHigh                       // the most that was; may be set to 0, which resets it
	PoolUsed                               // bytes in use; read only
	PoolUsedHigh                           // the most that was; may be set to 0, which resets it
)

// PoolStats count a pool's bytes.
type PoolStats struct {
	Reserved, ReservedHigh uint64 // from the system
	Used, UsedHigh         uint64 // in allocations
}

// PoolReuse says when freed memory of one stream may be reused in another stream. Within one stream it always may.
type PoolReuse struct {
	Events        bool // if an event orders the free before the new use: PoolReuseEvents
	Opportunistic bool // if the free happens to be done: PoolReuseOpportunistic
	Internal      bool // the driver may make the second stream wait for the first: PoolReuseInternal
}

// Pools is what a [Device] implements besides where [Caps.Pools] is set: memory that is allocated and freed in stream order.
//
// Where [Caps.PoolsByStream] is set as well, memory must be freed in the stream that it was allocated in:
// the API gives freed memory to the freeing stream again at once, even if another stream still uses it.
// Once that stream has been destroyed, any other will do. PoolReuseEvents is 0 there, and to set it is
// [ErrUnsupported].
type Pools interface {
	// DefaultPool returns the pool that the device always has. It is never destroyed. Creating.
	DefaultPool() (Pool, error)
	// CurrentPool returns the pool that programs share by agreement: the default one until SetCurrentPool. Creating.
	CurrentPool() (Pool, error)
	// SetCurrentPool makes a pool of this device the current one. Creating.
	SetCurrentPool(Pool) error

	// NewPool makes a pool, whose memory this device can use, and the host and all devices of the driver if it is HostMem or
	// ManagedMem. Creating.
	NewPool(PoolDesc) (Pool, error)
	// DestroyPool destroys a pool that NewPool made. It may have allocations left where the API can do that: its memory goes
	// when they have been freed. While streams have work the error may be [ErrBusy], and nothing has changed.
	// Creating.
	DestroyPool(Pool) error

	// PoolAttr reads a property. Creating.
	PoolAttr(Pool, PoolAttr) (uint64, error)
	// SetPoolAttr sets a property. Creating.
	SetPoolAttr(Pool, PoolAttr, uint64) error
	// TrimPool gives reserved memory that is not in use back, down to keep bytes. Creating.
	TrimPool(p Pool, keep uint64) error
	// AccessPool lets another device of the driver use a pool's memory, or no longer. All devices may use a pool of the host's memory
	// from the outset. It is not called for pools of managed memory. Creating.
	AccessPool(p Pool, by Device, allow bool) error

	// AllocAsync allocates in stream order: work that the stream orders after it may use the memory. size is not zero.
	// It returns at once unless the pool has to grow. Submitting.
	AllocAsync(s Stream, p Pool, size uint64) (Mem, error)
	// FreeAsync frees in stream order what AllocAsync allocated, on any stream, or with Caps.PoolsByStream
	// on that of AllocAsync while that exists. Submitting.
	FreeAsync(s Stream, m Mem) error
}
