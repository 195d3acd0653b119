package simdriver

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Pools = (*device)(nil)

// segmentSize is the unit of a pool's growth, in bytes. A pool grows by a multiple of segmentSize,
// or by less if the pool's limit or the free memory does not allow a multiple.
const segmentSize = 64 << 10

// A pool holds memory that is allocated and freed in stream order.
type pool struct {
	dev       *device
	id        driver.Pool
	kind      driver.MemKind
	max       uint64        // maximum of reserved bytes
	users     []atomic.Bool // by device index: the device has access to the memory
	dying     atomic.Bool   // the pool was destroyed; it is removed when it gives back its last segment
	shareable bool          // the memory can be exported
	left      atomic.Bool   // the process that exported the pool has ended
	origin    *pool         // if the pool was imported, the exported pool

	mu        sync.Mutex
	segments  []*segment // oldest first
	lanes     []*lane
	switches  [driver.PoolReuseInternal + 1]bool
	threshold uint64
	reserved  level
	used      level
	count     int     // number of allocations without a FreeAsync
	blocks    *block  // unused blocks
	regions   *region // unused regions
}

// A level is a number of bytes, and the maximum of that number so far.
type level struct{ now, high uint64 }

func (l *level) add(n uint64) {
	l.now += n
	l.high = max(l.high, l.now)
}

// newPool makes a pool. The caller holds the device's mu.
func (v *device) newPool(kind driver.MemKind, limit uint64) (*pool, error) {
	p := &pool{dev: v, kind: kind, max: limit, threshold: math.MaxUint64, users: make([]atomic.Bool, len(v.d.devices))}
	if limit == 0 || limit > maxMemory {
		p.max = maxMemory
	}
	p.max = (p.max + alignment - 1) / alignment * alignment
	for i := range p.switches {
		p.switches[i] = i != int(driver.PoolReuseEvents) || !v.d.caps.PoolsByStream
	}
	for i := range p.users { // all devices have access to host and managed memory
		p.users[i].Store(i == v.index || kind != driver.DeviceMem)
	}
	p.id = driver.Pool(v.d.pools.add(p))
	if p.id == 0 {
		return nil, errTooMany
	}
	v.pools = append(v.pools, p)
	v.d.pooled.Store(true)
	return p, nil
}

// pooling begins a call about pools that does not submit work.
func (v *device) pooling(c code) error {
	return v.enterIf(c, true, v.d.caps.Pools)
}

// DefaultPool returns the device's default pool. It is the same pool from the first Open to the
// last Close.
func (v *device) DefaultPool() (driver.Pool, error) {
	if err := v.pooling(codeDefaultPool); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.defaultPool(codeDefaultPool)
}

// defaultPool returns the default pool. The caller holds the device's mu.
func (v *device) defaultPool(c code) (driver.Pool, error) {
	if v.basic == nil {
		p, err := v.newPool(driver.DeviceMem, 0)
		if err != nil {
			return 0, fail(c, err)
		}
		v.basic = p
	}
	return v.basic.id, nil
}

// CurrentPool returns the current pool, set by SetCurrentPool, or the default pool.
func (v *device) CurrentPool() (driver.Pool, error) {
	if err := v.pooling(codeCurrentPool); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != nil {
		return v.current.id, nil
	}
	return v.defaultPool(codeCurrentPool)
}

// SetCurrentPool makes a pool of the device the current one.
func (v *device) SetCurrentPool(h driver.Pool) error {
	p, err := v.usePool(codeSetCurrentPool, h)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = p
	return nil
}

