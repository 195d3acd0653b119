package cudadriver

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Pools = (*device)(nil)

// poolLimits is the first release in which a pool can have a maximum size. Older releases treat the
// field as reserved.
const poolLimits = 12020

// hostMemoryPools is the first release that has pools of host memory.
const hostMemoryPools = 13000

// managedMemoryPools is the first release that has pools of managed memory.
const managedMemoryPools = 13000

// poolAttrs are CUDA's names for the attributes of pools. Values of switches are C ints, others
// have 64 bits.
var poolAttrs = [...]cuda.MemPoolAttribute{
	driver.PoolReuseEvents:        cuda.MemPoolAttrReuseFollowEventDependencies,
	driver.PoolReuseOpportunistic: cuda.MemPoolAttrReuseAllowOpportunistic,
	driver.PoolReuseInternal:      cuda.MemPoolAttrReuseAllowInternalDependencies,
	driver.PoolThreshold:          cuda.MemPoolAttrReleaseThreshold,
	driver.PoolReserved:           cuda.MemPoolAttrReservedMemCurrent,
	driver.PoolReservedHigh:       cuda.MemPoolAttrReservedMemHigh,
	driver.PoolUsed:               cuda.MemPoolAttrUsedMemCurrent,
	driver.PoolUsedHigh:           cuda.MemPoolAttrUsedMemHigh,
}

// isSwitch reports whether an attribute has only the values 0 and 1.
func isSwitch(a driver.PoolAttr) bool { return a <= driver.PoolReuseInternal }

// hostPools holds the pools of host and managed memory that a driver's devices have made. Memory of
// these pools has a host address. AllocAsync looks a pool up in the list, because asking CUDA would
// be slow. The list is replaced, never changed.
type hostPools struct {
	mu   sync.Mutex
	list atomic.Pointer[[]hostPool]
}

type hostPool struct {
	pool driver.Pool
	kind driver.MemKind
}

// kind returns the kind of a pool's memory.
func (h *hostPools) kind(p driver.Pool) driver.MemKind {
	if list := h.list.Load(); list != nil {
		for _, x := range *list {
			if x.pool == p {
				return x.kind
			}
		}
	}
	return driver.DeviceMem
}

// ever reports whether a pool of host or managed memory was ever made. The pool's memory may
// outlive the pool.
func (h *hostPools) ever() bool { return h.list.Load() != nil }

func (h *hostPools) add(p driver.Pool, kind driver.MemKind) {
	h.change(func(list []hostPool) []hostPool { return append(list, hostPool{p, kind}) })
}

// remove removes a pool and returns the kind of its memory, or DeviceMem if the list does not have
// the pool.
func (h *hostPools) remove(p driver.Pool) driver.MemKind {
	kind := h.kind(p)
	if kind != driver.DeviceMem {
		h.change(func(list []hostPool) []hostPool {
			return slices.DeleteFunc(list, func(x hostPool) bool { return x.pool == p })
		})
	}
	return kind
}

// change replaces the list with the result of f for a copy of the list.
func (h *hostPools) change(f func([]hostPool) []hostPool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []hostPool
	if old := h.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	h.list.Store(&list)
}

func (d *device) DefaultPool() (driver.Pool, error) {
	if d.noPools != nil {
		return 0, d.fail("default pool", d.noPools, "memory pools")
	}
	p, err := d.lib.DeviceGetDefaultMemPool(d.id)
	if err != nil {
		return 0, d.fail("default pool", err, "ask for the pool")
	}
	return driver.Pool(p), nil
}

func (d *device) CurrentPool() (driver.Pool, error) {
	if d.noPools != nil {
		return 0, d.fail("current pool", d.noPools, "memory pools")
	}
	p, err := d.lib.DeviceGetMemPool(d.id)
	if err != nil {
		return 0, d.fail("current pool", err, "ask for the pool")
	}
	return driver.Pool(p), nil
}

func (d *device) SetCurrentPool(p driver.Pool) error {
	if d.noPools != nil {
		return d.fail("set current pool", d.noPools, "memory pools")
	}
	if err := d.lib.DeviceSetMemPool(d.id, cuda.MemoryPool(p)); err != nil {
		return d.fail("set current pool", err, "pool %#x", uintptr(p))
	}
	return nil
}

