package blockpool

import "math"

// MaxTimelines is the largest number of timelines. A pool allocates its data for a timeline when
// Free first gets a mark of that timeline.
const MaxTimelines = 1 << 12

// A Mark is the place in a timeline right behind the work with the number Seq. Numbers begin at 1.
// A Mark with Seq 0 means nothing to wait for.
type Mark struct {
	Timeline int
	Seq      uint64
}

// An Order knows how far timelines have progressed. Its methods are called with the pool locked.
// They must not call the pool, and should be fast. If a method returns true for a number, it also
// returns true for all smaller numbers, and in all later calls.
type Order interface {
	// Done reports whether all work of the timeline up to seq is done.
	Done(timeline int, seq uint64) bool
	// After reports whether all work that is submitted to the given timeline from now on runs after
	// the work with the number seq of another timeline, given by the parameter other.
	After(timeline, other int, seq uint64) bool
}

// A reach caches the answers of an Order for one timeline.
type reach struct {
	yes uint64 // the answer is true for numbers up to this one
	no  uint64 // the answer is false for this number and higher ones
}

// A query finds out, for one Alloc, which marks the Alloc's timeline is already ordered after. The
// query caches answers, to call the Order as little as possible. The query does not call
// Order.Done; Pool.settle does.
type query struct {
	on    int32
	o     Order
	reach []reach // index: timeline
}

func (q *query) start(on int32, o Order, sets int) {
	q.on, q.o = on, o
	if cap(q.reach) < sets {
		q.reach = make([]reach, sets, 2*sets)
	}
	q.reach = q.reach[:sets]
	for i := range q.reach {
		q.reach[i] = reach{0, math.MaxUint64}
	}
}

// after reports whether the timeline of the query may use a block with this mark without a wait.
func (q *query) after(tl int32, seq uint64) bool {
	if tl == q.on || tl == unmarked {
		return true
	}
	r := &q.reach[tl]
	switch {
	case seq <= r.yes:
		return true
	case seq >= r.no || q.o == nil:
		return false
	case q.o.After(int(q.on), int(tl), seq):
		r.yes = seq
		return true
	}
	r.no = seq
	return false
}

// settle finds marks whose work is done, and removes them from free blocks, so that these blocks
// can be merged with neighbours. It reports whether it has found any such mark.
func (p *Pool) settle(o Order) (moved bool) {
	if o == nil {
		return false
	}
	for i, s := range p.sets[1:] {
		if s != nil && s.n != 0 && o.Done(i, s.oldest) && p.settleSet(s, i, o) {
			moved = true
		}
	}
	return moved
}

func (p *Pool) settleSet(s *set, tl int, o Order) (moved bool) {
	r := reach{s.oldest, math.MaxUint64}
	oldest := uint64(math.MaxUint64)
	for c := s.next(0); c < classes; c = s.next(c + 1) {
		for s.roots[c] != nil {
			seq := s.roots[c].min
			if seq > r.yes && seq < r.no {
				if o.Done(tl, seq) {
					r.yes = seq
				} else {
					r.no = seq
				}
			}
			if seq > r.yes {
				oldest = min(oldest, seq)
				break
			}
			b := s.roots[c].first()
			p.lift(b)
			b.tl, b.seq = unmarked, 0
			p.place(b)
			moved = true
		}
	}
	s.oldest = oldest
	return moved
}
