package blockpool

import "math/bits"

// classes is how many size classes there are: sizes of 1 to 15 units have one each, and larger ones
// eight for each power of two.
const classes = 16 + 60*8

// A set is the free blocks of one timeline, by size: a tree for each class.
type set struct {
	shift  uint8  // a unit is 1 << shift bytes
	n      int    // blocks
	oldest uint64 // no block has a smaller seq
	bits   [(classes + 63) / 64]uint64
	roots  [classes]*block
}

// set returns a timeline's free blocks, or nil if it never had any.
func (p *Pool) set(tl int32) *set {
	if i := int(tl) + 1; i < len(p.sets) {
		return p.sets[i]
	}
	return nil
}

// setOf is set for one that is about to get some.
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

// class returns the class of a size in bytes. All sizes of a class are smaller than all of the
// next.
func (s *set) class(size uint64) uint {
	units := size >> (s.shift & 63)
	if units < 16 {
		return uint(units)
	}
	e := uint(bits.Len64(units)) - 1
	return 16 + (e-4)*8 + uint(units>>((e-3)&63))&7
}

// sameClass reports whether two sizes have the same class, which says where their first four bits
// are, and what. Sizes of less than 16 units have only the same if they are equal.
func sameClass(a, b uint64) bool {
	return bits.Len64(a^b)+4 <= bits.Len64(b)
}

// next returns the first class from c on that has blocks, or classes.
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

// resize makes a block of the set larger or smaller. One that is alone in its class, as the rest of
// a large slab mostly is, stays where it is.
func (s *set) resize(b *block, addr, size uint64) {
	if sameClass(b.size, size) && s.roots[b.class] == b && b.left == nil && b.right == nil {
		b.addr, b.size = addr, size
		return
	}
	s.remove(b)
	b.addr, b.size = addr, size
	s.insert(b)
}

// fit returns the smallest block of at least n bytes, of equal ones the oldest.
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

// fitOrdered is fit among the blocks whose marks need no wait.
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

// largest returns the size of the largest block.
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
