// Package memplan plans the scratch memory of a recording. It decides which allocations may share
// bytes, and at which offset in one block of memory each allocation lies.
//
// A recording consists of steps with a partial order. Two allocations may share bytes if all steps
// that use one of them come before all steps that use the other. That must hold in every order of
// execution that is allowed.
package memplan

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// A Step is a step of a recording.
type Step struct {
	Level int   // all steps of a lower level come before this step; levels do not decrease along the slice
	After []int // indexes of earlier steps of the same level that come before this step
	Uses  []int // indexes of the allocations that the step uses
}

// A Layout says where allocations lie in a block of memory.
type Layout struct {
	Offsets []uint64 // one for each allocation; multiples of the alignment
	Size    uint64   // size of the block; a multiple of the alignment
}

// ErrSize is the error of Plan if the allocations together have more than math.MaxInt64 bytes.
var ErrSize = errors.New("more bytes than there are addresses")

// Plan returns a layout for allocations with the given sizes. Offsets are multiples of align, which
// is a power of two. An allocation that no step uses takes no bytes. The block is never larger than
// the sum of all sizes, each rounded up to a multiple of align. It is never smaller than the peak:
// the most bytes in use at any time when the steps run one after the other. Plan is deterministic.
//
// Plan compares each allocation with every other. 10,000 steps with 2,000 allocations take 0.03 to
// 0.12 s.
func Plan(steps []Step, sizes []uint64, align uint64) (Layout, error) {
	p := planner{steps: steps, lives: make([]life, len(sizes))}
	sum := uint64(0)
	for i, n := range sizes {
		if n > math.MaxInt64-align {
			return Layout{}, ErrSize
		}
		p.lives[i] = life{size: (n + align - 1) &^ (align - 1), first: -1}
		if sum += p.lives[i].size; sum > math.MaxInt64 {
			return Layout{}, ErrSize
		}
	}
	p.findUses()
	for lo, hi := 0, 0; lo < len(steps); lo = hi {
		for hi < len(steps) && steps[hi].Level == steps[lo].Level {
			hi++
		}
		p.findOrder(lo, hi)
	}
	least := p.peak()
	best := p.fit(p.bySize(), 0)
	if best.Size > least {
		if other := p.fit(p.byFirst(), least); other.Size < best.Size {
			best = other
		}
	}
	return best, nil
}

type planner struct {
	steps []Step
	lives []life
}

// A life is an allocation with the steps that use it.
type life struct {
	size  uint64
	first int // first step in uses, or -1 if there is none
	last  int
	uses  []int
	index int // number, from 1, among the allocations whose first use is in the same level

	// overlaps has a bit, by index, for each allocation whose first use is in the level of this
	// allocation's last use. A bit is set if some use of that allocation may begin before some use
	// of this allocation has ended.
	overlaps []uint64
}

func (p *planner) findUses() {
	for i := range p.steps {
		for _, a := range p.steps[i].Uses {
			l := &p.lives[a]
			switch {
			case l.first < 0:
				l.first = i
			case l.last == i: // the step lists the allocation twice
				continue
			}
			l.last, l.uses = i, append(l.uses, i)
		}
	}
}

// A use is a step and an allocation that the step uses.
type use struct {
	step int
	of   int
}

// findOrder handles one level, the steps from lo to hi-1. It compares the allocations whose last
// use is in this level with the allocations whose first use is in this level, and sets the field
// overlaps of the former.
func (p *planner) findOrder(lo, hi int) {
	var uses []use // uses, in this level, of the allocations whose last use is in this level
	begin, ending := 0, []int(nil)
	for i := lo; i < hi; i++ {
		for _, a := range p.steps[i].Uses {
			l := &p.lives[a]
			if l.first == i && l.index == 0 {
				begin++
				l.index = begin
			}
			if l.last == i && l.overlaps == nil {
				// Mark l so that the slice ending gets each allocation once; the bits are allocated
				// below.
				l.overlaps = []uint64{}
				ending = append(ending, a)
			}
		}
	}
	for _, a := range ending {
		l := &p.lives[a]
		l.overlaps = make([]uint64, begin/64+1)
		at, _ := slices.BinarySearch(l.uses, lo)
		for _, i := range l.uses[at:] {
			uses = append(uses, use{i, a})
		}
	}
	own, behind := make([]uint64, hi-lo), make([]uint64, hi-lo)
	for len(uses) > 0 {
		n := min(len(uses), 64)
		p.follow(lo, hi, uses[:n], own, behind)
		uses = uses[n:]
	}
}

