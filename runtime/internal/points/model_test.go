package points

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A naive set is the model of a Set. It keeps all points in a slice, sorted by value, until their
// own signals come, and searches the whole slice.
type naive struct {
	points   []naivePoint
	from, to uint64 // only work, and not the host, has raised the value in this range
}

type naivePoint struct {
	Point[int]
	passed bool // other work has raised the value above Value; the point's own signal still comes
}

func (m *naive) add(p Point[int]) {
	i := len(m.points)
	for i > 0 && m.points[i-1].Value > p.Value {
		i--
	}
	passed := m.from < p.Value && p.Value < m.to && !slices.Contains(m.points, naivePoint{p, true})
	m.points = slices.Insert(m.points, i, naivePoint{p, passed})
}

func (m *naive) lowest(value uint64) (Point[int], bool) {
	for _, p := range m.points {
		if p.Value >= value {
			return p.Point, true
		}
	}
	return Point[int]{}, false
}

// takePassed removes p if p is a passed point of the set, and reports whether p was one.
func (m *naive) takePassed(p Point[int]) bool {
	for i, q := range m.points {
		if q.passed && q.Point == p {
			m.points = slices.Delete(m.points, i, i+1)
			return true
		}
	}
	return false
}

func (m *naive) arrive(now uint64, first, last Point[int]) {
	if now != m.to {
		m.from = now
	}
	m.to = last.Value
	for i := range m.points {
		p := &m.points[i]
		if p.Value <= now || p.Value >= last.Value || p.within(&first, &last) {
			continue
		}
		p.passed = !slices.ContainsFunc(m.points, func(q naivePoint) bool {
			return q.Value == p.Value && (q.passed || q.within(&first, &last))
		})
	}
	m.points = slices.DeleteFunc(m.points, func(p naivePoint) bool { return p.within(&first, &last) })
}

// A tape makes random decisions.
type tape interface {
	IntN(n int) int
}

// A work is a piece of work in flight.
type work struct {
	seq     uint64
	signals []uint64
}

// play makes producers signal values of a semaphore, and compares the Set with a naive one. It
// returns an error if they differ.
func play(r tape, steps int) error {
	var s Set[int]
	var m naive
	now := uint64(0)
	producers := make([][]work, 1+r.IntN(5))
	// late has the signals of barriers. The test makes them arrive at any time after their work.
	late := []Point[int](nil)
	issued := make([]uint64, len(producers))
	kind, top, bottom := r.IntN(4), uint64(1), uint64(1<<40)
	value := func() uint64 {
		switch kind {
		case 0: // ascending
			top++
			return now + top
		case 1: // descending
			bottom--
			return bottom
		case 2: // any value, rarely the same twice
			return now + 1 + uint64(r.IntN(256))<<16 + uint64(r.IntN(256))<<8 + uint64(r.IntN(256))
		}
		return now + uint64(r.IntN(20)) // often a value that is used twice or has been reached
	}
	for step := range steps {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("step %d: %s", step, fmt.Sprintf(format, args...))
		}
		arrive := func(first, last Point[int]) (mistake bool, err error) {
			if first == last {
				is := s.TakeOvertaken(first)
				if was := m.takePassed(first); is != was {
					return false, fail("%+v is overtaken: %t", first, is)
				} else if is {
					return false, nil
				}
			}
			if first.Value <= now {
				return true, nil
			}
			s.Arrive(now, first, last)
			m.arrive(now, first, last)
			now = last.Value
			return false, nil
		}
		mistake, err := false, error(nil)
		producer := r.IntN(len(producers))
		at := Point[int]{Producer: producer}
		switch k := r.IntN(20); {
		case k < 10:
			for range 1 + r.IntN(6) {
				issued[producer]++
				w := work{seq: issued[producer]}
				for range 1 + r.IntN(5)/4 {
					at.Seq, at.Value = w.seq, value()
					w.signals = append(w.signals, at.Value)
					s.Add(at)
					m.add(at)
				}
				producers[producer] = append(producers[producer], w)
			}
		case k == 10 && len(producers[producer]) > 0:
			w := producers[producer][r.IntN(len(producers[producer]))]
			at.Seq, at.ByBarrier, at.Value = w.seq, true, value()
			s.Add(at)
			m.add(at)
			late = append(late, at)
		case k == 11 && len(late) > 0:
			i := r.IntN(len(late))
			if p := late[i]; len(producers[p.Producer]) == 0 || producers[p.Producer][0].seq > p.Seq {
				late = slices.Delete(late, i, i+1)
				mistake, err = arrive(p, p)
			}
		case k == 12 && r.IntN(8) == 0: // a signal from the host
			now += uint64(r.IntN(50))
		case k == 13: // a signal that was not added
			at.Value = now + uint64(r.IntN(3))
			mistake, err = arrive(at, at)
		case k < 17 && len(producers[producer]) > 0: // several pieces of work at once
			n := 0
			for n < len(producers[producer]) && len(producers[producer][n].signals) == 1 && (n == 0 || producers[producer][n].signals[0] > at.Value) {
				at.Value = producers[producer][n].signals[0]
				n++
			}
			if n > 0 && producers[producer][0].signals[0] > now {
				first, last := at, at
				first.Seq, first.Value = producers[producer][0].seq, producers[producer][0].signals[0]
				last.Seq = producers[producer][n-1].seq
				producers[producer] = producers[producer][n:]
				mistake, err = arrive(first, last)
			}
		case len(producers[producer]) > 0:
			w := producers[producer][0]
			producers[producer] = producers[producer][1:]
			for _, v := range w.signals {
				if at.Seq, at.Value = w.seq, v; err == nil && !mistake {
					mistake, err = arrive(at, at)
				}
			}
		}
		if err != nil {
			return err
		}
		if mistake { // the semaphore would fail, so begin anew
			s.Clear()
			m, late = naive{}, nil
			clear(producers)
		}
		if err := compare(&s, &m, now, now+uint64(r.IntN(20))+1); err != nil {
			return fail("%v", err)
		}
		if n := len(m.points); n > 0 {
			p := m.points[n-1]
			if err := compare(&s, &m, now, max(now, p.Value-min(p.Value, uint64(r.IntN(300))))+1); err != nil {
				return fail("%v", err)
			}
		}
	}
	return nil
}

