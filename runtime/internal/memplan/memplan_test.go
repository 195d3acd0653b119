package memplan

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const align = 256

// comesBefore is the model of the order. It returns, for each pair of steps, whether one comes
// before the other.
func comesBefore(steps []Step) [][]bool {
	m := make([][]bool, len(steps)) // m[i][j] says that j comes before i
	for i, s := range steps {
		m[i] = make([]bool, len(steps))
		for j := range i {
			m[i][j] = steps[j].Level < s.Level
		}
		for _, a := range s.After {
			m[i][a] = true
			for j := range a {
				m[i][j] = m[i][j] || m[a][j]
			}
		}
	}
	return m
}

// check compares a layout with the model. It returns the largest number of bytes in use at the same
// time.
func check(t *testing.T, steps []Step, sizes []uint64, l Layout) (peak uint64) {
	t.Helper()
	before := comesBefore(steps)
	uses := make([][]int, len(sizes))
	for i, s := range steps {
		for _, a := range s.Uses {
			uses[a] = append(uses[a], i)
		}
	}
	precedes := func(a, b int) bool {
		for _, i := range uses[a] {
			for _, j := range uses[b] {
				if !before[j][i] {
					return false
				}
			}
		}
		return true
	}
	rounded := func(a int) uint64 { return (sizes[a] + align - 1) / align * align }
	sum := uint64(0)
	for a := range sizes {
		if len(uses[a]) == 0 {
			continue
		}
		sum += rounded(a)
		if at := l.Offsets[a]; at%align != 0 || at+rounded(a) > l.Size {
			t.Fatalf("allocation %d of %d bytes is at %d of a block of %d", a, sizes[a], at, l.Size)
		}
		for b := range a {
			if len(uses[b]) > 0 && sizes[a] > 0 && sizes[b] > 0 && !precedes(a, b) && !precedes(b, a) &&
				l.Offsets[a] < l.Offsets[b]+sizes[b] && l.Offsets[b] < l.Offsets[a]+sizes[a] {
				t.Fatalf("allocations %d and %d, used by %v and %v of %+v, lie at %d and %d, with %d and %d bytes", b, a, uses[b], uses[a], steps,
					l.Offsets[b], l.Offsets[a], sizes[b], sizes[a])
			}
		}
	}
	for i := range steps {
		now := uint64(0)
		for a := range sizes {
			if n := len(uses[a]); n > 0 && uses[a][0] <= i && uses[a][n-1] >= i {
				now += rounded(a)
			}
		}
		peak = max(peak, now)
	}
	if l.Size > sum || l.Size < peak {
		t.Fatalf("a block of %d bytes, for allocations that have %d, and %d at a time", l.Size, sum, peak)
	}
	return peak
}

func plan(t testing.TB, steps []Step, sizes []uint64) Layout {
	t.Helper()
	l, err := Plan(steps, sizes, align)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRandom compares the plans of random recordings with the model. The recordings have barriers,
// lists of earlier steps, or both. Allocations may be used anywhere, twice by one step, or not at
// all.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		steps, sizes := make([]Step, 1+r.IntN(40)), make([]uint64, r.IntN(30))
		barriers, lists := r.IntN(6), r.IntN(4)
		for i := range steps {
			s := &steps[i]
			if i > 0 {
				s.Level = steps[i-1].Level
			}
			if barriers > 0 && r.IntN(barriers) == 0 {
				s.Level += 1 + r.IntN(2)
			}
			for range r.IntN(lists + 1) {
				if i > 0 {
					s.After = append(s.After, max(0, i-1-r.IntN(6)))
				}
			}
		}
		for a := range sizes {
			sizes[a] = r.Uint64N(5) * r.Uint64N(1000)
			from := r.IntN(len(steps))
			for range r.IntN(6) {
				i := min(len(steps)-1, from+r.IntN(5))
				steps[i].Uses = append(steps[i].Uses, a)
			}
		}
		l := plan(t, steps, sizes)
		check(t, steps, sizes, l)
		if again := plan(t, steps, sizes); again.Size != l.Size || !slices.Equal(again.Offsets, l.Offsets) {
			t.Fatal("another plan of the same recording")
		}
	}
}

// TestManyUses uses allocations with more uses than the method follow handles at once. One
// allocation must come before another only if all its uses do.
func TestManyUses(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		steps := make([]Step, 401)
		for i := range 200 {
			steps[i].Uses = []int{0}
			if i != 100 || ordered {
				steps[200].After = append(steps[200].After, i)
			}
		}
		for i := 201; i < 401; i++ {
			steps[i] = Step{After: []int{200}, Uses: []int{1}}
		}
		sizes, want := []uint64{1000, 500}, uint64(1024+512)
		if ordered {
			want = 1024
		}
		l := plan(t, steps, sizes)
		check(t, steps, sizes, l)
		if l.Size != want {
			t.Errorf("%d bytes, want %d; ordered: %v", l.Size, want, ordered)
		}
	}
}

