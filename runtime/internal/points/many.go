package points

// many implements Set for any number of points. Set documents the methods of the same names.
type many[T comparable] struct {
	list      list[T]               // points that are not reached, ordered by value
	fronts    []Front[T]            // one for each producer that has points
	room      [2]Front[T]           // storage of fronts for two producers
	overtaken map[Point[T]]struct{} // the overtaken points, which are not in list
	peak      int                   // largest length of overtaken since it was last empty
}

// keep limits the size of an empty map that is kept for reuse. Go maps never shrink, so a map that
// has had more overtaken points than keep is dropped when it becomes empty.
const keep = 1 << 14

// front returns the Front of a producer, or nil if the producer has no points.
func (m *many[T]) front(producer T) *Front[T] {
	for i := range m.fronts {
		if f := &m.fronts[i]; f.Producer == producer {
			return f
		}
	}
	return nil
}

func (m *many[T]) add(p Point[T]) {
	m.count(p)
	m.list.add(p)
}

// addOvertaken adds a point that has been overtaken.
func (m *many[T]) addOvertaken(p Point[T]) {
	m.count(p)
	m.overtake(p)
}

// count adds a point to the Front of its producer.
func (m *many[T]) count(p Point[T]) {
	f := m.front(p.Producer)
	switch {
	case f == nil:
		if m.fronts == nil {
			m.fronts = m.room[:0]
		}
		m.fronts = append(m.fronts, Front[T]{Producer: p.Producer, Seq: p.Seq, value: p.Value, n: 1})
	case p.Seq >= f.Seq && p.Value >= f.value:
		f.Seq, f.value = p.Seq, p.Value
		f.n++
	default:
		f.Seq, f.value = max(f.Seq, p.Seq), max(f.value, p.Value)
		f.jumbled = f.value
		f.n++
	}
}

func (m *many[T]) lowest(value uint64) (p Point[T], ok bool) {
	k, at := m.list.find(value)
	if k == m.list.dir.len() {
		return p, false
	}
	return m.list.dir.all()[k].chunk.all()[at], true
}

func (m *many[T]) reaches(value uint64) bool {
	back := m.list.back()
	return back != nil && back.Value >= value
}

func (m *many[T]) next(value uint64) (producer T, seq uint64) {
	p, ok := m.lowest(value)
	switch back := m.list.back(); {
	case ok:
	case back != nil:
		p = *back
	case len(m.fronts) > 0:
		return m.fronts[0].Producer, m.fronts[0].Seq
	}
	return p.Producer, p.Seq
}

func (m *many[T]) arrive(now uint64, first, last Point[T]) {
	own := 0
	// The loop looks at one value after the other. If the value is above the parameter now and
	// below last.Value, next is the first point of the value that belongs to other work. taken is
	// set if the arriving work has a point of that value too. If taken is not set after the last
	// point of the value, next becomes overtaken.
	value, taken, next := uint64(0), false, Point[T]{}
	for p := m.list.front(); p != nil && p.Value <= last.Value; p = m.list.front() {
		if p.Value != value {
			if next.Seq != 0 && !taken {
				m.overtake(next)
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
		m.list.pop()
	}
	if next.Seq != 0 && !taken {
		m.overtake(next)
	}
	m.drop(last.Producer, own)
}

func (m *many[T]) overtake(p Point[T]) {
	if m.overtaken == nil {
		m.overtaken = make(map[Point[T]]struct{})
	}
	m.overtaken[p] = struct{}{}
	m.peak = max(m.peak, len(m.overtaken))
}

func (m *many[T]) takeOvertaken(p Point[T]) bool {
	// This check is faster than a lookup in an empty map.
	if len(m.overtaken) == 0 {
		return false
	}
	if _, is := m.overtaken[p]; !is {
		return false
	}
	if delete(m.overtaken, p); len(m.overtaken) == 0 {
		if m.peak > keep {
			m.overtaken = nil
		}
		m.peak = 0
	}
	m.drop(p.Producer, 1)
	return true
}

// drop subtracts n from the number of points of a producer. If none is left, drop removes the
// producer's Front.
func (m *many[T]) drop(producer T, n int) {
	if n == 0 {
		return
	}
	f := m.front(producer)
	if f.n -= n; f.n == 0 {
		last := len(m.fronts) - 1
		*f, m.fronts[last] = m.fronts[last], Front[T]{}
		m.fronts = m.fronts[:last]
	}
}

// nearby is the largest number of points that the method want looks at.
const nearby = 16

func (m *many[T]) want(value uint64, ask func(producer T, seq uint64)) {
	for i := range m.fronts {
		m.fronts[i].want = 0
	}
	k, at := m.list.find(value)
	for n, left := 0, len(m.fronts); n < nearby && left > 0 && k < m.list.dir.len(); n++ {
		points := m.list.dir.all()[k].chunk.all()
		p := &points[at]
		if f := m.front(p.Producer); f.want == 0 && p.Value > f.jumbled {
			f.want = p.Seq
			left--
		}
		if at++; at == len(points) {
			k, at = k+1, 0
		}
	}
	for i := range m.fronts {
		f := &m.fronts[i]
		if f.want == 0 {
			f.want = f.Seq
		}
		ask(f.Producer, f.want)
	}
}
