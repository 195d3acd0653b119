package gpu

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// KeepAll is the threshold of a pool that gives no memory back to the system by itself, except when
// an allocation on the device finds no memory.
const KeepAll = math.MaxUint64

// A Pool is memory that queues allocate and free in the order of their work: see [Alloc].
// All methods may be called concurrently.
//
// There are two kinds of pools. A native pool belongs to the driver. A portable pool belongs to the
// runtime. The runtime makes a portable pool where the driver has no pool for the kind of memory,
// or if the program asks for one. Both kinds reuse memory, and grow when they have too little.
// Growing takes as long as any allocation of the driver.
type Pool memory.PoolHandle

// handle returns the pool's handle of package memory.
func (p *Pool) handle() *memory.PoolHandle { return (*memory.PoolHandle)(p) }

// in returns the pool of package memory, or nil for a nil or zero pool.
func (p *Pool) in() *memory.Pool { return p.handle().Pool() }

// PoolOptions describe a pool to make. The zero value describes a pool of device memory that has no
// limit and keeps all memory that it has reserved.
type PoolOptions struct {
	// Kind is DeviceMem or HostMem. It may be ManagedMem if MaxSize is 0 and the driver has pools
	// of managed memory (CUDA 13.0), or if Over is managed memory.
	Kind MemKind
	// MaxSize is the most bytes to reserve, rounded up to Alignment. Drivers round up further. 0
	// means no limit.
	MaxSize     uint64
	InitialSize uint64 // bytes to reserve when the pool is made
	Threshold   uint64 // unused bytes to keep reserved; 0 means KeepAll, see Pool.SetThreshold
	Zero        bool   // memory is zero when it is allocated
	Portable    bool   // make a portable pool even if the driver has pools

	// Over, if not nil, makes a portable pool that hands out only parts of this buffer. The pool
	// has the kind and the size of the buffer. So MaxSize and InitialSize must be 0, and Kind must
	// be zero (DeviceMem) or the buffer's kind.
	Over *Buffer

	// Shareable lets other processes of the machine use the pool's memory: see ExportPool of
	// package interop. The driver must be able to share memory of pools, and Kind must be
	// DeviceMem. With CUDA such a pool gives no reserved memory back to the system until it is
	// closed.
	Shareable bool
}

// PoolStats count a pool's bytes.
type PoolStats = driver.PoolStats

// Reuse says when a pool may reuse, in one native stream, memory that was freed in another. Memory
// that was freed in the same stream may always be reused.
type Reuse = driver.PoolReuse

// DefaultPool returns the device's default pool, which is the same every time. The first call
// blocks while the driver makes or looks up the pool. If the pool is native, other users of the
// driver in the process share it. The first use sets the pool's threshold to [KeepAll], so the pool
// also keeps memory that those users have freed. Closing the device gives unused memory back.
func (d *Device) DefaultPool() (*Pool, error) {
	if d.isZero() {
		return nil, errs.Zero("default pool", "Device")
	}
	p, err := d.memory.DefaultPool()
	return (*Pool)(p), err
}

// CurrentPool returns the pool that allocations use if they name none. It is the default pool until
// [Device.SetCurrentPool] sets another pool.
func (d *Device) CurrentPool() (*Pool, error) {
	if d.isZero() {
		return nil, errs.Zero("current pool", "Device")
	}
	p, err := d.memory.CurrentPool()
	return (*Pool)(p), err
}

// SetCurrentPool sets the pool that allocations use if they name none. The driver's own current
// pool, which other users of the driver in the process share, does not change.
func (d *Device) SetCurrentPool(p *Pool) error {
	if d.isZero() {
		return errs.Zero("set current pool", "Device")
	}
	return d.memory.SetCurrentPool(p.handle())
}

// NewPool makes a pool. The program must close it. The pool is portable if the options ask for that
// (Portable, Over), or if the driver has no pools of this kind of memory. Otherwise it is native. A
// pool of managed memory must be native, or hand out parts of a buffer of managed memory (Over). If
// neither is possible, the error is [ErrUnsupported].
//
// A buffer given as Over must have room for at least one allocation of [Alignment] bytes. The
// buffer is held until the pool is closed and all memory of the pool has been freed.
//
// NewPool blocks while the driver makes the pool and reserves its initial size. If there is not
// enough memory, the error is [ErrOutOfMemory]. If the device takes more than ten seconds to
// reserve the initial size, the error is [driver.ErrBusy].
func (d *Device) NewPool(o PoolOptions) (*Pool, error) {
	p, err := d.newPool(o)
	if err == nil {
		p.handle().Watch()
	}
	return p, err
}

