package blockpool

// A table maps addresses to live blocks. It is a hash table with linear probing. Removal moves
// later entries forward and leaves no tombstones, so the table grows only with the number of live
// blocks.
type table struct {
	slots []slot // the length is a power of two, or 0
	shift uint8  // 64 minus log2 of len(slots)
	n     int
}

type slot struct {
	addr uint64
	b    *block // nil if the slot is empty
}

// home returns the index of the slot at which the search for an address begins.
func (t *table) home(addr uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
	return addr * golden >> (t.shift & 63)
}

func (t *table) put(b *block) {
	if t.n >= len(t.slots)/2 {
		t.grow()
	}
	t.n++
	mask := uint64(len(t.slots) - 1)
	i := t.home(b.addr)
	for t.slots[i].b != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = slot{b.addr, b}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(64, 2*len(old)))
	t.shift = 64
	for n := len(t.slots); n > 1; n /= 2 {
		t.shift--
	}
	t.n = 0
	for _, s := range old {
		if s.b != nil {
			t.put(s.b)
		}
	}
}

// remove removes the block with this address and returns it, or returns nil if there is none.
func (t *table) remove(addr uint64) *block {
	if t.n == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	i := t.home(addr)
	for t.slots[i].b != nil && t.slots[i].addr != addr {
		i = (i + 1) & mask
	}
	b := t.slots[i].b
	if b == nil {
		return nil
	}
	t.n--
	for j := (i + 1) & mask; t.slots[j].b != nil; j = (j + 1) & mask {
		// Move the block to slot i if a search for the block, which begins at slot h, comes past
		// slot i.
		if h := t.home(t.slots[j].addr); (j-h)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
	return b
}
