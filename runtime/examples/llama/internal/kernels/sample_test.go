package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPhilox(t *testing.T) {
	// The first known answer of Random123's test vectors: 6627e8d5 e169c58d …
	if got, want := random64(0, 0), uint64(0xe169c58d_6627e8d5); got != want {
		t.Errorf("random bits of key 0 and counter 0: %#x, want %#x", got, want)
	}
}

func randomLogits(r *rand.Rand, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(3 * r.NormFloat64())
	}
	return list
}

func TestGreedy(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1, 3, 2, 3}, 1},
		{[]float32{-5, -4, nan, -4}, 1},
		{[]float32{nan, nan}, 0},
		{[]float32{1, float32(math.Inf(1)), 2}, 1},
	} {
		for _, s := range []Sampling{{}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.001}} {
			if s.Temperature > 0 && c.want == 1 && len(c.logits) == 4 {
				continue // the choice among equals is random
			}
			if got := choose(c.logits, s, 5); got != c.want {
				t.Errorf("%v, %+v: token %d, want %d", c.logits, s, got, c.want)
			}
		}
	}
}

// TestFrequencies draws many tokens, and compares their frequencies with the probabilities that
// follow from the settings.
func TestFrequencies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := randomLogits(r, 40)
	for _, s := range []Sampling{
		{Temperature: 1, TopP: 1},
		{Temperature: 0.5, TopP: 1},
		{Temperature: 2, TopP: 1, TopK: 7},
		{Temperature: 1.3, TopP: 0.8},
		{Temperature: 1.5, TopP: 0.7, TopK: 20},
		{Temperature: 1, TopP: 0},
	} {
		// By the definitions: sort, cut, and divide by the sum.
		order := make([]int, len(logits))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, float64(logits[b]-logits[a]))) })
		if s.TopK > 0 {
			order = order[:s.TopK]
		}
		p, sum := make([]float64, len(logits)), 0.
		for _, i := range order {
			p[i] = math.Exp(float64(logits[i]) / float64(s.Temperature))
			sum += p[i]
		}
		kept := 0.
		for _, i := range order {
			if kept >= float64(s.TopP)*sum && kept > 0 {
				p[i] = 0
			}
			kept += p[i]
		}
		const n = 40000
		counts := make([]int, len(logits))
		for i := range n {
			s.Seed = uint64(i % 200)
			counts[choose(logits, s, int32(i/200))]++
		}
		for i, count := range counts {
			want := n * p[i] / kept
			if p[i] == 0 && count > 0 || math.Abs(float64(count)-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("%+v: token %d was chosen %d times of %d, want about %.0f", s, i, count, n, want)
			}
		}
	}
}
