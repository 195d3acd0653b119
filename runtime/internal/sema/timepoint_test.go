package sema

import (
	"math/rand/v2"
	"testing"
)

// TestHeapOrder checks that timepointHeap.pop returns the timepoints up to a value in order, and no
// others.
func TestHeapOrder(t *testing.T) {
	for n := range 200 {
		var h timepointHeap
		sorted := n%3 == 0
		for i := range n {
			p := &Timepoint{value: uint64(i) / 4, order: uint64(i), index: -1}
			if !sorted {
				p.value = rand.Uint64N(20)
			}
			h.push(p)
		}
		left := n
		for value := uint64(0); value < 50; value += 1 + rand.Uint64N(20) {
			last := (*Timepoint)(nil)
			for p := h.pop(value, nil); p != nil; p = p.next {
				if p.value > value || p.index != -1 || last != nil && (timepointHeap{last, p}).less(1, 0) {
					t.Fatalf("%d: %+v behind %+v", n, p, last)
				}
				last = p
				left--
			}
			if len(h) != left || left > 0 && h[0].value <= value {
				t.Fatalf("%d: %d of %d are left", n, len(h), left)
			}
			for i, p := range h {
				if p.index != i {
					t.Fatalf("%d: the timepoint at %d has index %d", n, i, p.index)
				}
			}
		}
	}
}
