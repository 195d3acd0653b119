package simdriver

import "github.com/puregpu/puregpu/runtime/driver"

var (
	_ driver.MemInfo   = (*device)(nil)
	_ driver.Links     = (*device)(nil)
	_ driver.Occupancy = (*device)(nil)
)

// MemInfo returns the device's memory. Allocations and the reserved memory of pools do not count as
// free.
func (v *device) MemInfo() (free, total uint64, err error) {
	if err := v.enter(codeMemInfo, true); err != nil {
		return 0, 0, err
	}
	if !v.d.caps.MemInfo {
		return 0, 0, v.cannot(codeMemInfo)
	}
	v.space.mu.RLock()
	defer v.space.mu.RUnlock()
	return v.d.memory - min(v.space.used, v.d.memory), v.d.memory, nil
}

// Link describes the link to another device, from Config.Links and Config.Apart.
func (v *device) Link(other driver.Device) (driver.Link, error) {
	if err := v.enter(codeLink, true); err != nil {
		return driver.Link{}, err
	}
	if !v.d.caps.Links {
		return driver.Link{}, v.cannot(codeLink)
	}
	w, err := v.peer(codeLink, other)
	if err != nil {
		return driver.Link{}, err
	}
	return v.link(w), nil
}

// link describes the link from v to w, which may be v.
func (v *device) link(w *device) driver.Link {
	switch {
	case v == w:
		return driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}
	case v.d.links != nil:
		return v.d.links(v.index, w.index)
	case v.d.apart:
		return driver.Link{Kind: driver.LinkNone, Rank: -1}
	}
	return driver.Link{Atomics: true, Arrays: true}
}

// reaches reports whether v can use memory of w, which may be a device of another process.
func (v *device) reaches(w *device) bool {
	return v.index == w.index || v.d.caps.Peers && v.link(w).Kind != driver.LinkNone
}

// registers is the number of registers that a thread of any kernel has.
const registers = 32

// Occupancy returns how many blocks fit on a multiprocessor. The package documentation lists the
// limits.
func (v *device) Occupancy(h driver.Function, threads int, shared uint32) (int, error) {
	if err := v.enter(codeOccupancy, true); err != nil {
		return 0, err
	}
	if !v.d.caps.Occupancy {
		return 0, v.cannot(codeOccupancy)
	}
	f := v.d.functions.get(uintptr(h))
	if f == nil || f.module.dev != v {
		return 0, failf(codeOccupancy, "function %#x: %w: device %d has no such function", uint64(h), ErrInvalidHandle, v.index)
	}
	each := f.shared + uint64(shared)
	if threads <= 0 || threads > v.info.MaxThreads || each > uint64(v.info.SharedOptIn) {
		return 0, failf(codeOccupancy, "kernel %s: %w: a block of %d threads with %d bytes of shared memory, %d of them static; the limits are %d and %d",
			f.name, ErrInvalidValue, threads, each, f.shared, v.info.MaxThreads, v.info.SharedOptIn)
	}
	return v.held(threads, each), nil
}

// held returns how many blocks with the given number of threads and bytes of shared memory fit on a
// multiprocessor.
func (v *device) held(threads int, shared uint64) int {
	warp := v.info.WarpSize
	whole := (threads + warp - 1) / warp * warp
	blocks := min(v.info.ProcessorBlocks, v.info.ProcessorThreads/whole, v.info.ProcessorRegisters/(registers*whole))
	if shared > 0 {
		blocks = int(min(uint64(blocks), uint64(v.info.ProcessorSharedMem)/shared))
	}
	return blocks
}
