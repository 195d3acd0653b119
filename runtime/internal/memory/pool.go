package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/blockpool"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// KeepAll is the threshold of a pool that gives no memory back by itself.
const KeepAll = math.MaxUint64

// A Pool is memory that queues allocate and free in the order of their work.
//
// There are two kinds. A native pool is the driver's. A portable pool is the runtime's own. The
// runtime makes a portable pool if the driver has no pools of the kind of memory in the options, or
// if PoolOptions.Portable or PoolOptions.Over is set. Both kinds reuse freed memory. A pool without
// enough free memory grows, up to its limit. Growing takes as long as an ordinary allocation by the
// driver.
type Pool struct {
	dev    *Device
	opt    PoolOptions
	native driver.Pool     // of a native pool: the driver's pool
	blocks *blockpool.Pool // of a portable pool: the allocator of its memory
	slabs  slabs           // the source of the allocator's memory, unless Pool.over is set
	over   *Buffer         // the pool hands out parts of this buffer
	keeps  bool            // this is the default pool, which the program cannot close
	closed atomic.Bool
	// life is locked while Close sets Pool.closed. A call that uses a native pool read-locks life
	// and reads Pool.closed. It unlocks life when Pool.live counts the call or its memory, or when
	// the driver's function has returned.
	life sync.RWMutex
	// live is the number of reasons not to destroy a native pool: allocations whose free has not
	// been issued, imported memory that is open, and running calls of onNative. Allocations from
	// the default pool do not count.
	live   atomic.Int64
	freed  atomic.Pointer[engine.Timeline] // the first timeline that freed memory of a native pool
	shared atomic.Bool                     // several timelines have freed memory of a native pool

	threshold atomic.Uint64
	sampled   atomic.Uint64 // the reserved bytes of a native pool, as last told to the observer

	changeMu sync.Mutex // held while threshold or users of a native pool change, here and in the driver
	users    sync.Map   // indices of the other devices that have access to a native pool

	mu sync.Mutex // protects tls from concurrent changes
	// tls has the timelines that use a portable pool. The index of a timeline in tls is the number
	// that Pool.blocks uses for the timeline. Each change stores a new slice.
	tls atomic.Pointer[[]*engine.Timeline]
}

// A PoolHandle is the program's reference to a pool. Buffers and work refer to the Pool and not to
// the PoolHandle. The device refers only to the handles of its default pool and its current pool.
// So the garbage collector can find that the program has dropped any other PoolHandle.
type PoolHandle struct{ pool *Pool }

// Pool returns the pool, or nil for a nil or zero PoolHandle.
func (h *PoolHandle) Pool() *Pool {
	if h == nil {
		return nil
	}
	return h.pool
}

// PoolOptions describe a new pool. The fields are documented in gpu.PoolOptions, from which package
// gpu copies them one by one.
type PoolOptions struct {
	Kind        driver.MemKind
	MaxSize     uint64
	InitialSize uint64
	Threshold   uint64
	Zero        bool
	Portable    bool
	Over        *Buffer
	Shareable   bool
}

// pools are the pools of a device.
type pools struct {
	mu  sync.Mutex
	all []*Pool
	def *PoolHandle

	// Streams of Pool.reserve that could not be destroyed, because they were still busy. They are
	// destroyed with the device.
	streams []driver.Stream
}

// DefaultPool returns the device's default pool, which is the same every time.
func (d *Device) DefaultPool() (*PoolHandle, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	d.pools.mu.Lock()
	defer d.pools.mu.Unlock()
	return d.defaultPool()
}

// defaultPool makes the default pool if there is none. The caller holds pools.mu.
func (d *Device) defaultPool() (*PoolHandle, error) {
	if d.pools.def != nil {
		return d.pools.def, nil
	}
	err := d.Engine.Stay()
	if err != nil {
		return nil, err
	}
	defer d.Engine.Leave()
	p := &Pool{dev: d, keeps: true, opt: PoolOptions{Threshold: KeepAll}}
	p.threshold.Store(KeepAll)
	if d.Engine.Caps.Pools {
		err = d.Engine.OnBound(func() (err error) {
			if p.native, err = d.Faces.Pools.DefaultPool(); err == nil {
				err = d.Faces.Pools.SetPoolAttr(p.native, driver.PoolThreshold, KeepAll)
			}
			return err
		})
	} else {
		err = p.makePortable()
	}
	if err != nil {
		return nil, fmt.Errorf("gpu: default pool of %s: %w", d.Engine.Info.Name, err)
	}
	d.pools.def = &PoolHandle{p}
	d.pools.all = append(d.pools.all, p)
	return d.pools.def, nil
}

