package points

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// orders are orders in which values are published.
var orders = map[string]func(n int) []uint64{
	"ascending":  func(n int) []uint64 { return fill(n, func(i int) uint64 { return uint64(i) + 1 }) },
	"descending": func(n int) []uint64 { return fill(n, func(i int) uint64 { return uint64(n - i) }) },
	"random": func(n int) []uint64 {
		r := rand.New(rand.NewPCG(1, 2))
		return fill(n, func(i int) uint64 { return 1 + r.Uint64N(1<<56) })
	},
	"from both ends": func(n int) []uint64 {
		return fill(n, func(i int) uint64 { return uint64(n + (1-2*(i%2))*(i/2+i%2)) })
	},
	"towards the middle": func(n int) []uint64 {
		return fill(n, func(i int) uint64 { return uint64(n + (1-2*(i%2))*(n-i)) })
	},
	"descending in blocks": func(n int) []uint64 {
		return fill(n, func(i int) uint64 { return uint64(n - i/100*100 + i%100) })
	},
	"ascending, interleaved with descending": func(n int) []uint64 {
		return fill(n, func(i int) uint64 {
			if i%2 == 0 {
				return uint64(10*n + i)
			}
			return uint64(10*n - 5*i)
		})
	},
	"one value": func(n int) []uint64 { return fill(n, func(i int) uint64 { return 1 }) },
	"few values": func(n int) []uint64 {
		r := rand.New(rand.NewPCG(1, 2))
		return fill(n, func(i int) uint64 { return 1 + r.Uint64N(4) })
	},
}

func fill(n int, f func(i int) uint64) []uint64 {
	values := make([]uint64, n)
	for i := range values {
		values[i] = f(i)
	}
	return values
}

// TestList checks adding, finding and removing points, for points added in many orders.
func TestList(t *testing.T) {
	for name, values := range orders {
		t.Run(name, func(t *testing.T) {
			var l list[int]
			for round, n := range []int{1, 2, 3, 9, 130, 5000, 1000, 5000} {
				values := values(n)
				var sorted []Point[int]
				for i, v := range values {
					p := Point[int]{Value: v, Seq: uint64(i + 1)}
					l.add(p)
					sorted = append(sorted, p)
					if n < 1000 || i%100 == 0 {
						if err := check(&l); err != nil {
							t.Fatalf("round %d: %v", round, err)
						}
					}
				}
				slices.SortStableFunc(sorted, func(a, b Point[int]) int { return compareValues(a.Value, b.Value) })
				taken := 0 // first remove one half of the points, then the other
				for _, end := range []int{n / 2, n} {
					for i := taken; i < n; i += 1 + n/1000 {
						first, _ := slices.BinarySearchFunc(sorted[taken:], sorted[i].Value, func(p Point[int], v uint64) int { return compareValues(p.Value, v) })
						if k, at := l.find(sorted[i].Value); l.dir.all()[k].chunk.all()[at] != sorted[taken+first] {
							t.Fatalf("round %d: %+v is found for %d", round, l.dir.all()[k].chunk.all()[at], sorted[i].Value)
						}
					}
					if k, _ := l.find(sorted[n-1].Value + 1); k != l.dir.len() || *l.back() != sorted[n-1] {
						t.Errorf("round %d: something is above %d, or %+v is the last", round, sorted[n-1].Value, l.back())
					}
					for ; taken < end; taken++ {
						if *l.front() != sorted[taken] {
							t.Fatalf("round %d: %+v comes %dth, want %+v", round, l.front(), taken, sorted[taken])
						}
						l.pop()
					}
					if err := check(&l); err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
				}
				if l.front() != nil || l.back() != nil || l.dir.len() != 0 {
					t.Errorf("round %d: not empty", round)
				}
			}
			if most := 2*5000/chunkSize + 20; len(l.spare) > 4*most {
				t.Errorf("%d chunks are kept", len(l.spare))
			}
		})
	}
}

