package blockpool

import "math"

// MaxTimelines is how many timelines there can be. What a pool needs for each is allocated when it
// first frees something.
const MaxTimelines = 1 << 12

// A Mark is the place in a timeline behind the work with a sequence number. Numbers begin at 1: a
// mark whose Seq is 0 is none, and what comes after it may happen at once.
type Mark struct {
	Timeline int
	Seq      uint64
}

// An Order knows how far timelines have come. Its methods are called with the pool locked: they
// must not call the pool, and should be quick. What they say of a number holds for all smaller
// ones, and goes on holding.
type Order interface {
	// Done reports whether all work of a timeline up to seq is done.
	Done(timeline int, seq uint64) bool
	// After reports whether all later work of a timeline is ordered after seq of another.
	After(timeline, on int, seq uint64) bool
}

// A reach is what is known of an order's answers for one timeline.
type reach struct {
	yes uint64 // up to here they are yes
	no  uint64 // from here on they are no
}

// A query is one Alloc's view of the order: which marks its timeline comes after. It asks the order
// no more than it must, and not for what is done: settle sees to that.
type query struct {
	on    int32
	o     Order
	reach []reach // by timeline
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

// after reports whether a mark needs no wait.
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

// settle takes the marks that are done off free blocks, which so join their neighbours. It reports
// whether there were any.
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
