package simdriver

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.PoolSharing = (*device)(nil)

// A pooledMem is an exported allocation of a pool.
type pooledMem struct {
	pool         *pool
	in           *allocation // the segment's allocation
	offset, size uint64
}

// released records that an allocation of a pool was passed to FreeAsync. No process can open it any
// more.
func (m *Machine) released(b *block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, x := range m.pooled {
		if x.in == b.segment.memory && x.offset == uint64(b.base-x.in.base) {
			delete(m.pooled, h)
		}
	}
}

// offers checks an access to n bytes at an offset of the segment by a process that has opened
// memory in it. It returns an error unless a live allocation of the segment contains the bytes, or
// the segment's process has ended.
func (g *segment) offers(offset, n uint64) *AccessError {
	p := g.memory.base + driver.Ptr(offset)
	// g.pool.left is read again after the call of has, because the segment's process may end during
	// that call and abandon its allocations.
	if g.pool.left.Load() || g.has(p, n) || g.pool.left.Load() {
		return nil
	}
	e := &AccessError{Addr: p, Size: n, Opened: true}
	g.explain(e)
	switch at := uint64(p - e.Base); {
	case e.Base == 0:
		e.Base, e.Length, e.Freed = g.memory.base, g.memory.size, true
	case !e.Freed && !e.Early && at < e.Length && n <= e.Length-at: // the allocation has executed since the call of has
		e.Early = true
	}
	return e
}

// ExportPool returns a file that stands for a pool of the [Machine]. The file has no path.
func (v *device) ExportPool(h driver.Pool) (*os.File, error) {
	if err := v.enterIf(codeExportPool, true, v.d.caps.PoolSharing); err != nil {
		return nil, err
	}
	p, err := v.pool(codeExportPool, h)
	if err != nil {
		return nil, err
	}
	if !p.shareable {
		return nil, failf(codeExportPool, "pool %#x: %w: it was not made shareable", uint64(h), ErrInvalidValue)
	}
	m := v.d.machine
	m.mu.Lock()
	m.exported++
	name := fmt.Sprintf("simulated memory pool %d", m.exported)
	if m.pools == nil {
		m.pools = map[string]*pool{}
	}
	m.pools[name] = p
	m.mu.Unlock()
	f, bad := nameFile(name)
	if bad != nil {
		return nil, fail(codeExportPool, bad)
	}
	return f, nil
}

// ImportPool makes a pool from a file of ExportPool.
func (v *device) ImportPool(f *os.File) (driver.Pool, error) {
	if err := v.enterIf(codeImportPool, true, v.d.caps.PoolSharing); err != nil {
		return 0, err
	}
	name, m := nameIn(f), v.d.machine
	m.mu.Lock()
	origin := m.pools[name]
	m.mu.Unlock()
	switch {
	case origin == nil:
		return 0, failf(codeImportPool, "file %s: %w: it names no pool, or the pool's process has ended", f.Name(), ErrInvalidHandle)
	case origin.dev.d == v.d:
		return 0, failf(codeImportPool, "pool %#x of device %d: %w", uint64(origin.id), origin.dev.index, driver.ErrSameProcess)
	case !v.reaches(origin.dev):
		return 0, failf(codeImportPool, "a pool of device %d on device %d: the hardware has no link: %w", origin.dev.index, v.index, driver.ErrUnsupported)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p, err := v.newPool(driver.DeviceMem, 0)
	if err != nil {
		return 0, fail(codeImportPool, err)
	}
	p.origin = origin
	return p.id, nil
}

// ExportPoolMem returns a handle of an allocation for other processes.
func (v *device) ExportPoolMem(m driver.Mem) (driver.MemHandle, error) {
	var none driver.MemHandle
	if err := v.enterIf(codeExportPoolMem, true, v.d.caps.PoolSharing); err != nil {
		return none, err
	}
	a := v.space.find(m.Ptr)
	if a == nil || a.segment == nil || !a.segment.pool.shareable {
		return none, failf(codeExportPoolMem, "memory at %#x: %w: it is not in a shareable pool", uint64(m.Ptr), ErrInvalidValue)
	}
	p := a.segment.pool
	p.mu.Lock()
	b, err := a.segment.block(m)
	p.mu.Unlock()
	if err != nil {
		return none, fail(codeExportPoolMem, err)
	}
	s := v.d.machine
	s.mu.Lock()
	defer s.mu.Unlock()
	h := driver.MemHandle(s.handle("pool memory"))
	if s.pooled == nil {
		s.pooled = map[driver.MemHandle]pooledMem{}
	}
	s.pooled[h] = pooledMem{p, a, uint64(m.Ptr - a.base), b.size}
	return h, nil
}

// OpenPoolMem opens an allocation of an imported pool.
func (v *device) OpenPoolMem(h driver.Pool, name driver.MemHandle) (driver.Mem, error) {
	if err := v.enterIf(codeOpenPoolMem, true, v.d.caps.PoolSharing); err != nil {
		return driver.Mem{}, err
	}
	p, err := v.pool(codeOpenPoolMem, h)
	if err != nil {
		return driver.Mem{}, err
	}
	s := v.d.machine
	s.mu.Lock()
	x, ok := s.pooled[name]
	s.mu.Unlock()
	if !ok || x.pool != p.origin {
		return driver.Mem{}, failf(codeOpenPoolMem, "memory of pool %#x: %w: it was not exported, it was freed, or its process has ended", uint64(h), ErrInvalidHandle)
	}
	a, bad := v.space.open(v, x.in)
	if bad != nil {
		return driver.Mem{}, fail(codeOpenPoolMem, bad)
	}
	return driver.Mem{Kind: driver.DeviceMem, Ptr: a.base + driver.Ptr(x.offset), Size: x.size}, nil
}

// ClosePoolMem undoes one OpenPoolMem. It does not wait for work that uses the memory.
func (v *device) ClosePoolMem(m driver.Mem) error {
	err, ok := v.end(codeClosePoolMem)
	if !ok {
		return err
	}
	if !v.d.caps.PoolSharing {
		return v.cannot(codeClosePoolMem)
	}
	a := v.space.find(m.Ptr)
	if a == nil || a.origin == nil || a.origin.segment == nil {
		return failf(codeClosePoolMem, "memory at %#x: %w: no memory of another process's pool is open there", uint64(m.Ptr), ErrInvalidValue)
	}
	if bad := v.space.shut(a.base); bad != nil {
		return fail(codeClosePoolMem, bad)
	}
	return err
}