// TestChain uses steps in a row. Each uses its own allocation and the one of the step before. So at
// most two allocations are in use at the same time, and the block must have the size of the largest
// such pair.
func TestChain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 1 + r.IntN(60)
		steps, sizes := make([]Step, n+1), make([]uint64, n)
		for i := range steps {
			steps[i].Level = i
			if i > 0 && r.IntN(2) == 0 {
				steps[i].Level, steps[i].After = steps[i-1].Level, []int{i - 1}
			} else if i > 0 {
				steps[i].Level = steps[i-1].Level + 1
			}
			if i < n {
				steps[i].Uses, sizes[i] = append(steps[i].Uses, i), 1+r.Uint64N(100_000)
			}
			if i > 0 {
				steps[i].Uses = append(steps[i].Uses, i-1)
			}
		}
		l := plan(t, steps, sizes)
		if peak := check(t, steps, sizes, l); l.Size != peak {
			t.Fatalf("%d bytes for a chain that needs %d at a time: %v", l.Size, peak, sizes)
		}
	}
}

// TestNetworks uses blocks like a neural network's: a branch goes around some steps of each. The
// size of the plan must be near the largest number of bytes in use at the same time.
func TestNetworks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	worst := 1.0
	for range 200 {
		var steps []Step
		var sizes []uint64
		alloca := func() int {
			sizes = append(sizes, 1+r.Uint64N(1<<20))
			return len(sizes) - 1
		}
		step := func(uses ...int) {
			s := Step{Uses: uses}
			if n := len(steps); n > 0 {
				s.After = []int{n - 1}
			}
			steps = append(steps, s)
		}
		x := alloca()
		step(x)
		for range 4 + r.IntN(20) {
			in := x
			for range 1 + r.IntN(4) {
				y := alloca()
				step(x, y)
				x = y
			}
			sum := alloca()
			step(in, x, sum)
			x = sum
		}
		l := plan(t, steps, sizes)
		peak := check(t, steps, sizes, l)
		worst = max(worst, float64(l.Size)/float64(peak))
	}
	t.Logf("at worst %.3f times what is needed at a time", worst)
	if worst > 1.4 {
		t.Errorf("%.3f times the most bytes in use at a time", worst)
	}
}

func TestSizes(t *testing.T) {
	steps := []Step{{Uses: []int{0, 1, 1}}}
	for _, sizes := range [][]uint64{{math.MaxUint64, 0}, {math.MaxInt64, 1}, {1 << 62, 1 << 62}} {
		if _, err := Plan(steps, sizes, align); !errors.Is(err, ErrSize) {
			t.Errorf("%v: %v", sizes, err)
		}
	}
	for _, c := range []struct {
		sizes []uint64
		want  uint64
	}{{[]uint64{0, 0}, 0}, {[]uint64{1, 0}, 256}, {[]uint64{256, 257}, 768}, {[]uint64{0, 1, 1000}, 256}} {
		if l := plan(t, steps, c.sizes); l.Size != c.want {
			t.Errorf("%v: %d bytes, want %d", c.sizes, l.Size, c.want)
		}
	}
	if l := plan(t, nil, nil); l.Size != 0 {
		t.Errorf("nothing takes %d bytes", l.Size)
	}
}

// large returns a recording of 10,000 steps and 2,000 allocations, without barriers or with one
// after each step.
func large(barriers bool) ([]Step, []uint64) {
	r := rand.New(rand.NewPCG(7, 8))
	steps, sizes := make([]Step, 10_000), make([]uint64, 2000)
	for i := range steps {
		if barriers {
			steps[i].Level = i
		} else if i > 0 {
			steps[i].After = []int{i - 1 - r.IntN(min(i, 3)), i - 1 - r.IntN(min(i, 10))}
		}
	}
	for a := range sizes {
		sizes[a] = 1 + r.Uint64N(1<<24)
		for k := range 4 {
			i := min(len(steps)-1, 5*a+k*r.IntN(8))
			steps[i].Uses = append(steps[i].Uses, a)
		}
	}
	return steps, sizes
}

func BenchmarkPlan(b *testing.B) {
	for name, barriers := range map[string]bool{"barriers": true, "lists": false} {
		b.Run(name, func(b *testing.B) {
			steps, sizes := large(barriers)
			for b.Loop() {
				plan(b, steps, sizes)
			}
		})
	}
}
