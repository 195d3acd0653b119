package fft_test

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/fft"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

var must = testkit.Must

// shapes have sizes that are powers of two, primes, products, and 1.
var shapes = []fft.Shape{
	{Dims: []int{1}}, {Dims: []int{2}, Batch: 3}, {Dims: []int{7}}, {Dims: []int{16}}, {Dims: []int{30}, Batch: 2}, {Dims: []int{97}}, {Dims: []int{121}},
	{Dims: []int{1, 5}}, {Dims: []int{6, 1}}, {Dims: []int{5, 8}, Batch: 3}, {Dims: []int{4, 9}}, {Dims: []int{3, 4, 5}, Batch: 2}, {Dims: []int{2, 1, 7}},
}

// open returns a simulated device with the library.
func open(t *testing.T) (*gpu.Device, *fft.Library) {
	t.Helper()
	dev := testkit.OpenDevice(t, testkit.NewSim(t, simdriver.Config{}), 0, gpu.Options{Queues: 2})
	lib, err := fft.Open(dev, fft.Options{})
	must(t, err)
	return dev, lib
}

func alloc[T any](t *testing.T, dev *gpu.Device, n int) gpu.Slice[T] {
	t.Helper()
	s, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n)
	must(t, err)
	return s
}

// naive computes transforms by the definition.
func naive(x []complex128, s fft.Shape, sign float64) []complex128 {
	dims := append([]int{1, 1, 1}[len(s.Dims):], s.Dims...)
	n := s.Points()
	y := make([]complex128, len(x))
	for first := 0; first < len(x); first += n {
		for k := range n {
			k0, k1, k2 := k/dims[2]/dims[1], k/dims[2]%dims[1], k%dims[2]
			for j := range n {
				j0, j1, j2 := j/dims[2]/dims[1], j/dims[2]%dims[1], j%dims[2]
				turns := float64(k0*j0)/float64(dims[0]) + float64(k1*j1)/float64(dims[1]) + float64(k2*j2)/float64(dims[2])
				y[first+k] += x[first+j] * cmplx.Rect(1, sign*2*math.Pi*turns)
			}
		}
	}
	return y
}

