package hipdriver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Pools = (*device)(nil)

// poolsSince is the first release whose pools are used. Pools of earlier releases have no limit,
// return success without an address when they are out of memory, and cannot reset the maximum of
// their reserved memory.
const poolsSince = 6_02_00000

// poolSymbols are the functions that pools need.
var poolSymbols = []string{
	"hipDeviceGetDefaultMemPool", "hipDeviceGetMemPool", "hipDeviceSetMemPool", "hipMemPoolCreate", "hipMemPoolDestroy",
	"hipMemPoolGetAttribute", "hipMemPoolSetAttribute", "hipMemPoolTrimTo", "hipMemPoolSetAccess", "hipMallocFromPoolAsync", "hipFreeAsync",
}

// poolAttrs are HIP's names for the attributes of pools. Values of switches are C ints, others have
// 64 bits.
var poolAttrs = [...]hip.MemPoolAttr{
	driver.PoolReuseEvents:        hip.MemPoolReuseFollowEventDependencies,
	driver.PoolReuseOpportunistic: hip.MemPoolReuseAllowOpportunistic,
	driver.PoolReuseInternal:      hip.MemPoolReuseAllowInternalDependencies,
	driver.PoolThreshold:          hip.MemPoolAttrReleaseThreshold,
	driver.PoolReserved:           hip.MemPoolAttrReservedMemCurrent,
	driver.PoolReservedHigh:       hip.MemPoolAttrReservedMemHigh,
	driver.PoolUsed:               hip.MemPoolAttrUsedMemCurrent,
	driver.PoolUsedHigh:           hip.MemPoolAttrUsedMemHigh,
}

// isSwitch reports whether an attribute has only the values 0 and 1.
func isSwitch(a driver.PoolAttr) bool { return a <= driver.PoolReuseInternal }

// askPools finds out whether the device has pools, if WithPools asks for them.
func (d *device) askPools(asked bool) error {
	if !asked {
		d.noPools = unsupported{errors.New("hipdriver.WithPools did not ask for them")}
		return nil
	}
	if d.lib.Version() < poolsSince {
		d.noPools = fmt.Errorf("the HIP runtime has version %s, and pools need %s: %w",
			version(d.lib), hip.FormatVersion(poolsSince), driver.ErrUnsupported)
		return nil
	}
	if d.noPools = lacks(d.lib, poolSymbols); d.noPools != nil {
		return nil
	}
	can, err := d.has(hip.DeviceAttributeMemoryPoolsSupported, false)
	if err == nil && !can {
		d.noPools = fmt.Errorf("%v is 0: %w", hip.DeviceAttributeMemoryPoolsSupported, driver.ErrUnsupported)
	}
	return err
}

// refusePools does what refuse does, for a device without pools.
func (d *device) refusePools(op string) error { return d.refuse(op, d.noPools, "memory pools") }

// byStream turns PoolReuseEvents off in a pool. HIP treats a wait for any event of a stream,
// however old, as a wait for all frees of the stream, so HIP could reuse memory too early.
func (d *device) byStream(p hip.MemPool) error {
	off := new(int32)
	return d.lib.MemPoolSetAttribute(p, hip.MemPoolReuseFollowEventDependencies, unsafe.Pointer(off))
}

// DefaultPool turns PoolReuseEvents off in the pool, also for other code in the process.
func (d *device) DefaultPool() (driver.Pool, error) {
	if d.noPools != nil {
		return 0, d.refusePools("default pool")
	}
	p, err := d.lib.DeviceGetDefaultMemPool(d.id)
	if err == nil {
		err = d.byStream(p)
	}
	if err != nil {
		return 0, d.fail("default pool", err, "ask for the pool")
	}
	return driver.Pool(p), nil
}

// CurrentPool turns PoolReuseEvents off in the pool, also for other code in the process.
func (d *device) CurrentPool() (driver.Pool, error) {
	if d.noPools != nil {
		return 0, d.refusePools("current pool")
	}
	p, err := d.lib.DeviceGetMemPool(d.id)
	if err == nil {
		err = d.byStream(p)
	}
	if err != nil {
		return 0, d.fail("current pool", err, "ask for the pool")
	}
	return driver.Pool(p), nil
}

func (d *device) SetCurrentPool(p driver.Pool) error {
	if d.noPools != nil {
		return d.refusePools("set current pool")
	}
	if err := d.lib.DeviceSetMemPool(d.id, hip.MemPool(p)); err != nil {
		return d.fail("set current pool", err, "pool %#x", uintptr(p))
	}
	return nil
}

