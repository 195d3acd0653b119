package libcall

import (
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestOverlaps compares Check with a search through all bytes of two random operands. Check must
// find all overlaps if the rows of both operands are at the same distances, or if one has no gaps.
// It must never report operands that are apart.
func TestOverlaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const (
		matrices  = iota // one matrix
		stacks           // matrices that follow one another
		heads            // matrices side by side
		packed           // matrices without gaps, with gaps between them
		oneWhole         // one of these, and an operand without gaps
		different        // all strides are different
		kinds
	)
	const pairs = 60000
	var found, missed [kinds]int
	for i := range pairs {
		kind := i % kinds
		var o [2]Operand
		var at [2]driver.Ptr
		var used [2][600]bool
		stride := 12 + r.Uint64N(12)
		for k := range o {
			x := Operand{Name: "operand", Written: k == 0, Align: 1, Batch: 1 + r.Uint64N(3), Rows: 1 + r.Uint64N(4), Width: 1 + r.Uint64N(4), Stride: stride}
			layout := kind
			if kind == oneWhole && k == 0 {
				layout = r.IntN(oneWhole)
			}
			switch layout {
			case matrices:
				x.Batch, x.Width, x.BatchStride = 1, 1+r.Uint64N(stride), r.Uint64N(30)
			case stacks:
				x.Width, x.BatchStride = 1+r.Uint64N(stride), x.Rows*stride
			case heads:
				x.BatchStride = x.Width
			case packed:
				x.Width = 1 + r.Uint64N(3)
				x.Stride, x.BatchStride = x.Width, stride
			case oneWhole:
				x.Batch, x.Rows, x.Width = 1, 1, 1+r.Uint64N(40)
			case different: // rows of operands that are only read may overlap
				x.Stride, x.BatchStride = x.Width+r.Uint64N(12), r.Uint64N(30)
			}
			o[k], at[k] = x, driver.Ptr(r.Uint64N(150))
			for i := range x.Batch {
				for row := range x.Rows {
					for b := range x.Width {
						used[k][uint64(at[k])+i*x.BatchStride+row*x.Stride+b] = true
					}
				}
			}
			o[k].Range.Offset = uint64(at[k])
		}
		want := false
		for i := range used[0] {
			want = want || used[0][i] && used[1][i]
		}
		got := Check(o[:], nil) != nil
		if got && !want || want && !got && kind != different {
			t.Fatalf("%+v: overlap is %v; want %v", o, got, want)
		}
		if got {
			found[kind]++
		} else if want {
			missed[kind]++
		}
		o[0], o[1], at[0], at[1] = o[1], o[0], at[1], at[0]
		if swapped := Check(o[:], nil) != nil; swapped != got && kind != different {
			t.Fatalf("in the other order, %+v: overlap is %v; want %v", o, swapped, got)
		}
		if err := Check(o[:], at[:]); err != nil {
			t.Fatalf("operands of one buffer, compared by address: %v", err)
		}
	}
	for kind, n := range found {
		if n < pairs/kinds/10 || n > pairs/kinds*9/10 {
			t.Errorf("kind %d: %d of %d pairs overlap", kind, n, pairs/kinds)
		}
	}
	t.Logf("of different strides, %d overlaps were found and %d missed", found[different], missed[different])
}

// TestOverlapOfNothing checks that no bytes overlap nothing, also in the middle of other bytes.
func TestOverlapOfNothing(t *testing.T) {
	if Overlap(0, 4, 2, 0) || Overlap(2, 0, 0, 4) || Overlap(2, 0, 2, 0) || !Overlap(0, 4, 2, 1) {
		t.Error("Overlap is wrong")
	}
}
