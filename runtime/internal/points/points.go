// Package points keeps the signals in flight of one semaphore: which values work that has been
// issued will signal. It knows neither locks nor what does the work. No operation looks at all
// points. None makes garbage once there have been as many points before.
//
// Work is known by its producer, which does its work in order, and by its number there. Once the
// value of a point is reached, nobody waits for the point any more. But its work may still be in
// flight, and signal the value later:
//
//   - If work of another producer, which nothing orders, has raised the value further, before or
//     after the point was added, the point is overtaken. Its signal changes nothing and is no
//     mistake.
//   - If somebody else has signalled that value, or the host a higher one, the signal is a mistake.
//     The semaphore fails for it.
//
// Overtaken points are kept apart. Of mistakes only the number is kept, so that a producer is asked
// until they are found.
package points

// A Point says that work in flight signals a value.
type Point[T comparable] struct {
	Value     uint64
	Producer  T
	Seq       uint64 // of the work in its producer, from 1
	ByBarrier bool   // by a barrier behind the work, after the work's own signals
}

// within reports whether a point is of work from first to last.
func (p *Point[T]) within(first, last *Point[T]) bool {
	return p.Producer == last.Producer && p.ByBarrier == last.ByBarrier &&
		p.Seq >= first.Seq && p.Seq <= last.Seq && p.Value >= first.Value && p.Value <= last.Value
}

// A Front says up to where a producer has points in flight.
type Front[T comparable] struct {
	Producer T
	Seq      uint64 // the highest of its points
	value    uint64 // the highest of its points
	jumbled  uint64 // above this value its points were added in the order of their values and numbers
	n        int    // its points
	want     uint64 // see many.ask
}

// A Set holds the points in flight of one semaphore. The zero Set is empty. It must not be copied.
type Set[T comparable] struct {
	from, to uint64   // between these values work alone has raised the value
	one      Point[T] // the only point, if its Seq is not 0
	many     *many[T] // all points, since there have been two at a time
}

// spread returns all points, for an operation that one point is not enough for.
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

// Empty reports whether no points are in flight.
func (s *Set[T]) Empty() bool {
	return s.one.Seq == 0 && (s.many == nil || len(s.many.fronts) == 0)
}

// Add adds a point. If work has overtaken it already, and work alone has raised the value since it
// was below, that is no mistake. Whether other work has signalled the same value is not known then.
func (s *Set[T]) Add(p Point[T]) {
	if s.from < p.Value && p.Value < s.to {
		s.spread().addOvertaken(p)
		return
	}
	if s.many == nil && s.one.Seq == 0 {
		s.one = p
		return
	}
	s.spread().add(p)
}

// Lowest returns the lowest point that reaches a value, and of several the oldest.
func (s *Set[T]) Lowest(value uint64) (p Point[T], ok bool) {
	if s.many != nil {
		return s.many.lowest(value)
	}
	if s.one.Seq != 0 && s.one.Value >= value {
		return s.one, true
	}
	return p, false
}

// Reaches reports whether a point reaches a value.
func (s *Set[T]) Reaches(value uint64) bool {
	if s.many != nil {
		return s.many.reaches(value)
	}
	return s.one.Seq != 0 && s.one.Value >= value
}

// Next returns the work to ask about for a value: that of the lowest point that reaches it, else
// that of the highest point, else other work in flight, since the semaphore fails if that does. If
// there is none it returns zeros.
func (s *Set[T]) Next(value uint64) (producer T, seq uint64) {
	if s.many != nil {
		return s.many.next(value)
	}
	return s.one.Producer, s.one.Seq
}

// Turn fills asks with producers to ask how far they are, and returns how many they are. If they do
// not all fit, the producer of the highest point comes first, and the others take turns.
func (s *Set[T]) ToPoll(asks []Front[T]) (n int) {
	if s.many != nil {
		return s.many.toPoll(asks)
	}
	if s.one.Seq == 0 {
		return 0
	}
	asks[0] = Front[T]{Producer: s.one.Producer, Seq: s.one.Seq}
	return 1
}

// Ask calls a function with the work that must be asked about on behalf of a waiter for a value. Of
// each producer these are all points below the value, since the semaphore fails if they do, and the
// first point that reaches the value. Producers do their work in order, so that is one number for
// each. If no number near the value covers all points that were added before, it is the last one of
// the producer, which may be more than is needed.
func (s *Set[T]) Want(value uint64, ask func(producer T, seq uint64)) {
	if s.many != nil {
		s.many.want(value, ask)
	} else if s.one.Seq != 0 {
		ask(s.one.Producer, s.one.Seq)
	}
}

// Arrive notes that work of a producer, from first to last, has raised the value from now to that
// of last. All points up to there are over. Among points between the two values that are not of
// this work, the first one of each value is overtaken, unless this work has signalled that value
// itself. Any other is a mistake.
func (s *Set[T]) Arrive(now uint64, first, last Point[T]) {
	if now != s.to {
		s.from = now
	}
	s.to = last.Value
	switch {
	case s.many == nil && (s.one.Seq == 0 || s.one.Value > last.Value):
	case s.many == nil && s.one.within(&first, &last):
		s.one = Point[T]{}
	default:
		s.spread().arrive(now, first, last)
	}
}

// TakeOvertaken takes a point away if it has been overtaken, and reports whether it has.
func (s *Set[T]) TakeOvertaken(p Point[T]) bool {
	return s.many != nil && s.many.takeOvertaken(p)
}

// Clear takes all points away, and lets go of the memory for them.
func (s *Set[T]) Clear() { *s = Set[T]{} }
