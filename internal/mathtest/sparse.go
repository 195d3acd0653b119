package mathtest

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/sparse"
)

// Sparse checks products of random sparse matrices and vectors, in streams and in recordings.
func Sparse(t *testing.T, dev *gpu.Device, lib *sparse.Library) {
	t.Run("float32", func(t *testing.T) { sparseProducts[float32](t, dev, lib, 0x1p-21) })
	t.Run("float64", func(t *testing.T) { sparseProducts[float64](t, dev, lib, 0x1p-48) })
}

// sparseMatrix makes a random matrix with at least one element. The second result has all numbers
// of the matrix, by row and column.
func sparseMatrix[T sparse.Element](t testing.TB, dev *gpu.Device, r *rand.Rand, rows, cols int) (sparse.Matrix[T], [][]float64) {
	t.Helper()
	full := make([][]float64, rows)
	starts, columns, values := []int32{0}, []int32(nil), []T(nil)
	for i := range full {
		full[i] = make([]float64, cols)
		for j := range cols {
			if r.IntN(4) == 0 || i == rows-1 && j == cols-1 && len(values) == 0 {
				v := T(r.Float64()*2 - 1)
				full[i][j] = float64(v)
				columns, values = append(columns, int32(j)), append(values, v)
			}
		}
		starts = append(starts, int32(len(values)))
	}
	return sparse.Matrix[T]{Rows: rows, Cols: cols, RowStarts: slice(t, dev, starts), Columns: slice(t, dev, columns), Values: slice(t, dev, values)}, full
}

func sparseProducts[T sparse.Element](t *testing.T, dev *gpu.Device, lib *sparse.Library, eps float64) {
	r, st := rand.New(rand.NewPCG(11, 12)), dev.Queue(0).NewStream()
	for i := range 24 {
		rows, cols := 1+r.IntN(70), 1+r.IntN(70)
		a, full := sparseMatrix[T](t, dev, r, rows, cols)
		in, out := cols, rows
		if i%3 == 2 {
			a, in, out = a.T(), rows, cols
		}
		xs, ys, o := make([]T, in), make([]T, out), sparse.VecOptions{}
		for j := range xs {
			xs[j] = T(r.Float64())
		}
		for j := range ys {
			ys[j] = T(r.Float64())
		}
		alpha := 1.0
		if i%2 == 1 {
			alpha, o = -0.5, sparse.VecOptions{Alpha: -0.5, Beta: 2}
		}
		x, y := slice(t, dev, xs), slice(t, dev, ys)
		op := sparse.MatVecWith(lib, y, a, x, o)
		check := func(got []T) {
			t.Helper()
			for row, v := range got {
				sum, size := 0.0, 0.0
				for k := range in {
					f := full[min(row, rows-1)][min(k, cols-1)]
					if a.Transposed {
						f = full[k][row]
					}
					sum, size = sum+f*float64(xs[k]), size+math.Abs(f*float64(xs[k]))
				}
				want := alpha*sum + o.Beta*float64(ys[row])
				if !(math.Abs(float64(v)-want) <= eps*(size+math.Abs(want)+1)) {
					t.Fatalf("case %d, %d × %d: element %d is %v; want %v", i, out, in, row, v, want)
				}
			}
		}
		must(t, st.Do(op))
		check(download(t, st, y))
		if i%4 != 0 {
			continue
		}
		for _, mode := range modes {
			rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
			must(t, err)
			_, err = rec.Add(op)
			must(t, err)
			must(t, rec.End())
			for range 2 {
				must(t, st.Do(y.Upload(ys), gpu.Execute(rec)))
				check(download(t, st, y))
			}
			must(t, rec.Close())
		}
	}
}

// SparseRefused checks that package sparse refuses wrong arguments.
func SparseRefused(t *testing.T, dev *gpu.Device, lib *sparse.Library) {
	r := rand.New(rand.NewPCG(13, 14))
	a, _ := sparseMatrix[float32](t, dev, r, 5, 7)
	x, y := slice(t, dev, make([]float32, 7)), slice(t, dev, make([]float32, 5))
	starts, columns, values := a, a, a
	starts.Rows++
	columns.Columns = columns.Columns.Slice(0, 1)
	values.Values, values.Columns = gpu.Slice[float32]{}, gpu.Slice[int32]{}
	for name, op := range map[string]gpu.Op{
		"no library":     sparse.MatVec(nil, y, a, x),
		"a zero library": sparse.MatVec(new(sparse.Library), y, a, x),
		"no matrix":      sparse.MatVec(lib, y, sparse.Matrix[float32]{}, x),
		"row starts":     sparse.MatVec(lib, y, starts, x),
		"columns":        sparse.MatVec(lib, y, columns, x),
		"no values":      sparse.MatVec(lib, y, values, x),
		"vectors":        sparse.MatVec(lib, x, a, y),
		"y in x":         sparse.MatVec(lib, x.Slice(2, 7), a, x),
		"no function":    lib.Call("x", 0, nil),
	} {
		if err := dev.Queue(0).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