// CurrentPool returns the pool that allocations use if they name none.
func (d *Device) CurrentPool() (*PoolHandle, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	if h := d.current.Load(); h != nil && !h.pool.closed.Load() {
		return h, nil
	}
	d.pools.mu.Lock()
	defer d.pools.mu.Unlock()
	h, err := d.defaultPool()
	if err == nil {
		d.current.Store(h)
	}
	return h, err
}

// SetCurrentPool sets the pool that allocations use if they name none.
func (d *Device) SetCurrentPool(h *PoolHandle) error {
	p := h.Pool()
	switch {
	case p == nil || p.dev != d:
		return errs.Argument("set current pool", "no pool, or one of another device")
	case p.closed.Load():
		return fmt.Errorf("gpu: set current pool: %w", errs.ErrClosed)
	}
	d.current.Store(h)
	return nil
}

// NewPool makes a pool.
func (d *Device) NewPool(o PoolOptions) (*PoolHandle, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Portable = o.Portable || o.Over != nil || !d.hasPools(o.Kind)
	switch {
	case o.Kind == driver.ManagedMem && o.Over == nil && (o.Portable || o.MaxSize > 0):
		return nil, fmt.Errorf("gpu: new pool on %s: a pool of managed memory is the driver's, if it has such pools, and has no limit: %w",
			d.Engine.Info.Name, driver.ErrUnsupported)
	case o.Shareable && (o.Kind != driver.DeviceMem || o.Portable || d.Faces.PoolSharing == nil):
		return nil, fmt.Errorf("gpu: new pool on %s: a shareable pool is the driver's, of the device's memory, if the driver can share memory: %w",
			d.Engine.Info.Name, driver.ErrUnsupported)
	}
	if o.Threshold == 0 {
		o.Threshold = KeepAll
	}
	err := d.Engine.Stay()
	if err != nil {
		return nil, err
	}
	defer d.Engine.Leave()
	var p *Pool
	err = d.collecting(o.Kind, o.InitialSize, func() error {
		// Each try needs a new Pool: a failed one may stay on the device's list.
		p = &Pool{dev: d, opt: o}
		switch {
		case o.Over != nil:
			return p.makeOver(o.Over)
		case o.Portable:
			return p.makePortable()
		}
		return d.Engine.OnBound(p.makeNative)
	})
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: new pool on %s: %w", d.Engine.Info.Name, err)
	}
	d.pools.mu.Lock()
	d.pools.all = append(d.pools.all, p)
	d.pools.mu.Unlock()
	return &PoolHandle{p}, nil
}

// check returns an error for options that no device can satisfy.
func (o *PoolOptions) check() error {
	switch o.Kind {
	case driver.DeviceMem, driver.HostMem, driver.ManagedMem:
	case driver.CommMem, driver.WriteCombinedMem, driver.ShareableMem:
		return fmt.Errorf("gpu: new pool: no pool is of memory of kind %d: %w", int(o.Kind), driver.ErrUnsupported)
	default:
		return errs.Argument("new pool", "there is no kind of memory %d", int(o.Kind))
	}
	switch {
	case o.MaxSize > 0 && o.InitialSize > o.MaxSize:
		return errs.Argument("new pool", "an initial size of %d, and a maximum of %d", o.InitialSize, o.MaxSize)
	case o.Over == nil:
		return nil
	case o.MaxSize > 0 || o.InitialSize > 0 || o.Kind != driver.DeviceMem && o.Kind != o.Over.mem.Kind:
		return errs.Argument("new pool", "sizes and kind are those of the buffer that it is over")
	}
	return nil
}

// hasPools reports whether the driver has pools of a kind of memory. A driver has pools of host
// memory or managed memory only if it has pools of device memory.
func (d *Device) hasPools(kind driver.MemKind) bool {
	return d.Engine.Caps.Pools && (kind == driver.DeviceMem || kind == driver.HostMem && d.Engine.Caps.HostPools || kind == driver.ManagedMem && d.Engine.Caps.ManagedPools)
}

