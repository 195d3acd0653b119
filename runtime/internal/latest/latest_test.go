package latest_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/internal/latest"
)

// TestKeepsWhatIsUsed sets many keys. The map must know the last ones and the one that is used all
// the time, and must forget the first ones.
func TestKeepsWhatIsUsed(t *testing.T) {
	for _, keep := range []int{0, 1, 100} {
		m := latest.Map[int, int]{Keep: keep}
		if keep == 0 {
			keep = latest.Default
		}
		m.Set(-1, 7)
		for i := range 5 * keep {
			m.Set(i, i*i)
			if v, ok := m.Of(-1); v != 7 || !ok {
				t.Fatalf("keep %d: after %d keys, a used key has %d, %v", keep, i+1, v, ok)
			}
		}
		for i := 4*keep + 1; i < 5*keep; i++ {
			if v, ok := m.Of(i); v != i*i || !ok {
				t.Fatalf("keep %d: key %d of %d has %d, %v", keep, i, 5*keep, v, ok)
			}
		}
		if v, ok := m.Of(0); keep > 1 && (v != 0 || ok) {
			t.Errorf("keep %d: the first key has %d, %v", keep, v, ok)
		}
	}
}