// near checks that got differs from want by at most eps times the largest magnitude in want, or by
// at most eps if all magnitudes are below 1.
func near[T fft.Complex](t *testing.T, what string, got []T, want []complex128, eps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	most := 1.0
	for _, w := range want {
		most = max(most, cmplx.Abs(w))
	}
	for i, w := range want {
		if cmplx.Abs(complex128(got[i])-w) > eps*most || cmplx.IsNaN(complex128(got[i])) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

func batch(s fft.Shape) int { return max(s.Batch, 1) }

func TestComplex(t *testing.T) {
	t.Run("complex64", func(t *testing.T) { testComplex[complex64](t, 1e-6) })
	t.Run("complex128", func(t *testing.T) { testComplex[complex128](t, 1e-12) })
}

func testComplex[T fft.Complex](t *testing.T, eps float64) {
	dev, lib := open(t)
	st := dev.Queue(0).NewStream()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range shapes {
		what := fmt.Sprint(s)
		p, err := fft.NewPlan[T](lib, s)
		must(t, err)
		n := s.Points() * batch(s)
		in, wide := make([]T, n), make([]complex128, n)
		for i := range in {
			in[i] = T(complex(rng.NormFloat64(), rng.NormFloat64()))
			wide[i] = complex128(in[i])
		}
		x, y := alloc[T](t, dev, n), alloc[T](t, dev, n)
		forward, inverse, back := make([]T, n), make([]T, n), make([]T, n)
		must(t, st.Do(
			x.Upload(in), p.Forward(y, x), y.Download(forward),
			p.Inverse(y, x), y.Download(inverse),
			p.Forward(x, x), p.Inverse(x, x), x.Download(back)))
		must(t, st.Wait(testkit.Within(t, time.Minute)))
		near(t, what+" forward", forward, naive(wide, s, -1), eps)
		near(t, what+" inverse", inverse, naive(wide, s, +1), eps)
		for i := range wide {
			wide[i] *= complex(float64(s.Points()), 0)
		}
		near(t, what+" there and back", back, wide, eps)
		must(t, p.Close())
		must(t, x.Close())
		must(t, y.Close())
	}
	must(t, lib.Close())
	must(t, dev.Close())
}

func TestReal(t *testing.T) {
	for _, padded := range []bool{false, true} {
		t.Run(fmt.Sprintf("float32 padded=%v", padded), func(t *testing.T) { testReal[float32, complex64](t, padded, 1e-6) })
		t.Run(fmt.Sprintf("float64 padded=%v", padded), func(t *testing.T) { testReal[float64, complex128](t, padded, 1e-12) })
	}
}

func testReal[R fft.Real, C fft.Complex](t *testing.T, padded bool, eps float64) {
	dev, lib := open(t)
	st := dev.Queue(0).NewStream()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, s := range shapes {
		what := fmt.Sprint(s)
		s.Padded = padded
		p, err := fft.NewRealPlan[R, C](lib, s)
		must(t, err)
		n := s.Dims[len(s.Dims)-1]
		rows, half, pitch := s.Points()/n*batch(s), n/2+1, n
		if padded {
			pitch = 2 * half
		}
		in, wide := make([]R, rows*pitch), make([]complex128, rows*n)
		for i := range wide {
			v := R(rng.NormFloat64())
			in[i/n*pitch+i%n], wide[i] = v, complex(float64(v), 0)
		}
		full := naive(wide, s, -1)
		var want []complex128
		for r := range rows {
			want = append(want, full[r*n:][:half]...)
		}
		spectrum := alloc[C](t, dev, rows*half)
		numbers, err := gpu.AllocSlice[R](dev, gpu.DeviceMem, rows*pitch)
		must(t, err)
		forward, back := make([]C, rows*half), make([]R, rows*pitch)
		must(t, st.Do(numbers.Upload(in), p.Forward(spectrum, numbers), spectrum.Download(forward), numbers.Fill(0),
			p.Inverse(numbers, spectrum), numbers.Download(back), spectrum.Download(make([]C, rows*half))))
		if padded { // a padded plan also transforms in place
			shared, err := gpu.SliceOf[C](numbers.Range())
			must(t, err)
			forward, back = make([]C, rows*half), make([]R, rows*pitch)
			must(t, st.Do(numbers.Upload(in), p.Forward(shared, numbers), shared.Download(forward), p.Inverse(numbers, shared), numbers.Download(back)))
		}
		must(t, st.Wait(testkit.Within(t, time.Minute)))
		near(t, what+" forward", forward, want, eps)
		got := make([]complex128, rows*n)
		for i := range got {
			got[i] = complex(float64(back[i/n*pitch+i%n])/float64(s.Points()), 0)
		}
		near(t, what+" there and back", got, wide, eps)
		must(t, p.Close())
		must(t, spectrum.Close())
		must(t, numbers.Close())
	}
	must(t, lib.Close())
	must(t, dev.Close())
}

// TestInverseUsesSource checks that on a simulated device a transform to real numbers leaves NaN in
// its source.
func TestInverseUsesSource(t *testing.T) {
	dev, lib := open(t)
	p, err := fft.NewRealPlan[float32, complex64](lib, fft.Shape{Dims: []int{8}})
	must(t, err)
	x, y := alloc[float32](t, dev, 8), alloc[complex64](t, dev, 5)
	st, got := dev.Queue(0).NewStream(), make([]complex64, 5)
	must(t, st.Do(y.Fill(1), p.Inverse(x, y), y.Download(got)))
	must(t, st.Wait(testkit.Within(t, time.Minute)))
	for _, v := range got {
		if !cmplx.IsNaN(complex128(v)) {
			t.Fatalf("the source has %v", got)
		}
	}
	must(t, dev.Close())
}

// TestRecorded checks a recording of two transforms that is executed twice, on different memory.
func TestRecorded(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.GraphMode, gpu.StreamMode} {
		dev, lib := open(t)
		s := fft.Shape{Dims: []int{4, 3}}
		p, err := fft.NewPlan[complex128](lib, s)
		must(t, err)
		x, y := alloc[complex128](t, dev, 24), alloc[complex128](t, dev, 24)
		c := testkit.CommandBuffer(t, dev, mode)
		from, err := gpu.BindingSlice[complex128](c, 12)
		must(t, err)
		to, err := gpu.BindingSlice[complex128](c, 12)
		must(t, err)
		a := testkit.Recorded(t)(c.Add(p.Forward(to, from)))
		testkit.Recorded(t)(c.Add(p.Inverse(from, to), a))
		must(t, c.End())
		in := make([]complex128, 24)
		for i := range in {
			in[i] = complex(float64(i%5), float64(i%7))
		}
		st, forward, back := dev.Queue(0).NewStream(), make([]complex128, 24), make([]complex128, 24)
		must(t, st.Do(x.Upload(in)))
		for i := range 2 {
			must(t, st.Do(gpu.Execute(c, x.Slice(12*i, 12*i+12).Range(), y.Slice(12-12*i, 24-12*i).Range())))
		}
		must(t, st.Do(y.Download(forward), x.Download(back)))
		must(t, st.Wait(testkit.Within(t, time.Minute)))
		near(t, "forward", append(forward[12:], forward[:12]...), naive(in, fft.Shape{Dims: s.Dims, Batch: 2}, -1), 1e-12)
		for i := range in {
			in[i] *= 12
		}
		near(t, "there and back", back, in, 1e-12)
		must(t, c.Close())
		must(t, dev.Close())
	}
}

// TestQueues checks a plan that is used in two queues, ordered by points.
func TestQueues(t *testing.T) {
	dev, lib := open(t)
	p, err := fft.NewPlan[complex64](lib, fft.Shape{Dims: []int{1 << 10}})
	must(t, err)
	x := alloc[complex64](t, dev, 1<<10)
	done := new(gpu.Semaphore)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{done.At(1)}}, x.Fill(1)))
	must(t, dev.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{done.At(1)}, Signal: []gpu.Point{done.At(2)}}, p.Forward(x, x)))
	must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{done.At(2)}, Signal: []gpu.Point{done.At(3)}}, p.Inverse(x, x)))
	got := make([]complex64, 1<<10)
	must(t, dev.Queue(1).Submit(gpu.Order{Wait: []gpu.Point{done.At(3)}, Signal: []gpu.Point{done.At(4)}}, x.Download(got)))
	must(t, done.Wait(testkit.Within(t, time.Minute), 4))
	near(t, "there and back", got, slices.Repeat([]complex128{1 << 10}, 1<<10), 1e-6)
	must(t, dev.Close())
}

