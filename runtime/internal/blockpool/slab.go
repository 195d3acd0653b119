package blockpool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A slab is memory from the source, or the caller's memory in a pool made by Fixed. The part of a
// slab between the first and the last aligned address is divided into blocks without gaps.
type slab struct {
	base, size uint64 // as returned by Source.Grow, or given to Fixed
	first      *block
	used       uint64 // bytes in live blocks
	prev, next *slab  // in the list of empty slabs
}

// Slab sizes for Config.SlabSize 0. Small blocks share small slabs, so that one small block that is
// never freed does not keep much memory reserved.
const (
	smallBlock  = 1 << 20
	smallSlab   = 2 << 20
	mediumBlock = 10 << 20
	mediumSlab  = 20 << 20
)

// slabFor returns the size of the slab to request from the source for a block of n bytes.
func (p *Pool) slabFor(n uint64) uint64 {
	unit := p.slabSize
	switch {
	case unit != 0:
	case n > smallBlock && n <= mediumBlock:
		unit = mediumSlab
	default:
		unit = smallSlab
	}
	if r := n % unit; r != 0 && n+(unit-r) > n {
		return n + (unit - r)
	}
	return n
}

// growFor requests a slab for a block of n bytes from the source. If that fails, growFor releases
// unused slabs and tries again. If the pool has no source, growFor does nothing. The caller holds
// Pool.sourceMu and Pool.mu. growFor unlocks Pool.mu while it calls the source.
func (p *Pool) growFor(n uint64, o Order) error {
	if p.src == nil {
		return nil
	}
	var refused error // errors of Source.Release
	for try := 0; ; try++ {
		err := p.grow(n)
		if err == nil {
			return nil
		}
		err = errors.Join(err, refused)
		if n > p.limit || p.closed || try == 2 {
			return err
		}
		target := uint64(0)
		if try == 0 && p.limit-n < p.stats.Reserved {
			target = p.limit - n // releasing down to target may be enough to stay within the limit
		}
		before := p.stats.Released
		refused = errors.Join(refused, p.release(0, target, o))
		if p.stats.Released == before {
			return err
		}
	}
}

// grow requests a slab of the usual size. If that fails, it requests a slab that is just large
// enough.
func (p *Pool) grow(n uint64) error {
	if p.stats.Reserved > p.limit || n > p.limit-p.stats.Reserved {
		return errLimit
	}
	good := max(n, min(p.slabFor(n), (p.limit-p.stats.Reserved)&^(p.align-1)))
	err := p.growBy(good, n)
	if err != nil && good > n && !p.closed {
		err = p.growBy(n, n)
	}
	return err
}

// growBy requests a slab of size bytes from the source and adds it to the pool. The slab must have
// room for an aligned block of n bytes.
func (p *Pool) growBy(size, n uint64) error {
	if p.stats.Reserved > p.limit || size > p.limit-p.stats.Reserved {
		return errLimit
	}
	base, got, err := p.askSource(size)
	if err != nil {
		return fmt.Errorf("grow by %d bytes: %w", size, err)
	}
	if err = p.check(base, got, n); errors.Is(err, errSlab) {
		return err // the slab overlaps another slab or is no memory, so releasing it could do harm
	}
	if err == nil && got > p.limit-p.stats.Reserved {
		err = errLimit
	}
	if err == nil {
		p.addSlab(base, got)
		p.stats.Grown++
		return nil
	}
	return errors.Join(err, p.giveBack(base, got))
}

// check returns an error if a slab is unusable: it is empty or reaches beyond the last address, it
// overlaps another slab, or it has no room for an aligned block of n bytes.
func (p *Pool) check(base, size, n uint64) error {
	if base+size <= base {
		return fmt.Errorf("a slab of %d bytes at %#x: %w", size, base, errSlab)
	}
	i := p.slabAfter(base)
	if i > 0 && p.slabs[i-1].base+p.slabs[i-1].size > base || i < len(p.slabs) && p.slabs[i].base < base+size {
		return fmt.Errorf("a slab of %d bytes at %#x overlaps another slab of the pool: %w", size, base, errSlab)
	}
	if from, to := p.inner(base, size); to < from || to-from < n {
		return fmt.Errorf("a slab of %d bytes at %#x has no room for %d bytes aligned to %d", size, base, n, p.align)
	}
	return nil
}