// compare compares the answers of a Set and a naive set for a wait for value.
func compare(s *Set[int], m *naive, now, value uint64) error {
	p, ok := s.Lowest(value)
	if q, also := m.lowest(value); ok != also || p != q {
		return fmt.Errorf("at %d, %+v, %t reaches %d; want %+v, %t", now, p, ok, value, q, also)
	}
	if s.Reaches(value) != ok {
		return fmt.Errorf("at %d, a point reaches %d: %t", now, value, !ok)
	}
	producer, seq := s.Next(value)
	switch q := len(m.points) - 1; {
	case ok && (producer != p.Producer || seq != p.Seq):
		return fmt.Errorf("producer %d at %d is next for %d, want %+v", producer, seq, value, p)
	case !ok && q >= 0 && m.points[q].Value > now && (producer != m.points[q].Producer || seq != m.points[q].Seq):
		return fmt.Errorf("producer %d at %d is next for %d, want %+v", producer, seq, value, m.points[q])
	case q >= 0 && seq == 0, q < 0 && seq != 0:
		return fmt.Errorf("producer %d at %d is next, and %d points are in flight", producer, seq, q+1)
	}
	type need struct {
		least, last uint64
		reaching    bool // the loop has seen a point that reaches the value
	}
	needs := map[int]*need{}
	for _, p := range m.points {
		n := needs[p.Producer]
		if n == nil {
			n = new(need)
			needs[p.Producer] = n
		}
		switch {
		case p.Value < value:
			n.least = max(n.least, p.Seq)
		case !n.reaching:
			n.least, n.reaching = max(n.least, p.Seq), true
		}
		n.last = max(n.last, p.Seq)
	}
	asked := map[int]uint64{}
	s.Want(value, func(producer int, seq uint64) { asked[producer] = seq })
	if len(asked) != len(needs) || s.Empty() != (len(needs) == 0) {
		return fmt.Errorf("polled %v for value %d, but %d producers have points", asked, value, len(needs))
	}
	for producer, n := range needs {
		if asked[producer] < n.least {
			return fmt.Errorf("polled producer %d for work %d for value %d; want work %d or later", producer, asked[producer], value, n.least)
		}
	}
	each := 0
	for _, f := range s.AppendFronts(nil) {
		if n := needs[f.Producer]; n != nil && f.Seq >= n.last {
			each++
		}
	}
	if each != len(needs) {
		return fmt.Errorf("AppendFronts lists %d producers, but %d have points", each, len(needs))
	}
	if s.many == nil {
		return nil
	}
	for _, f := range s.many.fronts {
		n := 0
		for _, p := range m.points {
			if p.Producer == f.Producer {
				n++
			}
		}
		if f.n != n || f.Seq < needs[f.Producer].last {
			return fmt.Errorf("the front of producer %d is at %d with %d points; want %d and %d", f.Producer, f.Seq, f.n, needs[f.Producer].last, n)
		}
	}
	return check(&s.many.list)
}

