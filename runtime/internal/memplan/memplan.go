// Package memplan finds which allocations of a recording may share memory, and where in one block
// each of them lies.
//
// A recording is steps with a partial order. Two allocations may share bytes if every step that
// uses the one comes before every step that uses the other, in whatever order the steps run that is
// allowed.
package memplan

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// A Step is a step of a recording.
type Step struct {
	Level int   // all steps of a lower level come before it; levels do not decrease from one step to the next
	After []int // steps in front of it in the recording that come before it; those of lower levels need not be listed
	Uses  []int // allocations
}

// A Layout is where allocations lie in a block.
type Layout struct {
	Offsets []uint64 // of each; multiples of the alignment
	Size    uint64   // of the block; a multiple of the alignment
}

// ErrSize is the error of allocations that have more than math.MaxInt64 bytes together.
var ErrSize = errors.New("more bytes than there are addresses")

// Plan lays out allocations of some sizes, each at a multiple of align, which is a power of two.
// One that no step uses takes no bytes. The block is at least as large as what is needed at a time
// when the steps run one after the other, and never larger than all allocations together. The same
// steps and sizes have the same layout.
//
// In each level it follows 64 uses at a time from step to step, and it compares each allocation
// with all others: 10,000 steps with 2,000 allocations take 0.03 to 0.12 s.
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

// A life is an allocation, and the steps that use it.
type life struct {
	size  uint64
	first int // of uses, or -1
	last  int
	uses  []int
	index int // from 1 on, among those that are used first in the same level

	// overlaps has a bit for each allocation, by index, that is used first in the level in which
	// this one is used last: whether some use of it does not come after all of this one's.
	overlaps []uint64
}

func (p *planner) findUses() {
	for i := range p.steps {
		for _, a := range p.steps[i].Uses {
			l := &p.lives[a]
			switch {
			case l.first < 0:
				l.first = i
			case l.last == i: // it is listed twice
				continue
			}
			l.last, l.uses = i, append(l.uses, i)
		}
	}
}

// A use is a step that uses an allocation.
type use struct {
	step int
	of   int
}

// findOrder finds which allocations come after which where a level is the first of the ones and the
// last of the others: the steps from lo to hi.
func (p *planner) findOrder(lo, hi int) {
	var uses []use // of allocations that end here
	begin, ending := 0, []int(nil)
	for i := lo; i < hi; i++ {
		for _, a := range p.steps[i].Uses {
			l := &p.lives[a]
			if l.first == i && l.index == 0 {
				begin++
				l.index = begin
			}
			if l.last == i && l.overlaps == nil {
				l.overlaps = []uint64{} // until begin is known
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

// follow notes which allocations begin in a level at steps that do not come after some uses, up to
// 64 of them. own and behind have a word for each step: which of the uses it is, and which it comes
// after.
func (p *planner) follow(lo, hi int, uses []use, own, behind []uint64) {
	clear(own)
	type group struct { // of the uses, those of one allocation
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

// before reports whether all uses of a come before all of b.
func (p *planner) before(a, b *life) bool {
	if end, begin := p.steps[a.last].Level, p.steps[b.first].Level; end != begin {
		return end < begin
	}
	return a.overlaps[b.index/64]>>(b.index%64)&1 == 0
}

// peak returns how many bytes are in use at a time when the steps run one after the other. Those
// need different places in every plan.
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

// bySize returns the allocations in use that have a size, the largest first.
func (p *planner) bySize() []int {
	order := p.byFirst()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.lives[b].size, p.lives[a].size) })
	return order
}

// byFirst returns them as they are used first.
func (p *planner) byFirst() (order []int) {
	for i := range p.lives {
		if l := &p.lives[i]; l.first >= 0 && l.size > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.lives[a].first, p.lives[b].first) })
	return order
}

// fit puts allocations, in an order, at the lowest place each that is free. With a top it puts them
// at the highest place below that instead, where that is nearer to the top than the other to the
// bottom: so what is used in turns lies at both ends, and neither divides what the other leaves
// free.
func (p *planner) fit(order []int, top uint64) Layout {
	lay := Layout{Offsets: make([]uint64, len(p.lives))}
	end := func(a int) uint64 { return lay.Offsets[a] + p.lives[a].size }
	var up, down []int // those that have a place, by their beginnings upwards, and by their ends downwards
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
