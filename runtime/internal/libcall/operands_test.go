package libcall

import (
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestOverlaps compares Apart with a search through all bytes of two random operands.
func TestOverlaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 20000 {
		var o [2]Operand
		var at [2]driver.Ptr
		var used [2][400]bool
		for k := range o {
			x := Operand{Name: "operand", Written: k == 0, Batch: 1 + r.Uint64N(3), Rows: 1 + r.Uint64N(3), Width: 1 + r.Uint64N(4)}
			x.Stride = x.Width + r.Uint64N(12)
			x.BatchStride = (x.Rows-1)*x.Stride + x.Width + r.Uint64N(12)
			if k == 1 { // rows of operands that are only read may overlap, and the matrices may interlock
				x.BatchStride = r.Uint64N(30)
			}
			o[k], at[k] = x, driver.Ptr(r.Uint64N(100))
			for i := range x.Batch {
				for row := range x.Rows {
					for b := range x.Width {
						used[k][uint64(at[k])+i*x.BatchStride+row*x.Stride+b] = true
					}
				}
			}
			x.Range.Offset = uint64(at[k])
			o[k].Range = x.Range
		}
		want := false
		for i := range used[0] {
			want = want || used[0][i] && used[1][i]
		}
		if want {
			found++
		}
		if got := Apart(o[:], nil) != nil; got != want {
			t.Fatalf("%+v: overlap is %v; want %v", o, got, want)
		}
		o[0], o[1], at[0], at[1] = o[1], o[0], at[1], at[0]
		if got := Apart(o[:], nil) != nil; got != want {
			t.Fatalf("in the other order, %+v: overlap is %v; want %v", o, got, want)
		}
		if err := Apart(o[:], at[:]); err != nil {
			t.Fatalf("operands of one buffer, compared by address: %v", err)
		}
	}
	if found < 1000 || found > 19000 {
		t.Errorf("%d of 20000 pairs overlap", found)
	}
}