func TestMistakes(t *testing.T) {
	dev, lib := open(t)
	for _, s := range []fft.Shape{{}, {Dims: []int{1, 2, 3, 4}}, {Dims: []int{0}}, {Dims: []int{4, -1}}, {Dims: []int{4}, Batch: -1}, {Dims: []int{1 << 40, 1 << 40}}, {Dims: []int{4}, Padded: true}} {
		if _, err := fft.NewPlan[complex64](lib, s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("a plan for %v: %v", s, err)
		}
	}
	if _, err := fft.NewRealPlan[float32, complex128](lib, fft.Shape{Dims: []int{4}}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("float32 with complex128: %v", err)
	}
	if _, err := fft.NewPlan[complex64](new(fft.Library), fft.Shape{Dims: []int{4}}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("a zero library: %v", err)
	}
	if _, err := fft.NewCustomPlan(lib, func(*cufft.Library, cufft.Handle, []uint64) error { return nil }); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a custom plan on a simulated device: %v", err)
	}
	p, err := fft.NewPlan[complex64](lib, fft.Shape{Dims: []int{4}, Batch: 2})
	must(t, err)
	q, err := fft.NewRealPlan[float32, complex64](lib, fft.Shape{Dims: []int{4}})
	must(t, err)
	x, r := alloc[complex64](t, dev, 16), alloc[float32](t, dev, 32)
	half, err := gpu.SliceOf[complex64](r.Slice(1, 17).Range())
	must(t, err)
	same, err := gpu.SliceOf[complex64](r.Slice(0, 6).Range())
	must(t, err)
	do := func(op gpu.Op) error {
		st := dev.Queue(0).NewStream()
		if err := st.Do(op); err != nil {
			return err
		}
		return st.Wait(testkit.Within(t, time.Minute))
	}
	for what, op := range map[string]gpu.Op{
		"no plan":                        (*fft.Plan[complex64])(nil).Forward(x, x),
		"no plan, inverse":               (*fft.Plan[complex64])(nil).Inverse(x, x),
		"no real plan":                   (*fft.RealPlan[float32, complex64])(nil).Forward(x, r),
		"no real plan, inverse":          (*fft.RealPlan[float32, complex64])(nil).Inverse(r, x),
		"no custom plan":                 (*fft.CustomPlan)(nil).Call("", nil),
		"a zero plan":                    new(fft.Plan[complex64]).Forward(x, x),
		"a zero real plan":               new(fft.RealPlan[float32, complex64]).Inverse(r, x),
		"too long":                       p.Forward(x.Slice(0, 8), x.Slice(0, 9)),
		"too short":                      p.Inverse(x.Slice(0, 7), x.Slice(0, 8)),
		"overlapping":                    p.Forward(x.Slice(0, 8), x.Slice(4, 12)),
		"no memory":                      p.Forward(gpu.Slice[complex64]{}, x.Slice(0, 8)),
		"not aligned":                    p.Forward(half, half),
		"reals that are short":           q.Forward(x.Slice(0, 3), r.Slice(0, 3)),
		"a long spectrum":                q.Inverse(r.Slice(0, 4), x.Slice(0, 4)),
		"reals in place without padding": q.Forward(same, r.Slice(0, 4)),
		"reals that are not aligned":     q.Forward(x.Slice(0, 3), r.Slice(1, 5)),
	} {
		if err := do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c := testkit.CommandBuffer(t, dev, gpu.StreamMode)
	from, err := gpu.BindingSlice[float32](c, 4)
	must(t, err)
	to, err := gpu.BindingSlice[complex64](c, 3)
	must(t, err)
	testkit.Recorded(t)(c.Add(q.Forward(to, from)))
	must(t, c.End())
	if err := do(gpu.Execute(c, r.Slice(0, 4).Range(), same.Range())); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("reals in place without padding, in a recording: %v", err)
	}
	if err := do(gpu.Execute(c, r.Slice(2, 6).Range(), same.Range())); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "fft: forward: dst and src overlap") {
		t.Errorf("overlapping, in a recording: %v", err)
	}
	must(t, c.Close())
	graph := testkit.CommandBuffer(t, dev, gpu.GraphMode)
	testkit.Recorded(t)(graph.Add(p.Forward(x.Slice(0, 8), x.Slice(0, 8))))
	must(t, graph.End())
	must(t, do(gpu.Execute(graph)))
	must(t, p.Close())
	must(t, p.Close())
	must(t, errors.Join((*fft.Plan[complex64])(nil).Close(), (*fft.RealPlan[float32, complex64])(nil).Close(), (*fft.CustomPlan)(nil).Close(), new(fft.CustomPlan).Close()))
	if err := do(p.Forward(x.Slice(0, 8), x.Slice(0, 8))); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed plan: %v", err)
	}
	if err := do(gpu.Execute(graph)); !errors.Is(err, gpu.ErrClosed) || errors.Is(err, gpu.ErrLost) {
		t.Errorf("a recording with a closed plan: %v", err)
	}
	must(t, graph.Close())
	other, err := fft.Open(dev, fft.Options{})
	must(t, err)
	must(t, lib.Close())
	if err := do(q.Forward(x.Slice(0, 3), r.Slice(0, 4))); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a plan of a closed library: %v", err)
	}
	if _, err := fft.NewPlan[complex64](lib, fft.Shape{Dims: []int{4}}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a plan by a closed library: %v", err)
	}
	must(t, dev.Close())
	if _, err := fft.NewPlan[complex64](other, fft.Shape{Dims: []int{4}}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a plan for a closed device: %v", err)
	}
	if _, err := fft.Open(dev, fft.Options{}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed device: %v", err)
	}
	if _, err := fft.Open(nil, fft.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
}