// check returns an error if the structure of a list is invalid.
func check[T comparable](l *list[T]) error {
	dir := l.dir.all()
	value := uint64(0)
	for i, e := range dir {
		c := e.chunk.all()
		if len(c) == 0 || e.low > c[0].Value || e.low < value {
			return fmt.Errorf("chunk %d of %d, from %d, has %d points", i, len(dir), e.low, len(c))
		}
		for _, p := range c {
			if p.Value < value {
				return fmt.Errorf("%d lies behind %d", p.Value, value)
			}
			value = p.Value
		}
		for j, p := range e.chunk.buf {
			if (j < e.chunk.low || j >= e.chunk.high) && p != (Point[T]{}) {
				return fmt.Errorf("%+v was left behind in chunk %d", p, i)
			}
		}
	}
	return nil
}

// TestAsk checks which work is polled for a waiter. If values are added in order, only the
// necessary work may be polled.
func TestAsk(t *testing.T) {
	at := func(producer int, seq, value uint64) Point[int] {
		return Point[int]{Value: value, Producer: producer, Seq: seq}
	}
	for name, c := range map[string]struct {
		points []Point[int]
		value  uint64
		want   map[int]uint64
	}{
		"nothing in flight":            {nil, 5, map[int]uint64{}},
		"the only one, above":          {[]Point[int]{at(0, 1, 7)}, 5, map[int]uint64{0: 1}},
		"the only one, below":          {[]Point[int]{at(0, 1, 3)}, 5, map[int]uint64{0: 1}},
		"one producer":                 {[]Point[int]{at(0, 1, 1), at(0, 2, 2), at(0, 3, 3), at(0, 4, 4)}, 3, map[int]uint64{0: 3}},
		"two producers":                {[]Point[int]{at(0, 1, 1), at(1, 1, 2), at(0, 2, 3), at(1, 2, 4), at(0, 3, 5), at(1, 3, 6)}, 3, map[int]uint64{0: 2, 1: 2}},
		"one producer is all below":    {[]Point[int]{at(0, 1, 1), at(0, 2, 2), at(1, 9, 5)}, 3, map[int]uint64{0: 2, 1: 9}},
		"later work has a lower value": {[]Point[int]{at(0, 1, 8), at(0, 2, 4), at(0, 3, 9)}, 7, map[int]uint64{0: 3}},
		"later work is in order":       {[]Point[int]{at(0, 1, 8), at(0, 2, 4), at(0, 3, 9), at(0, 4, 10), at(0, 5, 11)}, 10, map[int]uint64{0: 4}},
		"a barrier after earlier work": {[]Point[int]{at(0, 5, 1), {Value: 2, Producer: 0, Seq: 3, ByBarrier: true}, at(0, 6, 3), at(0, 7, 4)}, 2, map[int]uint64{0: 6}},
	} {
		var s Set[int]
		for _, p := range c.points {
			s.Add(p)
		}
		got := map[int]uint64{}
		s.Want(c.value, func(producer int, seq uint64) { got[producer] = seq })
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: polled for %v, want %v", name, got, c.want)
		}
	}
}

func TestModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for seed := range uint64(rounds) {
		if err := play(rand.New(rand.NewPCG(seed, 1)), 300); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// A script is a tape that takes its decisions from the bytes of a fuzzer.
type script []byte

func (s *script) IntN(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b) % n
}

func FuzzSet(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := make([]byte, 1000)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 5000 {
			return
		}
		s := script(b)
		if err := play(&s, len(b)/4); err != nil {
			t.Error(err)
		}
	})
}
