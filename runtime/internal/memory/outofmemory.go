package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Memory may be unused and yet not free: the work that used it is done but not retired, the
// reclaimer has not freed the memory yet, or a pool caches it. If an allocation finds no memory, it
// retires finished work. Then the reclaimer frees unused memory and trims the device's pools, and
// the allocation is tried once more. If it fails again, the error says how many bytes the buffers
// and each pool hold.

// collecting calls allocate, which allocates size bytes of a kind. If allocate finds no memory,
// collecting frees unused memory and calls allocate once more. The caller is not the pending-queue
// thread and has locked no timeline.
func (d *Device) collecting(kind driver.MemKind, size uint64, allocate func() error) error {
	err := allocate()
	if errors.Is(err, driver.ErrOutOfMemory) {
		d.Engine.Collect(true)
		err = d.holders(kind, size, nil, allocate())
	}
	return err
}

// collects reports whether an allocation that failed with err may succeed after unused memory has
// been freed.
func (p *Pool) collects(size uint64, err error) bool {
	return errors.Is(err, driver.ErrOutOfMemory) && !p.tooLarge(size)
}

// tooLarge reports whether the pool can never allocate size bytes.
func (p *Pool) tooLarge(size uint64) bool {
	limit := p.limit()
	return limit > 0 && size > limit || CanBe(size) != nil
}

// trimPools gives back the memory that the device's pools cache. It runs on the reclaimer's thread.
// Closed pools are destroyed on the same thread, so none is destroyed meanwhile.
func (d *Device) trimPools() {
	d.pools.mu.Lock()
	all := slices.Clone(d.pools.all)
	d.pools.mu.Unlock()
	for _, p := range all {
		switch {
		// Skip a pool that takes its memory from a buffer: the buffer keeps the memory. Skip a
		// closed pool: it gives everything back without a trim.
		case p.over != nil || p.closed.Load():
		case p.blocks != nil:
			d.Engine.NotTaken(p.blocks.Trim(0, p.order()))
		default:
			d.Engine.Check(d.Faces.Pools.TrimPool(p.native, 0))
		}
	}
}

// A memoryError is the error of an allocation that found no memory. It says how many bytes the
// buffers and each pool hold.
type memoryError struct {
	size    uint64 // bytes requested
	of      *Pool  // the pool of the allocation, or nil
	device  string
	buffers uint64 // bytes of buffers that are not from a pool
	growing uint64 // bytes that growing memory holds
	pools   []poolUse
	err     error
}

// A poolUse says how many bytes of a pool are in use.
type poolUse struct {
	pool *Pool
	used uint64
}

// holders is like Device.holders, for an allocation from the buffer's pool.
func (b *Buffer) holders(err error) error { return b.dev.holders(b.mem.Kind, b.mem.Size, b.pool, err) }

// holders adds to an out-of-memory error how many bytes the buffers and each pool hold. If kind is
// host memory it counts only host memory, otherwise all other memory. It returns other errors, and
// nil, unchanged.
func (d *Device) holders(kind driver.MemKind, size uint64, of *Pool, err error) error {
	if !errors.Is(err, driver.ErrOutOfMemory) {
		return err
	}
	e := &memoryError{size: size, of: of, device: d.Engine.Info.Name, err: err}
	d.pools.mu.Lock()
	for _, p := range d.pools.all {
		e.pools = append(e.pools, poolUse{pool: p})
	}
	d.pools.mu.Unlock()
	stats := &d.buffers
	stats.mu.Lock()
	defer stats.mu.Unlock()
	if !isHost(kind) {
		e.growing = stats.pages
	}
	for b := stats.list; b != nil; b = b.after {
		if isHost(b.mem.Kind) != isHost(kind) {
			continue
		}
		_, n := stats.bytes(b)
		if i := slices.IndexFunc(e.pools, func(u poolUse) bool { return u.pool == b.pool }); b.pool != nil && i >= 0 {
			e.pools[i].used += n
		} else {
			e.buffers += n
		}
	}
	return e
}

func (e *memoryError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "no memory for %d bytes", e.size)
	if e.of != nil {
		fmt.Fprintf(&s, " of %s", e.of.mention())
	}
	fmt.Fprintf(&s, ": on %s buffers hold %d bytes", e.device, e.buffers)
	if e.growing > 0 {
		fmt.Fprintf(&s, ", growing memory holds %d", e.growing)
	}
	for _, u := range e.pools {
		if u.used > 0 {
			fmt.Fprintf(&s, ", %s holds %d", u.pool.mention(), u.used)
		}
	}
	advice := "free some, or have less in flight at a time"
	if e.of != nil && e.of.opt.MaxSize > 0 {
		advice = "free some, have less in flight at a time, or raise the pool's limit"
	}
	return fmt.Sprintf("%s; %s: %v", &s, advice, e.err)
}

func (e *memoryError) Unwrap() error { return e.err }

// mention describes the pool: "a pool of at most 65536 bytes".
func (p *Pool) mention() string {
	switch {
	case p.opt.MaxSize > 0:
		return fmt.Sprintf("a pool of at most %d bytes", p.opt.MaxSize)
	case p.keeps:
		return "the default pool"
	}
	return "a pool without a limit"
}
