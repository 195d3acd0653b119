// Package points keeps the points of one semaphore: which values work in flight will signal. It knows neither devices nor locks. No
// operation looks at all points, and none makes garbage once there have been as many.
//
// Work is known by its timeline, which does its work in order, and by its number there. Once the value of a point is reached, whoever
// reached it, nobody waits for the point any more; but its work may still be in flight, and signal the value later:
//
//   - Work of another timeline, which nothing orders, has raised the value further. Then the point is overtaken: its signal changes
//     nothing, and is no mistake.
//   - Anybody else has signalled that value, or the host a higher one. Then the signal is a mistake, for which the semaphore fails.
//
// Overtaken points are kept by themselves. Of mistakes nothing is kept but their number, so that a device is asked until they are found.
package points

// A Point says that work in flight signals a value.
type Point[T comparable] struct {
	Value    uint64
	Timeline T
	Seq      uint64 // of the work in its timeline, from 1
	Late     bool   // by a barrier behind the work, after the work's own signals
}

// A Front says up to where a timeline has points in flight.
type Front[T comparable] struct {
	Timeline T
	Seq      uint64 // the highest of its points
	value    uint64 // the highest of its points
	jumbled  uint64 // above this value its points were added in the order of their values and numbers
	n        int    // its points
	want     uint64 // see Ask
}

// A Set holds the points in flight of one semaphore. The zero Set is empty. It must not be copied.
type Set[T comparable] struct {
	list      list[T]               // by value; what is reached leaves it with the next arrival
	fronts    []Front[T]            // of each timeline that has points in flight
	room      [2]Front[T]           // what fronts has at first
	turn      int                   // the last one of fronts that Turn has returned
	overtaken map[Point[T]]struct{} // no longer in list
	peak      int                   // how many have been overtaken at a time, since none was
}

// keep is for how many overtaken points the map is kept when it is empty: a map never gets smaller.
const keep = 1 << 14

// Fronts returns those of all timelines that have points in flight. They are valid until the Set changes.
func (s *Set[T]) Fronts() []Front[T] { return s.fronts }

// front returns that of one timeline, or nil.
func (s *Set[T]) front(timeline T) *Front[T] {
	for i := range s.fronts {
		if f := &s.fronts[i]; f.Timeline == timeline {
			return f
		}
	}
	return nil
}

// Add adds a point.
func (s *Set[T]) Add(p Point[T]) {
	f := s.front(p.Timeline)
	switch {
	case f == nil:
		if s.fronts == nil {
			s.fronts = s.room[:0]
		}
		s.fronts = append(s.fronts, Front[T]{Timeline: p.Timeline, Seq: p.Seq, value: p.Value, n: 1})
	case p.Seq >= f.Seq && p.Value >= f.value:
		f.Seq, f.value = p.Seq, p.Value
		f.n++
	default:
		f.Seq, f.value = max(f.Seq, p.Seq), max(f.value, p.Value)
		f.jumbled = f.value
		f.n++
	}
	s.list.add(p)
}

// Lowest returns the lowest point that reaches a value, and of several the one that was added first.
func (s *Set[T]) Lowest(value uint64) (p Point[T], ok bool) {
	k, at := s.list.find(value)
	if k == s.list.dir.len() {
		return p, false
	}
	return s.list.dir.all()[k].chunk.all()[at], true
}

// Reaches reports whether a point reaches a value.
func (s *Set[T]) Reaches(value uint64) bool {
	back := s.list.back()
	return back != nil && back.Value >= value
}

// Next returns the work to ask about for a value: that of the lowest point that reaches it, else that of the highest point, else what is
// in flight besides, for if that fails the semaphore does.
func (s *Set[T]) Next(value uint64) (timeline T, seq uint64) {
	p, ok := s.Lowest(value)
	switch back := s.list.back(); {
	case ok:
	case back != nil:
		p = *back
	case len(s.fronts) > 0:
		return s.fronts[0].Timeline, s.fronts[0].Seq
	}
	return p.Timeline, p.Seq
}