// inner returns the part of a slab that can be used: it begins and ends at aligned addresses.
func (p *Pool) inner(base, size uint64) (from, to uint64) {
	from = (base + p.align - 1) &^ (p.align - 1)
	if to = (base + size) &^ (p.align - 1); from < base {
		from = to
	}
	return from, to
}

// slabAfter returns the index of the first slab whose base is above addr.
func (p *Pool) slabAfter(addr uint64) int {
	i, found := slices.BinarySearchFunc(p.slabs, addr, func(s *slab, addr uint64) int { return cmp.Compare(s.base, addr) })
	if found {
		i++
	}
	return i
}

// addSlab adds a slab to the pool. The whole slab is one free block without a mark.
func (p *Pool) addSlab(base, size uint64) {
	s := &slab{base: base, size: size}
	p.slabs = slices.Insert(p.slabs, p.slabAfter(base), s)
	p.stats.Reserved += size
	p.stats.ReservedHigh = max(p.stats.ReservedHigh, p.stats.Reserved)
	p.addEmpty(s)
	if from, to := p.inner(base, size); from < to {
		b := p.record()
		b.addr, b.size, b.tl, b.slab = from, to-from, unmarked, s
		s.first = b
		p.place(b)
	}
}

// dropSlab removes a slab from p.slabs, after giveBack. The slab is not in the list p.empty.
func (p *Pool) dropSlab(s *slab) {
	i := p.slabAfter(s.base) - 1
	p.slabs = slices.Delete(p.slabs, i, i+1)
	p.stats.Reserved -= s.size
	p.stats.Released++
}

// idle reports whether all of a slab is free and known to be used by no work.
func (s *slab) idle() bool {
	b := s.first
	return b == nil || b.free && b.next == nil && b.tl == unmarked
}

// release returns unused slabs to the source. It stops when no more than target bytes are reserved,
// and leaves at least keep bytes reserved. If the source refuses a slab, the pool forgets the slab
// anyway, because the source may have freed the slab despite the error. The caller holds
// Pool.sourceMu and Pool.mu. release unlocks Pool.mu while it calls the source.
func (p *Pool) release(keep, target uint64, o Order) error {
	p.settle(o)
	var out *slab // slabs to release, removed from the sets so that Alloc cannot use them meanwhile
	left := p.stats.Reserved
	for s := p.empty; s != nil; {
		next := s.next
		if s.idle() && left > target && left >= keep && left-keep >= s.size {
			left -= s.size
			p.dropEmpty(s)
			if s.first != nil {
				p.lift(s.first)
			}
			s.next, out = out, s
		}
		s = next
	}
	var errs []error
	for s := out; s != nil; {
		next := s.next
		s.next = nil
		errs = append(errs, p.giveBack(s.base, s.size))
		if s.first != nil {
			p.recycle(s.first)
		}
		p.dropSlab(s)
		s = next
	}
	return errors.Join(errs...)
}

// askSource calls Source.Grow. It unlocks Pool.mu during the call.
func (p *Pool) askSource(size uint64) (base, got uint64, err error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.src.Grow(size)
}

// giveBack calls Source.Release. giveBack unlocks Pool.mu during the call. If the pool has no
// source, giveBack does nothing.
func (p *Pool) giveBack(base, size uint64) error {
	if p.src == nil {
		return nil
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	if err := p.src.Release(base, size); err != nil {
		return fmt.Errorf("release of %d bytes at %#x: %w", size, base, err)
	}
	return nil
}

func (p *Pool) addEmpty(s *slab) {
	s.prev, s.next = nil, p.empty
	if p.empty != nil {
		p.empty.prev = s
	}
	p.empty = s
}

func (p *Pool) dropEmpty(s *slab) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		p.empty = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}