// remove takes a pool off the list, and reports whether the pool was in the list.
func (p *pools) remove(pool *Pool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.all, pool)
	if i >= 0 {
		p.all = slices.Delete(p.all, i, i+1)
	}
	return i >= 0
}

// makeNative makes a pool of the driver. It runs on a bound thread.
func (p *Pool) makeNative() (err error) {
	p.threshold.Store(p.opt.Threshold)
	n := p.dev.Faces.Pools
	if err := CanBe(p.opt.InitialSize); err != nil {
		return err
	}
	desc := driver.PoolDesc{Kind: p.opt.Kind, MaxSize: p.opt.MaxSize, Shareable: p.opt.Shareable}
	if CanBe(desc.MaxSize) != nil {
		desc.MaxSize = 0 // equivalent to no limit
	}
	if p.native, err = n.NewPool(desc); err != nil {
		return err
	}
	err = n.SetPoolAttr(p.native, driver.PoolThreshold, p.opt.Threshold)
	if err == nil && p.opt.InitialSize > 0 {
		err = p.reserve()
	}
	if err != nil {
		if errors.Is(n.DestroyPool(p.native), driver.ErrBusy) {
			p.closed.Store(true)
			p.dev.pools.mu.Lock()
			p.dev.pools.all = append(p.dev.pools.all, p)
			p.dev.pools.mu.Unlock()
			p.dev.sweepPools()
		}
	}
	return err
}

// reserveWithin is how long reserve waits for its stream to free the memory.
const reserveWithin = 10 * time.Second

// reserve makes a new native pool reserve its initial size. To do so, it allocates that many bytes
// in a stream and frees them. Then reserve waits, for at most reserveWithin, until the driver has
// noticed the free. Until then the driver counts the bytes as used, so a large allocation could
// fail because of the pool's limit. reserve uses a stream of its own, because a queue's stream may
// be busy for long. reserve runs on a bound thread.
func (p *Pool) reserve() error {
	d := p.dev
	h, err := d.Engine.Native.NewStream()
	if err != nil {
		return err
	}
	m, err := d.Faces.Pools.AllocAsync(h, p.native, p.opt.InitialSize)
	if err == nil {
		if err = d.Faces.Pools.FreeAsync(h, m); err == nil {
			err = p.awaitReserve(h)
		}
	}
	if busy := d.Engine.Native.DestroyStream(h); errors.Is(busy, driver.ErrBusy) {
		d.pools.mu.Lock()
		d.pools.streams = append(d.pools.streams, h)
		d.pools.mu.Unlock()
	} else {
		d.Engine.NotTaken(busy)
	}
	return err
}

// awaitReserve waits, for at most reserveWithin, until the stream h has freed a new pool's initial
// size. Then it makes the driver notice the free.
func (p *Pool) awaitReserve(h driver.Stream) error {
	d := p.dev
	ctx, cancel := context.WithTimeout(context.Background(), reserveWithin)
	defer cancel()
	done, err := d.Engine.Drain(ctx, h, func() bool { return d.Engine.Loss() != nil || d.Engine.IsLeaving() })
	switch {
	case err != nil:
		return err
	case !done && d.Failed() != nil:
		return d.Failed()
	case !done:
		return fmt.Errorf("the device has not freed the initial %d bytes within %v; try again when its work has ended: %w",
			p.opt.InitialSize, reserveWithin, driver.ErrBusy)
	}
	// TrimPool makes the driver notice the free.
	if err := d.Faces.Pools.TrimPool(p.native, p.opt.InitialSize); err != nil {
		return err
	}
	return d.Faces.Pools.SetPoolAttr(p.native, driver.PoolUsedHigh, 0)
}

// Device returns the pool's device.
func (p *Pool) Device() *Device {
	if p == nil {
		return nil
	}
	return p.dev
}

// IsPortable reports whether the pool is a portable one, the runtime's own.
func (p *Pool) IsPortable() bool { return p != nil && p.blocks != nil }

// Options returns the options of the pool.
func (p *Pool) Options() PoolOptions {
	if p == nil {
		return PoolOptions{}
	}
	o := p.opt
	o.Threshold = p.threshold.Load()
	return o
}