// NewPool makes a pool. The pool reserves no memory before the first allocation, and then at least
// 64 KiB if the pool's limit and the free memory allow. Its reuse switches are on, except
// PoolReuseEvents if Caps.PoolsByStream is set. Its release threshold is unlimited.
func (v *device) NewPool(desc driver.PoolDesc) (driver.Pool, error) {
	if err := v.pooling(codeNewPool); err != nil {
		return 0, err
	}
	switch desc.Kind {
	case driver.DeviceMem:
	case driver.HostMem:
		if !v.d.caps.HostPools {
			return 0, failf(codeNewPool, "a pool of host memory on device %d: %w", v.index, driver.ErrUnsupported)
		}
	case driver.ManagedMem:
		if !v.d.caps.ManagedPools || desc.MaxSize != 0 {
			return 0, failf(codeNewPool, "a pool of managed memory on device %d, of at most %d bytes: %w", v.index, desc.MaxSize, driver.ErrUnsupported)
		}
	default:
		return 0, failf(codeNewPool, "a pool of memory of kind %d: %w", desc.Kind, ErrInvalidValue)
	}
	if desc.Shareable && (!v.d.caps.PoolSharing || desc.Kind != driver.DeviceMem) {
		return 0, failf(codeNewPool, "a pool of memory of kind %d on device %d that processes share: %w", desc.Kind, v.index, driver.ErrUnsupported)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p, err := v.newPool(desc.Kind, desc.MaxSize)
	if err != nil {
		return 0, fail(codeNewPool, err)
	}
	p.shareable = desc.Shareable
	return p.id, nil
}

// DestroyPool destroys a pool, which may still have allocations. If the pool was the current one,
// the default pool becomes current.
func (v *device) DestroyPool(h driver.Pool) error {
	err, ok := v.end(codeDestroyPool)
	if !ok {
		return err
	}
	if !v.d.caps.Pools {
		return v.cannot(codeDestroyPool)
	}
	p, bad := v.pool(codeDestroyPool, h)
	if bad != nil {
		return bad
	}
	v.mu.Lock()
	basic := p == v.basic
	if v.current == p && !basic {
		v.current = nil
	}
	v.mu.Unlock()
	if basic {
		return failf(codeDestroyPool, "pool %#x: %w: the default pool of device %d cannot be destroyed", uint64(h), ErrInvalidValue, v.index)
	}
	if v.d.pools.remove(uintptr(h)) != nil {
		p.dying.Store(true)
		p.expire()
	}
	return err
}

// PoolAttr reads a property. An allocation counts as used from AllocAsync until its free has
// executed. Memory that was freed and allocated again counts twice until the stream has executed
// the free, but the result is at most the reserved memory.
func (v *device) PoolAttr(h driver.Pool, a driver.PoolAttr) (uint64, error) {
	p, err := v.usePool(codePoolAttr, h)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	switch a {
	case driver.PoolReuseEvents, driver.PoolReuseOpportunistic, driver.PoolReuseInternal:
		if p.switches[a] {
			return 1, nil
		}
		return 0, nil
	case driver.PoolThreshold:
		return p.threshold, nil
	case driver.PoolReserved:
		return p.reserved.now, nil
	case driver.PoolReservedHigh:
		return p.reserved.high, nil
	case driver.PoolUsed:
		return min(p.used.now, p.reserved.now), nil
	case driver.PoolUsedHigh:
		return min(p.used.high, p.reserved.high), nil
	}
	return 0, failf(codePoolAttr, "property %d: %w: no such property", a, ErrInvalidValue)
}

// SetPoolAttr sets a property. The release threshold takes effect when Query finds an event
// complete, because the driver has no call that synchronizes.
func (v *device) SetPoolAttr(h driver.Pool, a driver.PoolAttr, value uint64) error {
	p, err := v.usePool(codeSetPoolAttr, h)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	switch a {
	case driver.PoolReuseEvents, driver.PoolReuseOpportunistic, driver.PoolReuseInternal:
		if value > 1 {
			return failf(codeSetPoolAttr, "property %d: %w: %d; it is a switch and must be 0 or 1", a, ErrInvalidValue, value)
		}
		if value == 1 && a == driver.PoolReuseEvents && v.d.caps.PoolsByStream {
			return failf(codeSetPoolAttr, "property %d: pools ignore events on this device: %w", a, driver.ErrUnsupported)
		}
		p.switches[a] = value == 1
	case driver.PoolThreshold:
		if was, is := p.threshold != math.MaxUint64, value != math.MaxUint64; is && !was {
			v.tight.Add(1)
		} else if was && !is {
			v.tight.Add(-1)
		}
		p.threshold = value
	case driver.PoolReserved, driver.PoolUsed:
		return failf(codeSetPoolAttr, "property %d: %w: it can only be read", a, ErrInvalidValue)
	case driver.PoolReservedHigh, driver.PoolUsedHigh:
		if value != 0 {
			return failf(codeSetPoolAttr, "property %d: %w: %d; it can only be set to 0", a, ErrInvalidValue, value)
		}
		l := &p.reserved
		if a == driver.PoolUsedHigh {
			l = &p.used
		}
		l.high = l.now
	default:
		return failf(codeSetPoolAttr, "property %d: %w: no such property", a, ErrInvalidValue)
	}
	return nil
}

// TrimPool gives back segments that have no allocations, and whose frees have all executed. It does
// not reduce the reserved memory below keep bytes.
func (v *device) TrimPool(h driver.Pool, keep uint64) error {
	p, err := v.usePool(codeTrimPool, h)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	p.trim(keep)
	return nil
}

// AccessPool allows or forbids another device to use a pool's memory. The access is checked when
// work executes.
func (v *device) AccessPool(h driver.Pool, by driver.Device, allow bool) error {
	p, err := v.usePool(codeAccessPool, h)
	if err != nil {
		return err
	}
	w, ok := by.(*device)
	if !ok || w.d != v.d {
		return failf(codeAccessPool, "%T: %w: it is not a device of this driver", by, ErrInvalidValue)
	}
	if w == v && !allow {
		return failf(codeAccessPool, "pool %#x: %w: device %d cannot lose access to its own pool", uint64(h), ErrInvalidValue, v.index)
	}
	if w != v && p.kind == driver.DeviceMem && w.link(v).Kind == driver.LinkNone {
		return failf(codeAccessPool, "from device %d to device %d: the hardware has no link: %w", w.index, v.index, driver.ErrUnsupported)
	}
	p.users[w.index].Store(allow)
	return nil
}

// AllocAsync allocates in stream order, also from a pool of another device of the driver. It
// immediately reuses memory that the same stream freed. It reuses memory that another stream freed
// if the free has executed, or if an event orders the free before the allocation. If the pool
// cannot grow, AllocAsync reuses memory whose free is pending in another stream, and makes its own
// stream wait for that free. The pool's switches can turn off each of these kinds of reuse except
// the first.
//
// New memory of a pool is zero. Reused memory has undefined content.
func (v *device) AllocAsync(sh driver.Stream, ph driver.Pool, size uint64) (driver.Mem, error) {
	later, err := v.submit(codeAllocAsync)
	if err != nil {
		return driver.Mem{}, err
	}
	if !v.d.caps.Pools {
		return driver.Mem{}, v.cannot(codeAllocAsync)
	}
	if size == 0 {
		return driver.Mem{}, failf(codeAllocAsync, "0 bytes: %w", ErrInvalidValue)
	}
	s, err := v.working(codeAllocAsync, sh)
	if err != nil {
		return driver.Mem{}, err
	}
	p := v.d.pools.get(uintptr(ph))
	if p == nil {
		return driver.Mem{}, noPool(codeAllocAsync, ph)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dying.Load() {
		return driver.Mem{}, noPool(codeAllocAsync, ph)
	}
	if p.origin != nil {
		return driver.Mem{}, failf(codeAllocAsync, "pool %#x: %w: it was imported; only its own process can allocate from it", uintptr(ph), ErrInvalidValue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, after, err := p.take(s, size)
	if err != nil {
		return driver.Mem{}, fail(codeAllocAsync, err)
	}
	o := s.slot(codeAllocAsync)
	o.fail, o.block, o.source, o.seq = later, b, after.stream, after.seq
	s.publish()
	return b.mem(), nil
}

// FreeAsync frees memory of AllocAsync in stream order, for a pool of any device. On a lost device
// it frees the memory immediately. With Caps.PoolsByStream it fails on any stream except the stream
// of AllocAsync, as long as that stream exists.
func (v *device) FreeAsync(sh driver.Stream, m driver.Mem) error {
	later, err, ok := v.release(codeFreeAsync)
	if !ok {
		return err
	}
	if !v.d.caps.Pools {
		return v.cannot(codeFreeAsync)
	}
	s, bad := v.working(codeFreeAsync, sh)
	if bad != nil {
		return bad
	}
	a := v.d.find(m.Ptr)
	if a == nil || a.segment == nil {
		return failf(codeFreeAsync, "memory at %#x: %w: it is in no pool, or it was freed already", uint64(m.Ptr), ErrInvalidValue)
	}
	p := a.segment.pool
	p.mu.Lock()
	b, bad := a.segment.block(m)
	if bad == nil && p.shareable {
		v.d.machine.released(b)
	}
	switch {
	case bad != nil:
	case v.down.Load() != nil:
		p.abandon(b)
	case v.d.caps.PoolsByStream && b.maker != s && !b.maker.stopped.Load():
		bad = fmt.Errorf("memory at %#x: %w: it was allocated in another stream and must be freed there", uint64(m.Ptr), ErrInvalidHandle)
	default:
		s.mu.Lock()
		o := s.slot(codeFreeAsync)
		o.fail, o.block = later, b
		s.publish()
		p.give(b, s, s.tail.Load())
		s.mu.Unlock()
	}
	p.mu.Unlock()
	if bad != nil {
		return fail(codeFreeAsync, bad)
	}
	if p.dying.Load() {
		p.expire()
	}
	return err
}

// usePool begins a call that is about a pool of this device and submits no work.
func (v *device) usePool(c code, h driver.Pool) (*pool, error) {
	if err := v.pooling(c); err != nil {
		return nil, err
	}
	return v.pool(c, h)
}

// pool finds a pool of the device by handle.
func (v *device) pool(c code, h driver.Pool) (*pool, error) {
	p := v.d.pools.get(uintptr(h))
	if p == nil {
		return nil, noPool(c, h)
	}
	if p.dev != v {
		return nil, failf(c, "pool %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, p.dev.index, v.index)
	}
	return p, nil
}

// noPool makes the error for a handle without a pool.
func noPool(c code, h driver.Pool) error {
	return failf(c, "pool %#x: %w: no such pool, or it was destroyed", uint64(h), ErrInvalidHandle)
}

// grow reserves a segment with room for size bytes. The caller holds mu.
func (p *pool) grow(size uint64) (*segment, error) {
	left := p.max - p.reserved.now
	if size > left {
		return nil, fmt.Errorf("%d bytes, while %d of the pool's %d are reserved: %w", size, p.reserved.now, p.max, driver.ErrOutOfMemory)
	}
	g := &segment{pool: p}
	n := min((size+segmentSize-1)/segmentSize*segmentSize, left)
	a, err := p.reserve(g, n)
	if err != nil && n > size {
		n = size
		a, err = p.reserve(g, n)
	}
	if err != nil {
		return nil, err
	}
	g.memory, g.free = a, n
	g.first = p.newRegion()
	g.first.base, g.first.size = a.base, n
	p.segments = append(p.segments, g)
	p.reserved.add(n)
	return g, nil
}

// reserve allocates the memory of a segment.
func (p *pool) reserve(g *segment, n uint64) (*allocation, error) {
	if p.kind != driver.DeviceMem {
		return p.dev.d.host.alloc(p.dev, p.kind, n, g)
	}
	return p.dev.space.alloc(p.dev, driver.DeviceMem, n, p.dev.d.memory, g)
}

// trim gives free segments back, newest first, but keeps at least keep bytes. The caller holds mu
// and has called settle.
func (p *pool) trim(keep uint64) {
	for i := len(p.segments) - 1; i >= 0 && p.reserved.now > keep; i-- {
		if g := p.segments[i]; p.reserved.now-g.memory.size >= keep && g.vacant() {
			p.drop(i)
		}
	}
}

// shrink gives the newest free segment back, and reports whether there was one. The caller holds mu
// and has called settle.
func (p *pool) shrink() bool {
	for i, g := range slices.Backward(p.segments) {
		if g.vacant() {
			p.drop(i)
			return true
		}
	}
	return false
}

// drop gives the segment at index i back. The caller holds mu.
func (p *pool) drop(i int) {
	g := p.segments[i]
	p.segments = slices.Delete(p.segments, i, i+1)
	p.reserved.now -= g.memory.size
	g.gone = true
	for r := g.first; r != nil; {
		next := r.next
		p.oldRegion(r)
		r = next
	}
	g.first = nil
	if v := p.dev; p.kind != driver.DeviceMem {
		if v.d.host.withdraw(g.memory) {
			v.d.host.bury(g.memory)
		}
	} else if v.d.machine.freed(g.memory); v.space.withdraw(g.memory) {
		v.space.bury(g.memory)
	}
}

// expire gives back the segments that a destroyed pool no longer needs. With the last segment it
// removes the pool.
func (p *pool) expire() {
	p.mu.Lock()
	p.settle()
	for p.shrink() {
	}
	gone := len(p.segments) == 0
	p.mu.Unlock()
	if gone {
		p.forget()
	}
}

// forget removes the pool from its device.
func (p *pool) forget() {
	v := p.dev
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.Index(v.pools, p); i >= 0 {
		v.pools = slices.Delete(v.pools, i, i+1)
		p.mu.Lock()
		if p.threshold != math.MaxUint64 {
			v.tight.Add(-1)
		}
		p.mu.Unlock()
	}
}

// tighten makes the device's pools give back memory above their thresholds.
func (v *device) tighten() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pools {
		p.mu.Lock()
		if p.reserved.now > p.threshold {
			p.settle()
			p.trim(p.threshold)
		}
		p.mu.Unlock()
	}
}

// eachPool calls f for each of the device's pools. Meanwhile the pool is locked, and settle has
// been called.
func (v *device) eachPool(f func(*pool)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.pools {
		p.mu.Lock()
		p.settle()
		f(p)
		p.mu.Unlock()
	}
}

// clearPools destroys the device's pools and their allocations. The caller frees the memory.
func (v *device) clearPools() {
	v.mu.Lock()
	pools := v.pools
	v.pools, v.basic, v.current = nil, nil, nil
	v.mu.Unlock()
	v.tight.Store(0)
	for _, p := range pools {
		v.d.pools.remove(uintptr(p.id))
		p.mu.Lock()
		for _, g := range p.segments {
			g.gone = true
		}
		p.segments, p.lanes = nil, nil
		p.mu.Unlock()
	}
}