func compareValues(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestListGivesUp checks that a list keeps only as many chunks as it has needed since it was last
// empty.
func TestListGivesUp(t *testing.T) {
	var l list[int]
	for _, c := range []struct{ points, kept int }{{100 * chunkSize, 99}, {10 * chunkSize, 10}, {1, 1}} {
		for v := range uint64(c.points) {
			l.add(Point[int]{Value: v + 1, Seq: 1})
		}
		for l.front() != nil {
			l.pop()
		}
		if n := len(l.spare); n > c.kept {
			t.Errorf("%d chunks are kept after %d points", n, c.points)
		}
	}
}

// TestSteps counts the elements that are moved to add points. A large list must not move many more
// for each point than a small one.
func TestSteps(t *testing.T) {
	sizes := []int{1000, 10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for name, values := range orders {
		few := 0.0
		for _, n := range sizes {
			var s Set[int]
			for i, v := range values(n) {
				s.Add(Point[int]{Value: v, Producer: i % 2, Seq: uint64(i/2 + 1)})
			}
			each := float64(s.many.list.moved) / float64(n)
			t.Logf("%s, %d: %.2f moved for each", name, n, each)
			if few == 0 {
				few = each
			}
			inOrder := name == "ascending" || name == "descending"
			if inOrder && each > 1 || each > 2*max(few, chunkSize/4) { // in random order, a part of a chunk is moved
				t.Errorf("%s: %.1f are moved for each of %d, and %.1f for each of %d", name, each, n, few, sizes[0])
			}
		}
	}
}

// TestAllocs checks that adding and removing points allocates nothing once the set has held that
// many points.
func TestAllocs(t *testing.T) {
	for name, values := range orders {
		for _, n := range []int{1, 2, 3, 10, 1000, 10_000} {
			var s Set[int]
			values := values(n)
			seq := uint64(0)
			last, now := slices.Max(values), uint64(0)
			run := func() {
				from := seq + 1
				for _, v := range values {
					seq++
					s.Add(Point[int]{Value: now + v, Seq: seq})
				}
				s.Want(now+last, func(int, uint64) {})
				s.Arrive(now, Point[int]{Value: now + 1, Seq: from}, Point[int]{Value: now + last, Seq: seq})
				now += last
				if !s.Empty() {
					t.Fatal("points are left")
				}
			}
			if got := testing.AllocsPerRun(5, run); got != 0 {
				t.Errorf("%s, %d: %v allocations", name, n, got)
			}
		}
	}
}

// TestAllocsOvertaken checks that points which another producer overtakes cause no allocations
// either. The set must not keep a map that has had more points than the constant keep.
func TestAllocsOvertaken(t *testing.T) {
	for _, n := range []int{1, 8, 9, 100, 1000, keep} {
		var s Set[int]
		now := uint64(0)
		if got := testing.AllocsPerRun(10, func() { now = overtakeAll(t, &s, now, n) }); got > 0 {
			t.Errorf("%d are overtaken: %v allocations", n, got)
		}
	}
	var s Set[int]
	overtakeAll(t, &s, 0, keep+1)
	if s.many.overtaken != nil {
		t.Error("memory for many is kept")
	}
}

// overtakeAll adds n points of one producer and a higher point of another producer. The higher
// point arrives first, then the others. overtakeAll returns the value reached.
func overtakeAll(t testing.TB, s *Set[int], now uint64, n int) uint64 {
	at := func(k int) Point[int] { return Point[int]{Value: now + uint64(k) + 1, Seq: now + uint64(k) + 1} }
	for k := range n {
		s.Add(at(k))
	}
	p := Point[int]{Value: now + uint64(n) + 1, Producer: 1, Seq: 1}
	s.Add(p)
	s.Arrive(now, p, p)
	for k := range n {
		if !s.TakeOvertaken(at(k)) {
			t.Fatal("not overtaken")
		}
	}
	if !s.Empty() {
		t.Fatal("points are left")
	}
	return p.Value
}

// BenchmarkAdd adds points in some order, and removes all at once.
func BenchmarkAdd(b *testing.B) {
	for _, name := range []string{"ascending", "descending", "random", "from both ends", "towards the middle"} {
		for _, n := range []int{1, 1000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				values := orders[name](n)
				last := slices.Max(values)
				var s Set[int]
				for b.Loop() {
					for _, v := range values {
						s.Add(Point[int]{Value: v, Seq: 1})
					}
					s.Arrive(0, Point[int]{Value: 1, Seq: 1}, Point[int]{Value: last, Seq: 1})
				}
				perPoint(b, n)
			})
		}
	}
}

func perPoint(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/point")
}

// BenchmarkAsk looks up random values while points are in flight.
func BenchmarkAsk(b *testing.B) {
	for _, name := range []string{"ascending", "random"} {
		for _, n := range []int{1, 1000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				values := orders[name](n)
				var s Set[int]
				for i, v := range values {
					s.Add(Point[int]{Value: v, Producer: i % 2, Seq: uint64(i/2 + 1)})
				}
				r := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					s.Want(values[r.IntN(n)], func(int, uint64) {})
				}
			})
		}
	}
}

// BenchmarkArrive lets points of two producers arrive one by one: in order, or so that all points
// of one producer are overtaken.
func BenchmarkArrive(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("in order/%d", n), func(b *testing.B) {
			var s Set[int]
			at := func(i int) Point[int] { return Point[int]{Value: uint64(i + 1), Producer: i % 2, Seq: uint64(i/2 + 1)} }
			for i := range n {
				s.Add(at(i))
			}
			for i := n; b.Loop(); i++ {
				s.Add(at(i))
				p := at(i - n)
				s.Arrive(p.Value-1, p, p)
			}
		})
		b.Run(fmt.Sprintf("overtaken/%d", n), func(b *testing.B) {
			var s Set[int]
			now := uint64(0)
			for b.Loop() {
				now = overtakeAll(b, &s, now, n)
			}
			perPoint(b, n+1)
		})
	}
}