// NewPool makes pools of device memory that cannot be shared.
func (d *device) NewPool(desc driver.PoolDesc) (driver.Pool, error) {
	const op = "new pool"
	if d.noPools != nil {
		return 0, d.refusePools(op)
	}
	if desc.Shareable {
		return 0, d.refuse(op, driver.ErrUnsupported, "a shareable pool")
	}
	switch desc.Kind {
	case driver.DeviceMem:
	case driver.HostMem, driver.ManagedMem:
		return 0, d.refuse(op, driver.ErrUnsupported, "a pool of host or managed memory, which HIP does not have")
	default:
		return 0, d.refuse(op, hip.ErrorInvalidValue, "a pool of unknown kind of memory %d", int(desc.Kind))
	}
	p, err := d.lib.MemPoolCreate(&hip.MemPoolProps{
		AllocType: hip.MemAllocationTypePinned, Location: location(d.id), MaxSize: desc.MaxSize,
	})
	if err != nil {
		return 0, d.fail(op, err, "a pool of device memory, of at most %d bytes", desc.MaxSize)
	}
	if err := d.byStream(p); err != nil {
		return 0, d.fail(op, errors.Join(err, d.lib.MemPoolDestroy(p)), "turn off reuse by events")
	}
	return driver.Pool(p), nil
}

func location(device int32) hip.MemLocation {
	return hip.MemLocation{Type: hip.MemLocationTypeDevice, Id: device}
}

// DestroyPool empties and destroys a pool. The device must have no work: HIP waits for all frees of
// the pool, and releases the memory without a lock against frees of other pools.
func (d *device) DestroyPool(p driver.Pool) error {
	const op = "destroy pool"
	if d.noPools != nil {
		return d.refusePools(op)
	}
	busy, err := d.busy(op)
	if err != nil {
		return err
	}
	if busy {
		return d.refuse(op, driver.ErrBusy, "pool %#x, while streams have pending work", uintptr(p))
	}
	if err = d.lib.MemPoolTrimTo(hip.MemPool(p), 0); err == nil {
		err = d.lib.MemPoolDestroy(hip.MemPool(p))
	}
	if err != nil {
		return d.fail(op, err, "pool %#x", uintptr(p))
	}
	return nil
}

// busy reports whether a stream in d.streams has work left or is being captured. Adopted streams
// are not in d.streams: see AdoptStream. busy does not query a stream that is being captured,
// because a query would invalidate the capture. While busy holds d.mu, no stream in d.streams can
// be destroyed. The calling thread must be locked.
func (d *device) busy(op string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s, captured := range d.streams {
		if captured {
			return true, nil
		}
		err := d.lib.StreamQuery(hip.Stream(s))
		if err == hip.ErrorNotReady {
			if d.reminds {
				d.lib.GetLastError()
			}
			return true, nil
		}
		if err != nil {
			return false, d.fail(op, err, "ask about stream %#x", uintptr(s))
		}
	}
	return false, nil
}

// PoolAttr reads an attribute. For a maximum it returns at least the current value, because after a
// reset HIP returns 0 until the next allocation.
func (d *device) PoolAttr(p driver.Pool, a driver.PoolAttr) (uint64, error) {
	if d.noPools != nil {
		return 0, d.refusePools("pool attribute")
	}
	v, err := d.poolAttr(p, a)
	if err == nil && (a == driver.PoolReservedHigh || a == driver.PoolUsedHigh) {
		var now uint64
		now, err = d.poolAttr(p, a-1)
		v = max(v, now)
	}
	return v, err
}

func (d *device) poolAttr(p driver.Pool, a driver.PoolAttr) (value uint64, err error) {
	const op = "pool attribute"
	if a < 0 || int(a) >= len(poolAttrs) {
		return 0, d.refuse(op, hip.ErrorInvalidValue, "no attribute %d", int(a))
	}
	if isSwitch(a) {
		var on int32
		err = d.lib.MemPoolGetAttribute(hip.MemPool(p), poolAttrs[a], unsafe.Pointer(&on))
		value = uint64(on)
	} else {
		err = d.lib.MemPoolGetAttribute(hip.MemPool(p), poolAttrs[a], unsafe.Pointer(&value))
	}
	if err != nil {
		return 0, d.fail(op, err, "%v of pool %#x", poolAttrs[a], uintptr(p))
	}
	return value, nil
}

