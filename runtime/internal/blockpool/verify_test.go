package blockpool

import "testing"

// verify checks that all data structures of a pool agree.
func (p *Pool) verify(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var reserved, used uint64
	live, free, seams, empty := 0, 0, 0, 0
	end := uint64(0)
	for _, s := range p.slabs {
		if s.base < end {
			t.Fatalf("slab at %#x begins in the slab before it", s.base)
		}
		end = s.base + s.size
		reserved += s.size
		at, to := p.inner(s.base, s.size)
		inUse := uint64(0)
		var prev *block
		for b := s.first; b != nil; prev, b = b, b.next {
			switch {
			case b.addr != at:
				t.Fatalf("block at %#x, where a block at %#x should be", b.addr, at)
			case b.prev != prev || b.slab != s || b.size == 0 || b.size%p.align != 0:
				t.Fatalf("bad record of the block at %#x", b.addr)
			case prev != nil && prev.free && b.free && prev.mark() == b.mark():
				t.Fatalf("blocks at %#x and %#x are not merged", prev.addr, b.addr)
			case b.seam != (b.free && b.next != nil && b.next.free):
				t.Fatalf("block at %#x: seam is %t", b.addr, b.seam)
			case b.tl == unmarked && b.seq != 0 || b.free && b.tl != unmarked && b.seq == 0:
				t.Fatalf("block at %#x: timeline %d, seq %d", b.addr, b.tl, b.seq)
			}
			at += b.size
			if b.seam {
				seams++
			}
			if b.free {
				free++
				continue
			}
			live++
			inUse += b.size
			if p.live.get(b.addr) != b {
				t.Fatalf("block at %#x is live and not in the table", b.addr)
			}
			size := uint64(0)
			for c := b.parts; c != nil; c = c.next {
				if c.addr != b.addr+size || c.free {
					t.Fatalf("bad part of the block at %#x", b.addr)
				}
				size += c.size
			}
			if b.parts != nil && size != b.size {
				t.Fatalf("parts of the block at %#x have %d bytes of %d", b.addr, size, b.size)
			}
		}
		if at != to {
			t.Fatalf("slab at %#x ends at %#x, not at %#x", s.base, at, to)
		}
		if inUse != s.used {
			t.Fatalf("slab at %#x has %d bytes in use, not %d", s.base, inUse, s.used)
		}
		used += inUse
		if inUse == 0 {
			empty++
		}
	}
	if reserved != p.stats.Reserved || used != p.stats.Used || live != p.stats.Live || live != p.live.n {
		t.Fatalf("%d bytes reserved, %d used in %d blocks, %d in the table; the books say %+v", reserved, used, live, p.live.n, p.stats)
	}
	for i, s := range p.sets {
		if s == nil {
			continue
		}
		n := 0
		for c, root := range s.roots {
			if (root != nil) != (s.bits[c/64]>>(c%64)&1 != 0) {
				t.Fatalf("set %d class %d: wrong bit", i, c)
			}
			var last *block
			n += s.verify(t, root, c, int32(i)-1, &last)
		}
		if n != s.n {
			t.Fatalf("set %d has %d blocks, not %d", i, n, s.n)
		}
		free -= n
	}
	if free != 0 {
		t.Fatalf("%d free blocks more in the slabs than in the sets", free)
	}
	for b, prev := p.seams, (*block)(nil); b != nil; prev, b = b, b.seamNext {
		if !b.seam || b.seamPrev != prev {
			t.Fatalf("the list of seams is broken at %#x", b.addr)
		}
		seams--
	}
	for s, prev := p.empty, (*slab)(nil); s != nil; prev, s = s, s.next {
		if s.used != 0 || s.prev != prev {
			t.Fatalf("the list of empty slabs is broken at %#x", s.base)
		}
		empty--
	}
	if seams != 0 || empty != 0 {
		t.Fatalf("the lists lack %d seams and %d empty slabs", seams, empty)
	}
}

func (s *set) verify(t testing.TB, b *block, class int, tl int32, last **block) int {
	if b == nil {
		return 0
	}
	n := 1 + s.verify(t, b.left, class, tl, last)
	least := b.seq
	for _, c := range []*block{b.left, b.right} {
		if c != nil {
			least = min(least, c.min)
			if c.prio > b.prio {
				t.Fatalf("tree: %#x above %#x", b.addr, c.addr)
			}
		}
	}
	if *last != nil && !(*last).less(b) || s.class(b.size) != uint(class) || b.min != least || b.tl != tl || b.seq < s.oldest || !b.free {
		t.Fatalf("block at %#x is wrong in its tree", b.addr)
	}
	*last = b
	return n + s.verify(t, b.right, class, tl, last)
}

// get returns the block at an address, or nil.
func (t *table) get(addr uint64) *block {
	b := t.remove(addr)
	if b != nil {
		t.put(b)
	}
	return b
}