// follow sets the field overlaps of allocations for at most 64 uses of the level. For each step it
// computes the set of these uses that come before the step, as a bit set in one word. The slices
// own and behind have a word for each step: own the uses of the step itself, and behind the uses
// that come before the step.
func (p *planner) follow(lo, hi int, uses []use, own, behind []uint64) {
	clear(own)
	type group struct { // the uses of one allocation
		of   int
		bits uint64
	}
	var groups []group
	for k, u := range uses {
		if n := len(groups); n == 0 || groups[n-1].of != u.of {
			groups = append(groups, group{of: u.of})
		}
		groups[len(groups)-1].bits |= 1 << k
		own[u.step-lo] |= 1 << k
	}
	for i := lo; i < hi; i++ {
		after := uint64(0)
		for _, a := range p.steps[i].After {
			if a >= lo {
				after |= own[a-lo] | behind[a-lo]
			}
		}
		behind[i-lo] = after
		for _, b := range p.steps[i].Uses {
			l := &p.lives[b]
			if l.first < lo {
				continue
			}
			for _, g := range groups {
				if after&g.bits != g.bits {
					p.lives[g.of].overlaps[l.index/64] |= 1 << (l.index % 64)
				}
			}
		}
	}
}

// before reports whether all uses of allocation a come before all uses of allocation b.
func (p *planner) before(a, b *life) bool {
	if end, begin := p.steps[a.last].Level, p.steps[b.first].Level; end != begin {
		return end < begin
	}
	return a.overlaps[b.index/64]>>(b.index%64)&1 == 0
}

// peak returns the most bytes that are in use at any time when the steps run one after the other.
// No layout can be smaller.
func (p *planner) peak() (peak uint64) {
	now := uint64(0)
	ends := make([]uint64, len(p.steps))
	begins := make([]uint64, len(p.steps))
	for i := range p.lives {
		if l := &p.lives[i]; l.first >= 0 {
			begins[l.first] += l.size
			ends[l.last] += l.size
		}
	}
	for i := range p.steps {
		now += begins[i]
		peak = max(peak, now)
		now -= ends[i]
	}
	return peak
}

// bySize returns the indexes of the allocations that are used and not empty, largest first.
func (p *planner) bySize() []int {
	order := p.byFirst()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.lives[b].size, p.lives[a].size) })
	return order
}

// byFirst returns the indexes of the allocations that are used and not empty, ordered by their
// first use.
func (p *planner) byFirst() (order []int) {
	for i := range p.lives {
		if l := &p.lives[i]; l.first >= 0 && l.size > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.lives[a].first, p.lives[b].first) })
	return order
}

// fit places the allocations one by one, in the given order, each at the lowest offset that is
// free. If top is not 0, fit also looks for the highest free place below top. It takes the high
// place if that is nearer to top than the low place is to 0. So allocations whose uses alternate
// lie at both ends, and the free space between them is not divided.
func (p *planner) fit(order []int, top uint64) Layout {
	lay := Layout{Offsets: make([]uint64, len(p.lives))}
	end := func(a int) uint64 { return lay.Offsets[a] + p.lives[a].size }
	var up, down []int // placed allocations, by ascending offset and by descending end
	for _, a := range order {
		l := &p.lives[a]
		near := func(b int) bool { return !p.before(l, &p.lives[b]) && !p.before(&p.lives[b], l) }
		at := uint64(0)
		for _, b := range up {
			if lay.Offsets[b] >= at+l.size {
				break
			}
			if end(b) > at && near(b) {
				at = end(b)
			}
		}
		if at > 0 && top > 0 {
			high := top
			for _, b := range down {
				if high < l.size || end(b) <= high-l.size {
					break
				}
				if lay.Offsets[b] < high && near(b) {
					high = lay.Offsets[b]
				}
			}
			if high >= l.size && top-high < at {
				at = high - l.size
			}
		}
		lay.Offsets[a] = at
		lay.Size = max(lay.Size, end(a))
		i, _ := slices.BinarySearchFunc(up, at, func(b int, at uint64) int { return cmp.Compare(lay.Offsets[b], at) })
		up = slices.Insert(up, i, a)
		i, _ = slices.BinarySearchFunc(down, end(a), func(b int, to uint64) int { return cmp.Compare(to, end(b)) })
		down = slices.Insert(down, i, a)
	}
	return lay
}
