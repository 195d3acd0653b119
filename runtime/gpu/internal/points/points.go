// Package points keeps the points of a semaphore: which values will be signalled by work that is in flight. It knows neither devices
// nor locks. What it does takes as long for a million points as for a thousand, and makes no garbage when it has once had as many.
//
// Work is known by its line, which does its work in order, and by its number there. A semaphore's value only grows, so that a point is
// over once its value is reached; its work goes on, and what its signal is then must be known:
//
//   - the value has been signalled by the work itself: all is well;
//   - work of another line, that nothing orders behind it, has raised the value further: the point is overtaken, and its signal will
//     change nothing;
//   - anybody else has signalled the value or a higher one: the signal is a mistake, for which the semaphore is to fail.
//
// Points that are overtaken are kept apart, and those that are mistakes are no more than counted.
package points

// A Point says that work in flight signals a value.
type Point[T comparable] struct {
	Value uint64
	Line  T
	Seq   uint64 // of the work in its line, from 1
	Late  bool   // by a barrier behind the work, after the work's own signals
}

// A Front is the end of what a line has in flight for the semaphore.
type Front[T comparable] struct {
	Line    T
	Seq     uint64 // of its last work
	value   uint64 // the highest that it signals
	n       int    // its points
	want    uint64
	jumbled bool // a point was added that is below an earlier one, or of earlier work
}

// A Set holds the points in flight of one semaphore. The zero Set is empty. It must not be copied.
type Set[T comparable] struct {
	list      list[T]               // of which the value was not found reached
	fronts    []Front[T]            // one for each line that has points in flight
	room      [2]Front[T]           // what fronts has at first
	turn      int                   // which of fronts was asked last; see Turn
	overtaken map[Point[T]]struct{} // below the value, and no mistakes
}

// Fronts returns for each line that has points in flight the last work that any of them is of. They are valid until the Set is changed.
func (s *Set[T]) Fronts() []Front[T] { return s.fronts }

// front returns that of one line, or nil.
func (s *Set[T]) front(line T) *Front[T] {
	for i := range s.fronts {
		if f := &s.fronts[i]; f.Line == line {
			return f
		}
	}
	return nil
}

// Add adds a point.
func (s *Set[T]) Add(p Point[T]) {
	f := s.front(p.Line)
	switch {
	case f == nil:
		if s.fronts == nil {
			s.fronts = s.room[:0]
		}
		s.fronts = append(s.fronts, Front[T]{Line: p.Line, Seq: p.Seq, value: p.Value, n: 1})
	case p.Seq >= f.Seq && p.Value >= f.value:
		f.Seq, f.value = p.Seq, p.Value
		f.n++
	default:
		f.Seq, f.value = max(f.Seq, p.Seq), max(f.value, p.Value)
		f.jumbled = true
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

// Next returns what is to be asked for a value to be reached: the lowest point that reaches it, else the highest of all, else what any
// line has in flight, of which the failure is the semaphore's.
func (s *Set[T]) Next(value uint64) (line T, seq uint64) {
	p, ok := s.Lowest(value)
	switch back := s.list.back(); {
	case ok:
	case back != nil:
		p = *back
	case len(s.fronts) > 0:
		return s.fronts[0].Line, s.fronts[0].Seq
	}
	return p.Line, p.Seq
}

// Turn fills asks with what is to be asked for the value to be raised as far as it may be: the line that has the highest point, and others
// in turn, if there are too many.
func (s *Set[T]) Turn(asks []Front[T]) (n int) {
	if len(s.fronts) <= len(asks) {
		return copy(asks, s.fronts)
	}
	if back := s.list.back(); back != nil {
		asks[0] = *s.front(back.Line)
		n = 1
	}
	for ; n < len(asks); n++ {
		s.turn++
		asks[n] = s.fronts[s.turn%len(s.fronts)]
	}
	return n
}

// Arrive takes away the points of work of one line, from first to last, that has raised the value from now to that of last, and with
// them all that the value has reached. Of those the value has jumped over, the first of each value is overtaken, unless the work has
// signalled that value as well.
func (s *Set[T]) Arrive(now uint64, first, last Point[T]) {
	own := 0
	value, taken, next := uint64(0), false, Point[T]{} // next is overtaken unless its value is taken
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
	s.drop(last.Line, own)
}

// within reports whether a point is of work from first to last.
func (p *Point[T]) within(first, last *Point[T]) bool {
	return p.Line == last.Line && p.Late == last.Late && p.Seq >= first.Seq && p.Seq <= last.Seq && p.Value >= first.Value && p.Value <= last.Value
}

func (s *Set[T]) overtake(p Point[T]) {
	if s.overtaken == nil {
		s.overtaken = make(map[Point[T]]struct{})
	}
	s.overtaken[p] = struct{}{}
}

// TakeOvertaken takes a point away if it has been overtaken, and reports whether it has.
func (s *Set[T]) TakeOvertaken(p Point[T]) bool {
	if _, is := s.overtaken[p]; !is {
		return false
	}
	delete(s.overtaken, p)
	s.drop(p.Line, 1)
	return true
}

// drop counts n points of a line less.
func (s *Set[T]) drop(line T, n int) {
	if n == 0 {
		return
	}
	f := s.front(line)
	if f.n -= n; f.n == 0 {
		last := len(s.fronts) - 1
		*f, s.fronts[last] = s.fronts[last], Front[T]{}
		s.fronts = s.fronts[:last]
	}
}

// nearby is how many points above a waiter are looked at to find the first one of each line.
const nearby = 16

// Ask calls a function with the work of each line about which a device must be asked on behalf of a waiter for a value: the first of the
// line that reaches the value, with all before it. If that is not found at once it is all that the line has in flight, which may be more
// than is needed. So all points below the value are asked about as well: where they fail, the semaphore does.
func (s *Set[T]) Ask(value uint64, ask func(line T, seq uint64)) {
	k, at := s.list.find(value)
	left := 0 // lines whose first one may be found
	for i := range s.fronts {
		if f := &s.fronts[i]; f.jumbled {
			f.want = f.Seq
		} else {
			f.want = 0
			left++
		}
	}
	for n := 0; n < nearby && left > 0 && k < s.list.dir.len(); n++ {
		points := s.list.dir.all()[k].chunk.all()
		if f := s.front(points[at].Line); f.want == 0 {
			f.want = points[at].Seq
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
		ask(f.Line, f.want)
	}
}

// Clear takes all points away, and gives up the memory for them.
func (s *Set[T]) Clear() { *s = Set[T]{} }