// onNative calls fn on a bound thread, and waits until fn returns. fn calls the driver for a native
// pool. While fn runs, the call counts in Pool.live, so the pool is not destroyed.
func (p *Pool) onNative(op string, fn func() error) error {
	return p.dev.Engine.OnBound(func() error {
		p.life.RLock()
		err := p.open(op)
		if err == nil {
			p.live.Add(1)
		}
		p.life.RUnlock()
		if err != nil {
			return err
		}
		err = fn()
		if p.live.Add(-1) == 0 && p.closed.Load() {
			p.dev.sweepPools()
		}
		return err
	})
}

// change is like onNative, for properties that the driver and the runtime both store. Only one
// change runs at a time, so that both store the same.
func (p *Pool) change(op string, fn func() error) error {
	return p.onNative(op, func() error {
		wake.Lock(context.Background(), &p.changeMu)
		defer p.changeMu.Unlock()
		return fn()
	})
}

// attr reads a property of a native pool. It blocks.
func (p *Pool) attr(op string, a driver.PoolAttr) (v uint64, err error) {
	err = p.onNative(op, func() (err error) {
		v, err = p.dev.Faces.Pools.PoolAttr(p.native, a)
		return err
	})
	return v, err
}

// setAttr sets a property of a native pool. It blocks.
func (p *Pool) setAttr(op string, a driver.PoolAttr, v uint64) error {
	return p.onNative(op, func() error { return p.dev.Faces.Pools.SetPoolAttr(p.native, a, v) })
}

// open returns why the operation op cannot use the pool, or nil.
func (p *Pool) open(op string) error {
	if p == nil || p.dev == nil {
		return errs.Zero(op, "Pool")
	}
	if err := p.ended(); err != nil {
		return fmt.Errorf("gpu: %s: %w", op, err)
	}
	return p.dev.Failed()
}

// ended returns why the pool allocates no more memory, or nil.
func (p *Pool) ended() error {
	if p.closed.Load() {
		return fmt.Errorf("pool: %w", errs.ErrClosed)
	}
	return nil
}