// NewPool makes a pool. Other processes cannot open the pool's memory unless the pool is shareable.
// Initially CUDA lets only the host access a pool of host memory, so NewPool gives all devices
// access too.
func (d *device) NewPool(desc driver.PoolDesc) (driver.Pool, error) {
	if d.noPools != nil {
		return 0, d.fail("new pool", d.noPools, "memory pools")
	}
	props := &cuda.MemPoolProps{AllocType: cuda.MemAllocationTypePinned, MaxSize: desc.MaxSize}
	if desc.Shareable {
		if !d.caps.PoolSharing || desc.Kind != driver.DeviceMem {
			return 0, d.fail("new pool", driver.ErrUnsupported, "a shareable pool of memory of kind %d", int(desc.Kind))
		}
		props.HandleTypes = cuda.MemHandleTypePosixFileDescriptor
	}
	var what string
	switch desc.Kind {
	case driver.DeviceMem:
		what, props.Location = "device", location(int32(d.info.Index))
	case driver.HostMem:
		if !d.caps.HostPools {
			return 0, d.fail("new pool", driver.ErrUnsupported, "a pool of host memory")
		}
		what, props.Location.Type = "host", cuda.MemLocationTypeHost
	case driver.ManagedMem: // the location is only the initial one
		if !d.caps.ManagedPools || desc.MaxSize != 0 {
			return 0, d.fail("new pool", driver.ErrUnsupported, "a pool of managed memory, of at most %d bytes", desc.MaxSize)
		}
		what, props.AllocType, props.Location = "managed", cuda.MemAllocationTypeManaged, location(int32(d.info.Index))
	default:
		return 0, d.fail("new pool", cuda.ErrorInvalidValue, "a pool of unknown kind of memory %d", int(desc.Kind))
	}
	if v := d.lib.Version(); desc.MaxSize != 0 && v < poolLimits {
		return 0, d.fail("new pool", driver.ErrUnsupported, "a pool of at most %d bytes: the driver has CUDA %s, and limits need %s",
			desc.MaxSize, cuda.FormatVersion(v), cuda.FormatVersion(poolLimits))
	}
	pool, err := d.lib.MemPoolCreate(props)
	if err != nil {
		return 0, d.fail("new pool", err, "a pool of %s memory, of at most %d bytes", what, desc.MaxSize)
	}
	if desc.Kind == driver.HostMem { // not for managed memory, to which all devices have access
		n, err := d.lib.DeviceGetCount()
		for i := int32(0); i < n && err == nil; i++ {
			err = d.access(pool, i, cuda.MemAccessFlagsProtReadWrite)
		}
		if err != nil {
			return 0, d.fail("new pool", errors.Join(err, d.lib.MemPoolDestroy(pool)), "access to a pool of host memory")
		}
	}
	if desc.Kind != driver.DeviceMem {
		d.hostPools.add(driver.Pool(pool), desc.Kind)
	}
	return driver.Pool(pool), nil
}

// DestroyPool first lets the CUDA driver notice completed frees. Some releases crash later if a
// pool is destroyed before the driver has noticed a free of its memory.
func (d *device) DestroyPool(p driver.Pool) error {
	if d.noPools != nil {
		return d.fail("destroy pool", d.noPools, "memory pools")
	}
	if busy, err := d.settle("destroy pool"); err != nil {
		return err
	} else if busy {
		return d.fail("destroy pool", driver.ErrBusy, "pool %#x, while streams have pending work", uintptr(p))
	}
	kind := d.hostPools.remove(p) // must come before the pool is destroyed: afterwards another pool can get the handle
	if err := d.lib.MemPoolDestroy(cuda.MemoryPool(p)); err != nil {
		if kind != driver.DeviceMem {
			d.hostPools.add(p, kind)
		}
		return d.fail("destroy pool", err, "pool %#x", uintptr(p))
	}
	return nil
}

// settle synchronizes the streams without pending work, so that the CUDA driver notices their
// completed frees. It reports whether other streams have pending work. While settle holds
// d.streamsMu, no stream in d.streams can be destroyed.
func (d *device) settle(op string) (busy bool, err error) {
	d.streamsMu.Lock()
	defer d.streamsMu.Unlock()
	for s := range d.streams {
		err := d.lib.StreamQuery(s)
		if err == nil {
			err = d.lib.StreamSynchronize(s)
		}
		switch {
		case err == cuda.ErrorNotReady:
			busy = true
		case err != nil:
			return busy, d.fail(op, err, "wait for stream %#x", uintptr(s))
		}
	}
	return busy, nil
}

func (d *device) PoolAttr(p driver.Pool, a driver.PoolAttr) (value uint64, err error) {
	if d.noPools != nil {
		return 0, d.fail("pool attribute", d.noPools, "memory pools")
	}
	if a < 0 || int(a) >= len(poolAttrs) {
		return 0, d.fail("pool attribute", cuda.ErrorInvalidValue, "no attribute %d", int(a))
	}
	if isSwitch(a) {
		var on int32
		err = d.lib.MemPoolGetAttribute(cuda.MemoryPool(p), poolAttrs[a], unsafe.Pointer(&on))
		value = uint64(on)
	} else {
		err = d.lib.MemPoolGetAttribute(cuda.MemoryPool(p), poolAttrs[a], unsafe.Pointer(&value))
	}
	if err != nil {
		return 0, d.fail("pool attribute", err, "%v of pool %#x", poolAttrs[a], uintptr(p))
	}
	return value, nil
}

