//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/solver"
	"github.com/puregpu/puregpu/runtime/sparse"
)

// TestLinearTorch writes products, solutions and eigenvalues that testdata/compare.py checks.
func TestLinearTorch(t *testing.T) {
	if os.Getenv("PUREGPU_MATH_OUT") == "" {
		t.Skip("PUREGPU_MATH_OUT is not set")
	}
	dev, lib := openBLAS(t)
	rec := record(t, "linear")
	recordGemm(t, rec, dev, lib, f64, f64, "float64", 1e-13, 1)
	recordGemm(t, rec, dev, lib, f32, f32, "float32", 1e-5, 1)
	recordGemm(t, rec, dev, lib, f16, f16, "float16", 2e-3, 1)
	recordGemm(t, rec, dev, lib, bf16, bf16, "bfloat16", 1e-2, 1)
	if dev.Info().Major >= 9 {
		recordGemm(t, rec, dev, lib, bf16, e4m3, "float8_e4m3fn", 1e-2, 16)
	}
	recordSparse[float32](t, rec, dev, 1e-5)
	recordSparse[float64](t, rec, dev, 1e-13)
	recordSolver[float32](t, rec, dev, 1e-4)
	recordSolver[float64](t, rec, dev, 1e-11)
}

// all returns elements as an array of float64, a type that all programs that read the files have.
func all[T blas.Element](name string, e element[T], data []T, shape ...int) array {
	wide := make([]float64, len(data))
	for i, x := range data {
		wide[i] = e.from(x)
	}
	return arrayOf(name, wide, shape...)
}

// recordGemm records products. If multiple is above 1, the sizes are multiples of it.
func recordGemm[C, A blas.Element](t *testing.T, rec *recorder, dev *gpu.Device, lib *blas.Library, c element[C], a element[A], name string, eps float64, multiple int) {
	t.Helper()
	r, st := rand.New(rand.NewPCG(21, 22)), dev.Queue(0).NewStream()
	for _, size := range [][3]int{{1, 1, 1}, {17, 33, 5}, {129, 67, 511}, {1000, 999, 1001}} {
		m, n, k := size[0], size[1], size[2]
		if multiple > 1 {
			m, n, k = m*multiple, n*multiple, k*multiple
		}
		x, y := make([]A, m*k), make([]A, n*k)
		for _, s := range [][]A{x, y} {
			for i := range s {
				s[i] = a.to(r.NormFloat64())
			}
		}
		z := blas.Matrix[C]{Rows: m, Cols: n, Data: slice(t, dev, make([]C, m*n))}
		must(t, st.Do(blas.Gemm(lib, z, blas.Matrix[A]{Rows: m, Cols: k, Data: slice(t, dev, x)}, blas.Matrix[A]{Rows: n, Cols: k, Data: slice(t, dev, y)}.T())))
		rec.add("gemm", map[string]any{"eps": eps, "type": name}, all("a", a, x, m, k), all("b", a, y, n, k), all("c", c, download(t, st, z.Data), m, n))
	}
}

func recordSparse[T sparse.Element](t *testing.T, rec *recorder, dev *gpu.Device, eps float64) {
	t.Helper()
	lib, err := sparse.Open(dev, sparse.Options{})
	has(t, err)
	defer lib.Close()
	r, st := rand.New(rand.NewPCG(23, 24)), dev.Queue(0).NewStream()
	for _, size := range [][2]int{{1, 1}, {7, 13}, {501, 333}} {
		a, full := sparseMatrix[T](t, dev, r, size[0], size[1])
		flat, xs := []float64(nil), make([]T, size[1])
		for _, row := range full {
			flat = append(flat, row...)
		}
		for i := range xs {
			xs[i] = T(r.NormFloat64())
		}
		y := slice(t, dev, make([]T, size[0]))
		must(t, st.Do(sparse.MatVec(lib, y, a, slice(t, dev, xs))))
		rec.add("sparse", map[string]any{"eps": eps}, arrayOf("a", flat, size[0], size[1]), arrayOf("x", xs, size[1]), arrayOf("y", download(t, st, y), size[0]))
	}
}

func recordSolver[T solver.Element](t *testing.T, rec *recorder, dev *gpu.Device, eps float64) {
	t.Helper()
	lib, err := solver.Open(dev, solver.Options{})
	has(t, err)
	defer lib.Close()
	r, st := rand.New(rand.NewPCG(25, 26)), dev.Queue(0).NewStream()
	for _, n := range []int{1, 5, 33, 301} {
		s := newSystem[T](t, dev, r, n, 3, 0, true)
		must(t, st.Do(solver.Cholesky(lib, s.a, s.info), solver.CholeskySolve(lib, s.a, s.b, s.info)))
		byCholesky := download(t, st, s.b.Data)
		must(t, st.Do(s.a.Data.Upload(s.as), s.b.Data.Upload(s.bs), solver.LU(lib, s.a, s.pivots, s.info), solver.LUSolve(lib, s.a, s.pivots, s.b, s.info)))
		byLU := download(t, st, s.b.Data)
		must(t, st.Do(s.a.Data.Upload(s.as), solver.Eigen(lib, s.a, s.values, false, s.info)))
		rec.add("solver", map[string]any{"eps": eps}, arrayOf("a", s.as, n, n), arrayOf("b", s.bs, 3, n), arrayOf("cholesky", byCholesky, 3, n),
			arrayOf("lu", byLU, 3, n), arrayOf("values", download(t, st, s.values), n))
	}
}