// Turn fills asks with timelines to ask how far they are, and returns how many they are. If they do not all fit, that of the highest point
// comes first, and the others take turns.
func (s *Set[T]) Turn(asks []Front[T]) (n int) {
	if len(s.fronts) <= len(asks) {
		return copy(asks, s.fronts)
	}
	if back := s.list.back(); back != nil {
		asks[0] = *s.front(back.Timeline)
		n = 1
	}
	for ; n < len(asks); n++ {
		s.turn++
		asks[n] = s.fronts[s.turn%len(s.fronts)]
	}
	return n
}

// Arrive notes that work of a timeline, from first to last, has raised the value from now to that of last. All points up to there leave the
// list. Of points between the two values that are not of this work, the first one of each value is overtaken, unless this work has
// signalled that value itself; any other is a mistake.
func (s *Set[T]) Arrive(now uint64, first, last Point[T]) {
	own := 0
	value, taken, next := uint64(0), false, Point[T]{} // next is overtaken unless this work has taken the value
	for p := s.list.front(); p != nil && p.Value <= last.Value; p = s.list.front() {
		if p.Value != value {
			if next.Seq != 0 && !taken {
				s.overtake(next)
			}
			value, taken, next = p.Value, false, Point[T]{}
		}
		switch {
		case p.within(&first, &last):
			taken = true
			own++
		case next.Seq == 0 && value > now && value < last.Value:
			next = *p
		}
		s.list.pop()
	}
	if next.Seq != 0 && !taken {
		s.overtake(next)
	}
	s.drop(last.Timeline, own)
}

// within reports whether a point is of work from first to last.
func (p *Point[T]) within(first, last *Point[T]) bool {
	return p.Timeline == last.Timeline && p.Late == last.Late &&
		p.Seq >= first.Seq && p.Seq <= last.Seq && p.Value >= first.Value && p.Value <= last.Value
}

func (s *Set[T]) overtake(p Point[T]) {
	if s.overtaken == nil {
		s.overtaken = make(map[Point[T]]struct{})
	}
	s.overtaken[p] = struct{}{}
	s.peak = max(s.peak, len(s.overtaken))
}

// TakeOvertaken takes a point away if it has been overtaken, and reports whether it has.
func (s *Set[T]) TakeOvertaken(p Point[T]) bool {
	if _, is := s.overtaken[p]; !is {
		return false
	}
	if delete(s.overtaken, p); len(s.overtaken) == 0 {
		if s.peak > keep {
			s.overtaken = nil
		}
		s.peak = 0
	}
	s.drop(p.Timeline, 1)
	return true
}

// drop takes n points off the count of a timeline.
func (s *Set[T]) drop(timeline T, n int) {
	if n == 0 {
		return
	}
	f := s.front(timeline)
	if f.n -= n; f.n == 0 {
		last := len(s.fronts) - 1
		*f, s.fronts[last] = s.fronts[last], Front[T]{}
		s.fronts = s.fronts[:last]
	}
}

// nearby is how many points Ask looks at.
const nearby = 16

// Ask calls a function with what a device must be asked about on behalf of a waiter for a value: of each timeline all points below the
// value, for if they fail the semaphore does, and the first point that reaches the value. As timelines do their work in order, that is one
// number for each. Where no number is found near the value that covers all that was added before, it is the timeline's last one, which may
// be more than is needed.
func (s *Set[T]) Ask(value uint64, ask func(timeline T, seq uint64)) {
	for i := range s.fronts {
		s.fronts[i].want = 0
	}
	k, at := s.list.find(value)
	for n, left := 0, len(s.fronts); n < nearby && left > 0 && k < s.list.dir.len(); n++ {
		points := s.list.dir.all()[k].chunk.all()
		p := &points[at]
		if f := s.front(p.Timeline); f.want == 0 && p.Value > f.jumbled {
			f.want = p.Seq
			left--
		}
		if at++; at == len(points) {
			k, at = k+1, 0
		}
	}
	for i := range s.fronts {
		f := &s.fronts[i]
		if f.want == 0 {
			f.want = f.Seq
		}
		ask(f.Timeline, f.want)
	}
}

// Clear takes all points away, and lets go of the memory for them.
func (s *Set[T]) Clear() { *s = Set[T]{} }