func (d *device) SetPoolAttr(p driver.Pool, a driver.PoolAttr, value uint64) error {
	if d.noPools != nil {
		return d.fail("set pool attribute", d.noPools, "memory pools")
	}
	if a < 0 || int(a) >= len(poolAttrs) {
		return d.fail("set pool attribute", cuda.ErrorInvalidValue, "no attribute %d", int(a))
	}
	var err error
	switch {
	case !isSwitch(a):
		err = d.lib.MemPoolSetAttribute(cuda.MemoryPool(p), poolAttrs[a], unsafe.Pointer(&value))
	case value <= 1:
		on := int32(value)
		err = d.lib.MemPoolSetAttribute(cuda.MemoryPool(p), poolAttrs[a], unsafe.Pointer(&on))
	default:
		err = fmt.Errorf("a switch is 0 or 1: %w", cuda.ErrorInvalidValue)
	}
	if err != nil {
		return d.fail("set pool attribute", err, "%v of pool %#x to %d", poolAttrs[a], uintptr(p), value)
	}
	return nil
}

// TrimPool first lets the CUDA driver notice completed frees.
func (d *device) TrimPool(p driver.Pool, keep uint64) error {
	if d.noPools != nil {
		return d.fail("trim pool", d.noPools, "memory pools")
	}
	if _, err := d.settle("trim pool"); err != nil {
		return err
	}
	if err := d.lib.MemPoolTrimTo(cuda.MemoryPool(p), keep); err != nil {
		return d.fail("trim pool", err, "pool %#x to %d bytes", uintptr(p), keep)
	}
	return nil
}

func (d *device) AccessPool(p driver.Pool, by driver.Device, allow bool) error {
	if d.noPools != nil {
		return d.fail("access pool", d.noPools, "memory pools")
	}
	other, ok := by.(*device)
	if !ok {
		return d.fail("access pool", cuda.ErrorInvalidDevice, "%T is not a device of this driver", by)
	}
	flags := cuda.MemAccessFlagsProtNone
	if allow {
		flags = cuda.MemAccessFlagsProtReadWrite
	}
	// For device memory the call below fails without a link. compute-sanitizer would report that.
	if other.id != d.id && d.hostPools.kind(p) == driver.DeviceMem {
		if can, err := d.lib.DeviceCanAccessPeer(other.id, d.id); err == nil && can == 0 {
			return d.fail("access pool", errNoLink, "%v for device %d to pool %#x", flags, other.info.Index, uintptr(p))
		}
	}
	if err := d.access(cuda.MemoryPool(p), int32(other.info.Index), flags); err != nil {
		if errors.Is(err, cuda.ErrorPeerAccessUnsupported) {
			err = unsupported{err}
		}
		return d.fail("access pool", err, "%v for device %d to pool %#x", flags, other.info.Index, uintptr(p))
	}
	return nil
}

// access sets the access of a device to a pool's memory.
func (d *device) access(p cuda.MemoryPool, by int32, flags cuda.MemAccessFlags) error {
	return d.lib.MemPoolSetAccess(p, []cuda.MemAccessDesc{{Location: location(by), Flags: flags}})
}

func location(device int32) cuda.MemLocation {
	return cuda.MemLocation{Type: cuda.MemLocationTypeDevice, Id: device}
}

// AllocAsync accepts pools of the driver's other devices too. The memory is on the pool's device.
func (d *device) AllocAsync(s driver.Stream, p driver.Pool, size uint64) (driver.Mem, error) {
	if d.noPools != nil {
		return driver.Mem{}, d.fail("alloc async", d.noPools, "memory pools")
	}
	if s <= defaultStreams {
		return driver.Mem{}, d.noStream("alloc async", s)
	}
	var ptr cuda.DevicePtr
	err := d.submit(func() (err error) {
		ptr, err = d.lib.MemAllocFromPoolAsync(size, cuda.MemoryPool(p), cuda.Stream(s))
		return err
	})
	if err != nil {
		return driver.Mem{}, d.fail("alloc async", err, "%d bytes of pool %#x in stream %#x", size, uintptr(p), uintptr(s))
	}
	m := driver.Mem{Kind: d.hostPools.kind(p), Ptr: driver.Ptr(ptr), Size: size}
	if m.Kind != driver.DeviceMem {
		m.Host = hostPointer(ptr)
	}
	return m, nil
}

func (d *device) FreeAsync(s driver.Stream, m driver.Mem) error {
	if d.noPools != nil {
		return d.fail("free async", d.noPools, "memory pools")
	}
	if s <= defaultStreams {
		return d.noStream("free async", s)
	}
	if err := d.submit(func() error { return d.lib.MemFreeAsync(cuda.DevicePtr(m.Ptr), cuda.Stream(s)) }); err != nil {
		return d.fail("free async", err, "%d bytes at %#x in stream %#x", m.Size, uint64(m.Ptr), uintptr(s))
	}
	return nil
}
