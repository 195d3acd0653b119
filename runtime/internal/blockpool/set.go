package blockpool

import "math/bits"

// classes is the number of size classes. A unit is the pool's alignment. Sizes below 16 units have
// a class each. From there on, each power of two is divided into 8 classes.
const classes = 16 + 60*8

// A set contains the free blocks with a mark of one timeline, or the free blocks without a mark. It
// has a tree of blocks for each size class.
type set struct {
	shift  uint8  // a unit is 1 << shift bytes
	n      int    // number of blocks
	oldest uint64 // at most the smallest seq of the blocks
	bits   [(classes + 63) / 64]uint64
	roots  [classes]*block
}

// set returns the set of a timeline, or nil if it has none yet.
func (p *Pool) set(tl int32) *set {
	if i := int(tl) + 1; i < len(p.sets) {
		return p.sets[i]
	}
	return nil
}

// setOf returns the set of a timeline, and makes one if necessary.
func (p *Pool) setOf(tl int32) *set {
	i := int(tl) + 1
	for i >= len(p.sets) {
		p.sets = append(p.sets, nil)
	}
	if p.sets[i] == nil {
		p.sets[i] = &set{shift: p.shift}
	}
	return p.sets[i]
}

// class returns the size class of a size in bytes. Larger sizes have the same class or a higher
// one.
func (s *set) class(size uint64) uint {
	units := size >> (s.shift & 63)
	if units < 16 {
		return uint(units)
	}
	e := uint(bits.Len64(units)) - 1
	return 16 + (e-4)*8 + uint(units>>((e-3)&63))&7
}

// sameClass reports whether a and b have the same size class: the same length in bits and the same
// four leading bits. Sizes below 16 units have the same class only if they are equal.
func sameClass(a, b uint64) bool {
	return bits.Len64(a^b)+4 <= bits.Len64(b)
}

// next returns the first class, not below c, that has blocks. If there is none it returns the
// constant classes.
func (s *set) next(c uint) uint {
	if c >= classes {
		return classes
	}
	i := c / 64
	for w := s.bits[i] &^ (1<<(c%64) - 1); ; w = s.bits[i] {
		if w != 0 {
			return i*64 + uint(bits.TrailingZeros64(w))
		}
		if i++; i == uint(len(s.bits)) {
			return classes
		}
	}
}

func (s *set) insert(b *block) {
	if s.n == 0 || b.seq < s.oldest {
		s.oldest = b.seq
	}
	s.n++
	c := s.class(b.size)
	b.class = uint16(c)
	s.bits[c/64] |= 1 << (c % 64)
	insert(&s.roots[c], b)
}

func (s *set) remove(b *block) {
	s.n--
	c := b.class
	s.roots[c] = remove(s.roots[c], b)
	if s.roots[c] == nil {
		s.bits[c/64] &^= 1 << (c % 64)
	}
}

// resize changes the address and the size of a block in the set. If the block is alone in its class
// and stays in that class, the tree does not change. That is the usual case for the unused rest of
// a large slab.
func (s *set) resize(b *block, addr, size uint64) {
	if sameClass(b.size, size) && s.roots[b.class] == b && b.left == nil && b.right == nil {
		b.addr, b.size = addr, size
		return
	}
	s.remove(b)
	b.addr, b.size = addr, size
	s.insert(b)
}

// fit returns the smallest block of at least n bytes, or nil. Of blocks of equal size it returns
// the one with the lowest seq.
func (s *set) fit(n uint64) *block {
	if s.n == 0 {
		return nil
	}
	c := s.next(s.class(n))
	if c >= classes {
		return nil
	}
	if b := fit(s.roots[c], n); b != nil {
		return b
	}
	if c = s.next(c + 1); c >= classes {
		return nil
	}
	return fit(s.roots[c], n)
}

// fitOrdered is like fit, but considers only blocks whose marks need no wait.
func (s *set) fitOrdered(n uint64, q *query, tl int32) *block {
	if !q.after(tl, s.oldest) {
		return nil
	}
	for c := s.next(s.class(n)); c < classes; c = s.next(c + 1) {
		if b := fitOrdered(s.roots[c], n, q, tl); b != nil {
			return b
		}
	}
	return nil
}

// largest returns the size of the largest block, or 0.
func (s *set) largest() uint64 {
	for i := len(s.bits) - 1; i >= 0; i-- {
		if s.bits[i] == 0 {
			continue
		}
		b := s.roots[i*64+bits.Len64(s.bits[i])-1]
		for b.right != nil {
			b = b.right
		}
		return b.size
	}
	return 0
}
