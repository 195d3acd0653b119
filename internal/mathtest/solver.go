package mathtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/solver"
)

// Solver checks factorizations, solutions and eigenvalues of random matrices.
func Solver(t *testing.T, dev *gpu.Device, lib *solver.Library) {
	t.Run("float32", func(t *testing.T) { solve[float32](t, dev, lib, 0x1p-18) })
	t.Run("float64", func(t *testing.T) { solve[float64](t, dev, lib, 0x1p-45) })
}

// A system is a matrix with right-hand sides, and the outputs of a solver.
type system[T solver.Element] struct {
	n, sides, stride int
	a, b             blas.Matrix[T]
	as, bs           []T
	info, pivots     gpu.Slice[int32]
	values           gpu.Slice[T]
}

// newSystem makes a random system. A symmetric matrix is positive definite.
func newSystem[T solver.Element](t testing.TB, dev *gpu.Device, r *rand.Rand, n, sides, pad int, symmetric bool) *system[T] {
	t.Helper()
	s := &system[T]{n: n, sides: sides, stride: n + pad, as: make([]T, n*(n+pad)), bs: make([]T, sides*n)}
	for i := range n {
		for j := range n {
			s.as[i*s.stride+j] = T(r.Float64()*2 - 1)
		}
	}
	if symmetric {
		for i := range n {
			for j := range i {
				s.as[j*s.stride+i] = s.as[i*s.stride+j]
			}
			s.as[i*s.stride+i] = T(n) + T(r.Float64())
		}
	}
	for i := range s.bs {
		s.bs[i] = T(r.Float64()*2 - 1)
	}
	s.a = blas.Matrix[T]{Rows: n, Cols: n, Stride: s.stride, Data: slice(t, dev, s.as)}
	s.b = blas.Matrix[T]{Rows: sides, Cols: n, Data: slice(t, dev, s.bs)}
	s.info, s.pivots, s.values = slice(t, dev, []int32{-1}), slice(t, dev, make([]int32, n)), slice(t, dev, make([]T, n))
	return s
}

// slice returns device memory with a copy of data. The memory is closed when the test ends.
func slice[T any](t testing.TB, dev *gpu.Device, data []T) gpu.Slice[T] {
	t.Helper()
	s, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, len(data))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	st := dev.Queue(0).NewStream()
	must(t, st.Do(s.Upload(data)))
	must(t, st.Wait(minute(t)))
	return s
}

// download waits for the stream's work and returns the elements.
func download[T any](t testing.TB, st *gpu.Stream, s gpu.Slice[T]) []T {
	t.Helper()
	data := make([]T, s.Len())
	must(t, st.Do(s.Download(data)))
	must(t, st.Wait(minute(t)))
	return data
}

// solved checks that info is 0 and that the right-hand sides have become solutions.
func (s *system[T]) solved(t testing.TB, st *gpu.Stream, eps float64) {
	t.Helper()
	if info := download(t, st, s.info)[0]; info != 0 {
		t.Fatalf("%d rows: info is %d", s.n, info)
	}
	x := download(t, st, s.b.Data)
	for k := range s.sides {
		for i := range s.n {
			sum, size := 0.0, 1.0
			for j := range s.n {
				f := float64(s.as[i*s.stride+j]) * float64(x[k*s.n+j])
				sum, size = sum+f, size+math.Abs(f)
			}
			if diff := math.Abs(sum - float64(s.bs[k*s.n+i])); !(diff <= eps*size*float64(s.n)) {
				t.Fatalf("%d rows: row %d of right-hand side %d is off by %g", s.n, i, k, diff)
			}
		}
	}
}

func solve[T solver.Element](t *testing.T, dev *gpu.Device, lib *solver.Library, eps float64) {
	r, st := rand.New(rand.NewPCG(5, 6)), dev.Queue(0).NewStream()
	for i, n := range []int{1, 2, 3, 7, 13, 31, 50, 67} {
		sides, pad := 1+i%4, i%3
		s := newSystem[T](t, dev, r, n, sides, pad, true)
		must(t, st.Do(solver.Cholesky(lib, s.a, s.info), solver.CholeskySolve(lib, s.a, s.b, s.info)))
		s.solved(t, st, eps)
		s = newSystem[T](t, dev, r, n, sides, pad, false)
		must(t, st.Do(solver.LU(lib, s.a, s.pivots, s.info), solver.LUSolve(lib, s.a, s.pivots, s.b, s.info)))
		s.solved(t, st, eps*64)
		s = newSystem[T](t, dev, r, n, 1, pad, true)
		must(t, st.Do(solver.Eigen(lib, s.a, s.values, true, s.info)))
		s.eigen(t, st, eps)
		only := newSystem[T](t, dev, r, n, 1, pad, true)
		must(t, st.Do(only.a.Data.Upload(s.as), solver.Eigen(lib, only.a, only.values, false, only.info)))
		want := download(t, st, s.values)
		for k, v := range download(t, st, only.values) {
			if math.Abs(float64(v-want[k])) > eps*float64(4*n) {
				t.Fatalf("%d rows: value %d is %v without vectors, and %v with them", n, k, v, want[k])
			}
		}
	}
	bad := newSystem[T](t, dev, r, 3, 1, 0, true)
	must(t, st.Do(bad.a.Data.Upload([]T{1, 0, 0, 0, -1, 0, 0, 0, 1}), solver.Cholesky(lib, bad.a, bad.info)))
	if info := download(t, st, bad.info)[0]; info != 2 {
		t.Errorf("Cholesky of a matrix that is not positive definite: info is %d; want 2", info)
	}
	must(t, st.Do(bad.a.Data.Upload([]T{1, 0, 0, 0, 0, 0, 0, 0, 1}), solver.LU(lib, bad.a, bad.pivots, bad.info)))
	if info := download(t, st, bad.info)[0]; info != 2 {
		t.Errorf("LU of a singular matrix: info is %d; want 2", info)
	}
}