// Stats returns the pool's current figures. For a native pool, Stats blocks while it queries the
// driver.
func (p *Pool) Stats() (s driver.PoolStats, err error) {
	if err := p.open("pool stats"); err != nil {
		return s, err
	}
	if p.blocks != nil {
		b := p.blocks.Stats()
		s.Reserved, s.ReservedHigh, s.Used, s.UsedHigh = b.Reserved, b.ReservedHigh, b.Used, b.UsedHigh
		return s, nil
	}
	err = p.onNative("pool stats", func() error {
		for a, v := range map[driver.PoolAttr]*uint64{driver.PoolReserved: &s.Reserved, driver.PoolReservedHigh: &s.ReservedHigh,
			driver.PoolUsed: &s.Used, driver.PoolUsedHigh: &s.UsedHigh} {
			var err error
			if *v, err = p.dev.Faces.Pools.PoolAttr(p.native, a); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// SetThreshold sets how many unused bytes the pool keeps reserved.
func (p *Pool) SetThreshold(n uint64) error {
	if err := p.open("set threshold"); err != nil {
		return err
	}
	if p.blocks == nil {
		return p.change("set threshold", func() error {
			err := p.dev.Faces.Pools.SetPoolAttr(p.native, driver.PoolThreshold, n)
			if err == nil {
				p.threshold.Store(n)
			}
			return err
		})
	}
	p.threshold.Store(n)
	return p.blocks.Maintain(n, p.order())
}

// Reuse returns the conditions under which memory freed in one stream may be reused in another.
func (p *Pool) Reuse() (r driver.PoolReuse, err error) {
	if err := p.open("reuse"); err != nil {
		return r, err
	}
	if p.blocks != nil {
		return driver.PoolReuse{Events: true, Opportunistic: true, Internal: true}, nil
	}
	for a, v := range map[driver.PoolAttr]*bool{driver.PoolReuseEvents: &r.Events, driver.PoolReuseOpportunistic: &r.Opportunistic,
		driver.PoolReuseInternal: &r.Internal} {
		n, err := p.attr("reuse", a)
		if err != nil {
			return r, err
		}
		*v = n != 0
	}
	return r, nil
}

// SetReuse sets the conditions under which memory freed in one stream may be reused in another.
func (p *Pool) SetReuse(r driver.PoolReuse) error {
	if err := p.open("set reuse"); err != nil {
		return err
	}
	if p.blocks != nil {
		if r != (driver.PoolReuse{Events: true, Opportunistic: true, Internal: true}) {
			return fmt.Errorf("gpu: set reuse: a portable pool does all three: %w", driver.ErrUnsupported)
		}
		return nil
	}
	if r.Events && p.dev.Engine.Caps.PoolsByStream {
		return fmt.Errorf("gpu: set reuse: the driver's pools take no notice of events: %w", driver.ErrUnsupported)
	}
	for a, v := range map[driver.PoolAttr]bool{driver.PoolReuseEvents: r.Events, driver.PoolReuseOpportunistic: r.Opportunistic,
		driver.PoolReuseInternal: r.Internal} {
		n := uint64(0)
		if v {
			n = 1
		}
		if err := p.setAttr("set reuse", a, n); err != nil {
			return err
		}
	}
	return nil
}

// Trim gives unused memory back to the system, but keeps at least the given number of bytes
// reserved, if the pool has that much. Trim blocks while the driver gives back the memory.
func (p *Pool) Trim(keep uint64) error {
	if err := p.open("trim"); err != nil {
		return err
	}
	if p.blocks != nil {
		return p.blocks.Trim(keep, p.order())
	}
	return p.onNative("trim", func() error { return p.dev.Faces.Pools.TrimPool(p.native, keep) })
}

// Access gives another device of the same driver access to the pool's memory, or ends that access.
func (p *Pool) Access(by *Device, allow bool) error {
	if err := p.open("access"); err != nil {
		return err
	}
	switch {
	case by == nil || by.Engine.Driver != p.dev.Engine.Driver:
		return errs.Argument("access", "no device, or one of another driver")
	case by == p.dev && !allow:
		return errs.Argument("access", "a device always has access to its own pools")
	case by == p.dev:
		return nil
	case p.blocks != nil && !allow:
		return fmt.Errorf("gpu: access to a portable pool cannot be ended: %w", driver.ErrUnsupported)
	case p.blocks != nil && p.opt.Kind == driver.HostMem, p.blocks == nil && p.opt.Kind == driver.ManagedMem && allow:
		return nil // all devices of the driver always have access
	case p.blocks == nil && p.opt.Kind == driver.ManagedMem:
		return fmt.Errorf("gpu: all devices have access to managed memory, and it cannot be ended: %w", driver.ErrUnsupported)
	case p.blocks != nil:
		return by.EnablePeers([]*Device{p.dev}, true)
	}
	return p.change("access", func() error {
		_, has := p.users.Load(by.Engine.Info.Index)
		if !allow { // before the driver ends the access, so that no new operation uses the memory
			p.users.Delete(by.Engine.Info.Index)
		}
		err := p.dev.Faces.Pools.AccessPool(p.native, by.Engine.Native, allow)
		if err == nil {
			has = allow
		}
		if has {
			p.users.Store(by.Engine.Info.Index, nil)
		}
		return err
	})
}

// Close closes the pool. Close does not wait for work: allocated memory stays usable until it is
// deallocated or its buffer is closed. Later allocations fail with [errs.ErrClosed]. So do earlier
// allocations that have not been issued. Closing the default pool is an error.
func (p *Pool) Close() error {
	if p == nil || p.dev == nil {
		return nil
	}
	if p.keeps {
		return errs.Argument("close", "the default pool of a device lives as long as the device")
	}
	p.life.Lock()
	first := p.closed.CompareAndSwap(false, true)
	p.life.Unlock()
	if !first {
		return nil
	}
	if h := p.dev.current.Load(); h.Pool() == p {
		p.dev.current.CompareAndSwap(h, nil)
	}
	p.dev.Engine.WantAll() // so that the pool's memory is soon known to be unused
	if p.blocks != nil {
		p.dev.Engine.Reclaim(func() {
			_, err := p.blocks.Close(p.order())
			p.dev.Engine.NotTaken(errors.Join(err, p.tidySoon()))
		})
		return nil
	}
	p.dev.sweepPools()
	return nil
}

// sweepPools makes the reclaimer destroy each closed pool that has no memory allocated. If streams
// may still use memory of the pool, the pool gives back only its unused memory, and stays until a
// later sweep or until the device is closed.
func (d *Device) sweepPools() { d.sweepPoolsAfter(time.Millisecond) }

// sweepPoolsAfter makes the reclaimer sweep, as sweepPools says. If a closed pool without allocated
// memory stays, the reclaimer sweeps again after the given pause. Each further pause is twice as
// long, up to a second.
func (d *Device) sweepPoolsAfter(pause time.Duration) {
	d.Engine.Reclaim(func() {
		d.pools.mu.Lock()
		var over []*Pool
		for _, p := range d.pools.all {
			if p.closed.Load() && p.empty() {
				over = append(over, p)
			}
		}
		d.pools.mu.Unlock()
		busy := false
		for _, p := range over {
			if p.blocks != nil {
				p.hurry()
				d.Engine.NotTaken(p.tidy())
				busy = busy || p.blocks.Stats().Slabs > 0
				continue
			}
			p.noteSize()
			err := d.Faces.Pools.DestroyPool(p.native)
			if !errors.Is(err, driver.ErrBusy) {
				p.noteReserved(0)
				d.Engine.NotTaken(err)
				d.pools.remove(p)
				continue
			}
			busy = true
			d.Faces.Pools.TrimPool(p.native, 0)
		}
		if busy && d.sweeping.CompareAndSwap(false, true) {
			time.AfterFunc(pause, func() {
				d.sweeping.Store(false)
				d.sweepPoolsAfter(min(2*pause, time.Second))
			})
		}
	})
}

// empty reports whether no memory of the pool is allocated. Memory counts as allocated until its
// free has been issued. A native pool is also not empty while onNative runs or imported memory is
// open (see Pool.live).
func (p *Pool) empty() bool {
	if p.blocks != nil {
		return p.blocks.Stats().Live == 0
	}
	return p.live.Load() == 0
}

// close destroys all pools, but only trims the driver's default pool. The method close runs on the
// pending-queue thread when no memory is in use.
func (p *pools) close() (errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.all {
		switch {
		case pool.blocks != nil:
			_, err := pool.blocks.Destroy()
			errs = append(errs, err)
			if pool.over != nil {
				pool.over.Release()
			}
		case pool.keeps: // the driver's default pool outlives the device, and others may use it
			pool.noteSize()
			if err := pool.dev.Faces.Pools.TrimPool(pool.native, 0); err != nil {
				errs = append(errs, err)
			}
			pool.noteSize()
		default:
			pool.noteSize()
			if err := pool.dev.Faces.Pools.DestroyPool(pool.native); err != nil {
				errs = append(errs, err)
			}
			pool.noteReserved(0)
		}
		pool.closed.Store(true)
	}
	p.all = nil
	return errs
}

// noteReserved tells the observer by how much a native pool has grown or shrunk since the observer
// was last told. The parameter bytes is the pool's reserved size now. The observer gets the current
// time, because the driver does not say when the size changed.
func (p *Pool) noteReserved(bytes uint64) {
	d := p.dev
	if d.Observer == nil || p.blocks != nil {
		return
	}
	switch was := p.sampled.Swap(bytes); {
	case bytes > was:
		observe.Tell(d.Observer, observe.Grow, time.Now(), "", bytes-was, nil)
	case bytes < was:
		observe.Tell(d.Observer, observe.Shrink, time.Now(), "", was-bytes, nil)
	}
}

// noteSize queries how much memory a native pool has reserved, and calls noteReserved. Without an
// observer, noteSize does nothing. It runs on a bound thread.
func (p *Pool) noteSize() {
	if p.dev.Observer != nil {
		if bytes, err := p.dev.Faces.Pools.PoolAttr(p.native, driver.PoolReserved); err == nil {
			p.noteReserved(bytes)
		}
	}
}

// SamplePools returns how many bytes the device's pools have reserved and how many of these bytes
// are allocated. It also tells the observer by how much each native pool has grown or shrunk.
// SamplePools blocks while it queries the driver.
func (d *Device) SamplePools() (reserved, used uint64) {
	d.pools.mu.Lock()
	all := slices.Clone(d.pools.all)
	d.pools.mu.Unlock()
	for _, p := range all {
		s, err := p.Stats()
		if err != nil { // the pool or the device is closed, the device is lost, or the driver has returned an error
			continue
		}
		reserved, used = reserved+s.Reserved, used+s.Used
		d.pools.mu.Lock()
		if !p.closed.Load() { // the last report for a closed pool is that 0 bytes are reserved
			p.noteReserved(s.Reserved)
		}
		d.pools.mu.Unlock()
	}
	return reserved, used
}
