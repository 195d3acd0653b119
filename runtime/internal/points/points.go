// Package points implements the set of signals in flight of one semaphore: the values that issued
// work will signal when it is done. The package takes no locks and does not know the kinds of work.
// No operation looks at all points of a set. Only Arrive may look at many: it removes them.
//
// A producer does numbered work in order, such as a GPU stream. A [Point] says that one piece of a
// producer's work, given by its number, will signal a value. When the semaphore has reached that
// value, nobody waits for the point any more. But the work of the point may still be in flight, and
// it will signal the value later. There are two cases:
//
//   - Independent work of another producer has raised the value further, before or after the point
//     was added. Then the point is called overtaken. Its signal will change nothing and is no
//     mistake.
//   - Other work has signalled the same value, or the host has signalled the same or a higher one.
//     Then the signal of the point is a mistake of the program. When it comes, the semaphore fails.
//
// The set keeps overtaken points in a map. For mistakes it keeps only a count for each producer, so
// that the producer is polled until its work is done.
package points

// A Point says that work in flight will signal a value.
type Point[T comparable] struct {
	Value     uint64
	Producer  T
	Seq       uint64 // number of the work, from 1
	ByBarrier bool   // signalled by a barrier that waits for the work, after the work's own signals
}

// within reports whether p has the same Producer and ByBarrier as the point last, and the Seq and
// the Value of p are not below those of the point first and not above those of last.
func (p *Point[T]) within(first, last *Point[T]) bool {
	return p.Producer == last.Producer && p.ByBarrier == last.ByBarrier &&
		p.Seq >= first.Seq && p.Seq <= last.Seq && p.Value >= first.Value && p.Value <= last.Value
}

// A Front describes the points of one producer in a Set.
type Front[T comparable] struct {
	Producer T
	Seq      uint64 // the highest number of the producer's points
	value    uint64 // the highest value of the producer's points
	jumbled  uint64 // the producer's points above this value were added with growing values and growing numbers
	n        int    // how many points the producer has
	want     uint64 // only for the method many.want: the number for ask; 0 as long as none is found
}

// A Set holds the points in flight of one semaphore. The zero Set is empty. It must not be copied.
type Set[T comparable] struct {
	// Work alone, and not the host, has raised the value of the semaphore from the number in since
	// to the number in last.
	since, last uint64
	one         Point[T] // the only point if many is nil; none if its Seq is 0
	many        *many[T] // all points; nil as long as the field one suffices
}

// spread returns s.many. If that is nil, spread first makes it and moves the point s.one into it.
func (s *Set[T]) spread() *many[T] {
	if s.many == nil {
		s.many = new(many[T])
		if s.one.Seq != 0 {
			s.many.add(s.one)
			s.one = Point[T]{}
		}
	}
	return s.many
}

// Empty reports whether the set has no points.
func (s *Set[T]) Empty() bool {
	return s.one.Seq == 0 && (s.many == nil || len(s.many.fronts) == 0)
}

// Add adds the point p. p counts as overtaken if the value of the semaphore is already above
// p.Value, and only work, not the host, has raised the value since it was below p.Value. In that
// case other work may have signalled p.Value itself, which is a mistake, but the set cannot tell.
func (s *Set[T]) Add(p Point[T]) {
	if s.since < p.Value && p.Value < s.last {
		s.spread().addOvertaken(p)
		return
	}
	if s.many == nil && s.one.Seq == 0 {
		s.one = p
		return
	}
	s.spread().add(p)
}

// Lowest returns the point with the lowest value that is not below the given one. If several points
// have that value, Lowest returns the point that was added first.
func (s *Set[T]) Lowest(value uint64) (p Point[T], ok bool) {
	if s.many != nil {
		return s.many.lowest(value)
	}
	if s.one.Seq != 0 && s.one.Value >= value {
		return s.one, true
	}
	return p, false
}

// Reaches reports whether the set has a point whose value is not below the given one.
func (s *Set[T]) Reaches(value uint64) bool {
	if s.many != nil {
		return s.many.reaches(value)
	}
	return s.one.Seq != 0 && s.one.Value >= value
}

// Next returns the work that a waiter for a value should poll. That is the work of the lowest point
// that is not below the value, or else of the highest point. If the set has only overtaken points
// and mistakes, Next returns the work of one of these, because the semaphore fails if that work
// fails. If the set is empty, Next returns zeros.
func (s *Set[T]) Next(value uint64) (producer T, seq uint64) {
	if s.many != nil {
		return s.many.next(value)
	}
	return s.one.Producer, s.one.Seq
}

// AppendFronts appends to fronts the Front of each producer that has points.
func (s *Set[T]) AppendFronts(fronts []Front[T]) []Front[T] {
	switch {
	case s.many != nil:
		return append(fronts, s.many.fronts...)
	case s.one.Seq != 0:
		return append(fronts, Front[T]{Producer: s.one.Producer, Seq: s.one.Seq})
	}
	return fronts
}

// Want calls the function ask for the work that must be polled for a waiter for a value. That is
// all work with a point below the value, because the semaphore fails if such work fails, and of
// each producer the first work whose point reaches the value. A producer does its work in order, so
// one number for each producer is enough. If no number near the value covers all these points, Want
// takes the producer's highest number. Then more is polled than necessary.
func (s *Set[T]) Want(value uint64, ask func(producer T, seq uint64)) {
	if s.many != nil {
		s.many.want(value, ask)
	} else if s.one.Seq != 0 {
		ask(s.one.Producer, s.one.Seq)
	}
}

// Arrive says that work of one producer is done: the work from the point first to the point last.
// This work has raised the semaphore's value from the parameter now to last.Value. Arrive removes
// all points up to last.Value. Some of them may belong to other work, with values between now and
// last.Value. Of such points with the same value the first becomes overtaken, unless the work that
// is done has signalled that value too. The points of other work that do not become overtaken are
// mistakes.
func (s *Set[T]) Arrive(now uint64, first, last Point[T]) {
	if now != s.last {
		s.since = now
	}
	s.last = last.Value
	switch {
	case s.many == nil && (s.one.Seq == 0 || s.one.Value > last.Value):
	case s.many == nil && s.one.within(&first, &last):
		s.one = Point[T]{}
	default:
		s.spread().arrive(now, first, last)
	}
}

// TakeOvertaken removes the point p if p is overtaken, and reports whether p was overtaken.
func (s *Set[T]) TakeOvertaken(p Point[T]) bool {
	return s.many != nil && s.many.takeOvertaken(p)
}

// Clear removes all points and releases their memory.
func (s *Set[T]) Clear() { *s = Set[T]{} }