// newPool is like NewPool, but the pool is not watched for leaks yet.
func (d *Device) newPool(o PoolOptions) (*Pool, error) {
	if d.isZero() {
		return nil, errs.Zero("new pool", "Device")
	}
	p, err := d.memory.NewPool(memory.PoolOptions{Kind: o.Kind, MaxSize: o.MaxSize, InitialSize: o.InitialSize, Threshold: o.Threshold,
		Zero: o.Zero, Portable: o.Portable, Over: o.Over.in(), Shareable: o.Shareable})
	return (*Pool)(p), err
}

// Device returns the pool's device.
func (p *Pool) Device() *Device {
	if p.in().Device() == nil {
		return nil
	}
	return deviceOf(p.in().Device().Engine)
}

// Options returns the options of the pool, with three changes. Portable is set if the pool is
// portable, even if that was not requested. Kind and MaxSize of a pool over a buffer are the
// buffer's kind and size. Threshold is the last value of [Pool.SetThreshold]. If SetThreshold was
// not called, Threshold is the requested threshold, or [KeepAll] if that was 0.
func (p *Pool) Options() PoolOptions {
	o := p.in().Options()
	return PoolOptions{Kind: o.Kind, MaxSize: o.MaxSize, InitialSize: o.InitialSize, Threshold: o.Threshold,
		Zero: o.Zero, Portable: o.Portable, Over: (*Buffer)(o.Over), Shareable: o.Shareable}
}

// Stats returns the current figures. Freed memory of a native pool counts as used until the device
// has done the free. Freed memory of a portable pool counts as used until the free has been issued.
// For a native pool, Stats blocks while it queries the driver.
func (p *Pool) Stats() (PoolStats, error) {
	return p.in().Stats()
}

// SetThreshold sets how many unused bytes the pool keeps reserved. Memory above the threshold goes
// back to the system some time after a [Free] is done. [Pool.Trim] gives unused memory back
// immediately.
func (p *Pool) SetThreshold(n uint64) error {
	return p.in().SetThreshold(n)
}

// Reuse returns the conditions under which the pool may reuse memory that was freed in another
// stream. For a native pool, Reuse blocks while it queries the driver.
func (p *Pool) Reuse() (Reuse, error) {
	return p.in().Reuse()
}

// SetReuse sets when the pool may reuse memory that was freed in another stream. A portable pool
// always reuses memory in all three cases of [Reuse]: any other setting is [ErrUnsupported]. If
// [driver.Caps].PoolsByStream is set, a native pool cannot reuse memory by events: a Reuse with
// Events is [ErrUnsupported]. For a native pool, SetReuse blocks while it calls the driver.
func (p *Pool) SetReuse(r Reuse) error {
	return p.in().SetReuse(r)
}

// Trim gives unused memory back to the system. The argument keep is the least number of bytes that
// stay reserved, if the pool has so many. A pool over a buffer (PoolOptions.Over) gives nothing
// back. Trim blocks while the driver frees memory. It does not give back memory whose [Free] is not
// known to be done.
func (p *Pool) Trim(keep uint64) error {
	return p.in().Trim(keep)
}

// Access gives another device of the driver access to the pool's memory, or ends that access.
// Without access, the other device's queues refuse all operations on the memory except copies.
// Before you end the access, wait until the other device's operations on the memory are done:
// otherwise that device accesses memory that it cannot use, and is lost.
//
// Access to a portable pool covers all memory of the pool's device, as in a [Group]. To end that
// access, or access to managed memory, is [ErrUnsupported]. If the hardware does not support the
// access, the error is [ErrUnsupported] too.
func (p *Pool) Access(by *Device, allow bool) error {
	return p.in().Access(by.mem(), allow)
}

// Close closes the pool. It does not wait for work: allocated memory stays usable until it is freed
// or its buffer is closed. Later allocations fail with [ErrClosed], and so do earlier allocations
// that have not been issued. If the pool was the current pool, the default pool becomes current. To
// close the default pool is [ErrArgument]. Closing the device closes all pools. Closing again does
// nothing.
func (p *Pool) Close() error {
	return p.in().Close()
}
