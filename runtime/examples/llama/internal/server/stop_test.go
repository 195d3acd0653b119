package server

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStopper checks random texts in random parts. Once a part completes a stop string, the result
// must end before the leftmost stop string so far.
func TestStopper(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "ä"}[r.IntN(3)])
		}
		return b.String()
	}
	for range 20000 {
		s := stopper{}
		for range r.IntN(4) {
			s.stops = append(s.stops, random(1+r.IntN(4)))
		}
		var whole, got strings.Builder
		want, stopped, ended := "", false, false
		for range 10 {
			part := random(r.IntN(4))
			whole.WriteString(part)
			for _, stop := range s.stops {
				if i := strings.Index(whole.String(), stop); i >= 0 && (!stopped || i < len(want)) {
					want, stopped = whole.String()[:i], true
				}
			}
			var pass string
			pass, ended = s.next(part)
			got.WriteString(pass)
			if ended != stopped {
				t.Fatalf("stops %q in %q: stopped %t", s.stops, whole.String(), ended)
			}
			if ended {
				break
			}
		}
		if !stopped {
			want = whole.String()
			got.WriteString(s.held)
		}
		if got.String() != want {
			t.Fatalf("stops %q in %q: %q, want %q", s.stops, whole.String(), got.String(), want)
		}
	}
}