// eigen checks eigenvalues and eigenvectors.
func (s *system[T]) eigen(t testing.TB, st *gpu.Stream, eps float64) {
	t.Helper()
	if info := download(t, st, s.info)[0]; info != 0 {
		t.Fatalf("%d rows: info is %d", s.n, info)
	}
	values, vectors := download(t, st, s.values), download(t, st, s.a.Data)
	for k, value := range values {
		if k > 0 && value < values[k-1] {
			t.Fatalf("%d rows: values %v are not in order", s.n, values)
		}
		length := 0.0
		for i := range s.n {
			v := float64(vectors[k*s.stride+i])
			length += v * v
			sum := 0.0
			for j := range s.n {
				sum += float64(s.as[i*s.stride+j]) * float64(vectors[k*s.stride+j])
			}
			if diff := math.Abs(sum - float64(value)*v); !(diff <= eps*float64(8*s.n)) {
				t.Fatalf("%d rows: vector %d is off by %g", s.n, k, diff)
			}
		}
		if !(math.Abs(length-1) <= eps*float64(s.n)) {
			t.Fatalf("%d rows: vector %d has a square of %g", s.n, k, length)
		}
	}
}

// SolverRecorded checks the solutions and eigenvalues of recordings that are executed several
// times, with and without a graph.
func SolverRecorded(t *testing.T, dev *gpu.Device, lib *solver.Library) {
	r, st := rand.New(rand.NewPCG(7, 8)), dev.Queue(0).NewStream()
	for _, mode := range modes {
		for _, spd := range []bool{true, false} {
			s := newSystem[float32](t, dev, r, 37, 2, 0, spd)
			rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode, InOrder: true})
			must(t, err)
			ops := []gpu.Op{solver.Cholesky(lib, s.a, s.info), solver.CholeskySolve(lib, s.a, s.b, s.info)}
			if !spd {
				ops = []gpu.Op{solver.LU(lib, s.a, s.pivots, s.info), solver.LUSolve(lib, s.a, s.pivots, s.b, s.info)}
			}
			for _, op := range ops {
				_, err := rec.Add(op)
				must(t, err)
			}
			must(t, rec.End())
			for range 3 {
				must(t, st.Do(s.a.Data.Upload(s.as), s.b.Data.Upload(s.bs), gpu.Execute(rec)))
				s.solved(t, st, 0x1p-13)
			}
			must(t, rec.Close())
		}
	}
	for _, mode := range modes {
		s := newSystem[float64](t, dev, r, 23, 1, 0, true)
		rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		must(t, err)
		_, err = rec.Add(solver.Eigen(lib, s.a, s.values, true, s.info))
		must(t, err)
		must(t, rec.End())
		for range 2 {
			must(t, st.Do(s.a.Data.Upload(s.as), gpu.Execute(rec)))
			s.eigen(t, st, 0x1p-45)
		}
		must(t, rec.Close())
	}
}

// SolverRefused checks that package solver refuses wrong arguments.
func SolverRefused(t *testing.T, dev *gpu.Device, lib *solver.Library) {
	r := rand.New(rand.NewPCG(9, 10))
	s := newSystem[float32](t, dev, r, 4, 2, 0, true)
	wide := s.a
	wide.Cols = 3
	batch := s.a
	batch.Batch = -1
	long := s.b
	long.Cols = 2
	for name, op := range map[string]gpu.Op{
		"no library":     solver.Cholesky(nil, s.a, s.info),
		"a zero library": solver.Cholesky(new(solver.Library), s.a, s.info),
		"not square":     solver.Cholesky(lib, wide, s.info),
		"transposed":     solver.LU(lib, s.a.T(), s.pivots, s.info),
		"no info":        solver.Cholesky(lib, s.a, gpu.Slice[int32]{}),
		"pivots":         solver.LU(lib, s.a, s.info, s.info),
		"sides":          solver.CholeskySolve(lib, s.a, long, s.info),
		"values":         solver.Eigen(lib, s.a, gpu.Slice[float32]{}, true, s.info),
		"batch":          solver.Cholesky(lib, batch, s.info),
		"short data":     solver.Cholesky(lib, blas.Matrix[float32]{Data: s.b.Data, Rows: 4, Cols: 4}, s.info),
		"b in a":         solver.CholeskySolve(lib, s.a, blas.Matrix[float32]{Data: s.a.Data.Slice(8, 16), Rows: 2, Cols: 4}, s.info),
		"b in the LU":    solver.LUSolve(lib, s.a, s.pivots, blas.Matrix[float32]{Data: s.a.Data.Slice(8, 16), Rows: 2, Cols: 4}, s.info),
		"info in pivots": solver.LU(lib, s.a, s.pivots, s.pivots.Slice(1, 2)),
		"values in a":    solver.Eigen(lib, s.a, s.a.Data.Slice(0, 4), true, s.info),
		"no function":    lib.Call("x", 0, nil),
	} {
		if err := dev.Queue(0).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, fmt.Sprint(err))
		}
	}
}