func (d *device) SetPoolAttr(p driver.Pool, a driver.PoolAttr, value uint64) error {
	const op = "set pool attribute"
	switch {
	case d.noPools != nil:
		return d.refusePools(op)
	case a < 0 || int(a) >= len(poolAttrs):
		return d.refuse(op, hip.ErrorInvalidValue, "no attribute %d", int(a))
	case isSwitch(a) && value > 1:
		return d.refuse(op, fmt.Errorf("a switch is 0 or 1: %w", hip.ErrorInvalidValue), "%v of pool %#x to %d", poolAttrs[a], uintptr(p), value)
	case a == driver.PoolReuseEvents && value == 1:
		return d.refuse(op, fmt.Errorf("HIP would reuse memory too early: %w", driver.ErrUnsupported), "%v of pool %#x to 1", poolAttrs[a], uintptr(p))
	}
	var err error
	if isSwitch(a) {
		on := int32(value)
		err = d.lib.MemPoolSetAttribute(hip.MemPool(p), poolAttrs[a], unsafe.Pointer(&on))
	} else {
		err = d.lib.MemPoolSetAttribute(hip.MemPool(p), poolAttrs[a], unsafe.Pointer(&value))
	}
	if err != nil {
		return d.fail(op, err, "%v of pool %#x to %d", poolAttrs[a], uintptr(p), value)
	}
	return nil
}

func (d *device) TrimPool(p driver.Pool, keep uint64) error {
	if d.noPools != nil {
		return d.refusePools("trim pool")
	}
	if err := d.lib.MemPoolTrimTo(hip.MemPool(p), keep); err != nil {
		return d.fail("trim pool", err, "pool %#x to %d bytes", uintptr(p), keep)
	}
	return nil
}

// AccessPool can revoke access only with some releases. With others HIP returns "invalid device".
func (d *device) AccessPool(p driver.Pool, by driver.Device, allow bool) error {
	const op = "access pool"
	if d.noPools != nil {
		return d.refusePools(op)
	}
	other, err := d.peer(op, by)
	if err != nil {
		return err
	}
	flags := hip.MemAccessFlagsProtNone
	if allow {
		flags = hip.MemAccessFlagsProtReadWrite
	}
	if other.id != d.id { // without a link HIP would not return an error
		can, err := d.lib.DeviceCanAccessPeer(other.id, d.id)
		if err != nil {
			return d.fail(op, err, "%v for device %d to pool %#x", flags, other.info.Index, uintptr(p))
		}
		if can == 0 {
			return d.refuse(op, errNoLink, "%v for device %d to pool %#x", flags, other.info.Index, uintptr(p))
		}
	}
	if err := d.lib.MemPoolSetAccess(hip.MemPool(p), []hip.MemAccessDesc{{Location: location(other.id), Flags: flags}}); err != nil {
		if !allow && other.id != d.id && errors.Is(err, hip.ErrorInvalidDevice) {
			err = unsupported{err}
		}
		return d.fail(op, err, "%v for device %d to pool %#x", flags, other.info.Index, uintptr(p))
	}
	return nil
}

// AllocAsync accepts pools of the driver's other devices too. The memory is on the pool's device.
func (d *device) AllocAsync(s driver.Stream, p driver.Pool, size uint64) (driver.Mem, error) {
	if d.noPools != nil {
		return driver.Mem{}, d.refusePools("alloc async")
	}
	if s <= defaultStreams {
		return driver.Mem{}, d.noStream("alloc async", s)
	}
	var m driver.Mem
	err := d.submit("alloc async", func() error {
		ptr, err := d.lib.MallocFromPoolAsync(size, hip.MemPool(p), hip.Stream(s))
		if err != nil {
			return d.fail("alloc async", err, "%d bytes of pool %#x in stream %#x", size, uintptr(p), uintptr(s))
		}
		m = driver.Mem{Kind: driver.DeviceMem, Ptr: driver.Ptr(ptr), Size: size}
		return nil
	})
	return m, err
}

func (d *device) FreeAsync(s driver.Stream, m driver.Mem) error {
	if d.noPools != nil {
		return d.refusePools("free async")
	}
	if s <= defaultStreams {
		return d.noStream("free async", s)
	}
	return d.submit("free async", func() error {
		if err := d.lib.FreeAsync(hip.DevicePtr(m.Ptr), hip.Stream(s)); err != nil {
			return d.fail("free async", err, "%d bytes at %#x in stream %#x", m.Size, uint64(m.Ptr), uintptr(s))
		}
		return nil
	})
}
