//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/runtime/fft"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// fftShapes have sizes for each of cuFFT's algorithms: powers of two, products of other small
// primes, and sizes with a large prime factor.
var fftShapes = []fft.Shape{
	{Dims: []int{1}}, {Dims: []int{2}, Batch: 3}, {Dims: []int{1024}, Batch: 5}, {Dims: []int{1000}, Batch: 2}, {Dims: []int{1009}}, {Dims: []int{127 * 13}},
	{Dims: []int{1 << 16}}, {Dims: []int{3, 5}}, {Dims: []int{33, 70}, Batch: 3}, {Dims: []int{128, 131}}, {Dims: []int{7, 9, 11}, Batch: 2}, {Dims: []int{16, 32, 64}}, {Dims: []int{1, 1, 5}},
}

// TestFFT checks that transforms on the GPU have the same results as on the simulated device.
func TestFFT(t *testing.T) {
	real, simulated := openBoth(t)
	lib, err := fft.Open(real, fft.Options{})
	has(t, err)
	sim, err := fft.Open(simulated, fft.Options{})
	must(t, err)
	r := record(t, "fft")
	for _, s := range fftShapes {
		testComplexFFT[complex64](t, r, real, simulated, lib, sim, s, 1e-5)
		testComplexFFT[complex128](t, r, real, simulated, lib, sim, s, 1e-13)
		for _, s.Padded = range []bool{false, true} {
			testRealFFT[float32, complex64](t, r, real, simulated, lib, sim, s, 1e-5)
			testRealFFT[float64, complex128](t, r, real, simulated, lib, sim, s, 1e-13)
		}
	}
	must(t, lib.Close())
	must(t, sim.Close())
}

func testComplexFFT[T fft.Complex](t *testing.T, r *recorder, real, simulated *gpu.Device, lib, sim *fft.Library, s fft.Shape, eps float64) {
	t.Helper()
	n := s.Points() * max(s.Batch, 1)
	in, rng := make([]T, n), rand.New(rand.NewPCG(uint64(n), 1))
	for i := range in {
		in[i] = T(complex(rng.NormFloat64(), rng.NormFloat64()))
	}
	var results [2][3][]T // results of each device: forward, inverse, round trip in place
	for i, dev := range []*gpu.Device{real, simulated} {
		p, err := fft.NewPlan[T]([]*fft.Library{lib, sim}[i], s)
		must(t, err)
		x, y, z, w := slice(t, dev, in), slice(t, dev, in), slice(t, dev, in), slice(t, dev, in)
		ops := []gpu.Op{p.Forward(y, x), p.Inverse(z, x), w.CopyFrom(x), p.Forward(w, w), p.Inverse(w, w)}
		if i == 0 { // the first use of the plan is in a graph
			inGraph(t, dev, ops...)
			graph := [3][]T{contents(t, dev, y), contents(t, dev, z), contents(t, dev, w)}
			do(t, dev, ops...)
			results[i] = [3][]T{contents(t, dev, y), contents(t, dev, z), contents(t, dev, w)}
			for k := range graph {
				near(t, fmt.Sprintf("%v of %T: result %d in a graph", s, in[0], k), graph[k], results[i][k], 0)
			}
		} else {
			do(t, dev, ops...)
			results[i] = [3][]T{contents(t, dev, y), contents(t, dev, z), contents(t, dev, w)}
		}
		must(t, p.Close())
	}
	for k, what := range []string{"forward", "inverse", "there and back"} {
		near(t, fmt.Sprintf("%v of %T: %s", s, in[0], what), results[0][k], results[1][k], eps)
	}
	shape := append([]int{max(s.Batch, 1)}, s.Dims...)
	r.add("complex", map[string]any{"eps": eps}, arrayOf("x", in, shape...), arrayOf("forward", results[0][0], shape...), arrayOf("inverse", results[0][1], shape...))
}

func testRealFFT[R fft.Real, C fft.Complex](t *testing.T, r *recorder, real, simulated *gpu.Device, lib, sim *fft.Library, s fft.Shape, eps float64) {
	t.Helper()
	n := s.Dims[len(s.Dims)-1]
	rows, half, pitch := s.Points()/n*max(s.Batch, 1), n/2+1, n
	if s.Padded {
		pitch = 2 * half
	}
	in, rng := make([]R, rows*pitch), rand.New(rand.NewPCG(uint64(n), 2))
	for i := range in {
		if i%pitch < n {
			in[i] = R(rng.NormFloat64())
		}
	}
	var spectra [2][]C
	var numbers [2][]R
	for i, dev := range []*gpu.Device{real, simulated} {
		p, err := fft.NewRealPlan[R, C]([]*fft.Library{lib, sim}[i], s)
		must(t, err)
		x, back := slice(t, dev, in), slice(t, dev, make([]R, len(in)))
		y, used := slice(t, dev, make([]C, rows*half)), slice(t, dev, make([]C, rows*half))
		ops := []gpu.Op{p.Forward(y, x), used.CopyFrom(y), back.Fill(0), p.Inverse(back, used)}
		if s.Padded { // the inverse is computed in place
			shared, err := gpu.SliceOf[C](back.Range())
			must(t, err)
			ops = []gpu.Op{back.CopyFrom(x), p.Forward(shared, back), y.CopyFrom(shared), p.Inverse(back, shared)}
		}
		if i == 0 {
			inGraph(t, dev, ops...)
		} else {
			do(t, dev, ops...)
		}
		spectra[i], numbers[i] = contents(t, dev, y), contents(t, dev, back)
		for j := range numbers[i] { // cleared, because padding has no meaning
			if j%pitch >= n {
				numbers[i][j] = 0
			}
		}
		must(t, p.Close())
	}
	what := fmt.Sprintf("%v of %T", s, in[0])
	near(t, what+": forward", spectra[0], spectra[1], eps)
	near(t, what+": there and back", numbers[0], numbers[1], eps)
	if !s.Padded {
		shape := append([]int{max(s.Batch, 1)}, s.Dims...)
		outer := shape[: len(shape)-1 : len(shape)-1]
		r.add("real", map[string]any{"eps": eps, "n": n}, arrayOf("x", in, shape...), arrayOf("forward", spectra[0], append(outer, half)...), arrayOf("back", numbers[0], shape...))
	}
}

// TestFFTQueues checks that a plan can be used at the same time in a graph and in another stream.
func TestFFTQueues(t *testing.T) {
	dev := openGPU(t)
	lib, err := fft.Open(dev, fft.Options{})
	has(t, err)
	const n = 1009 * 16 // a size for which the plan needs a work area
	p, err := fft.NewPlan[complex64](lib, fft.Shape{Dims: []int{n}})
	must(t, err)
	second, err := gpu.AllocSlice[complex64](dev, gpu.DeviceMem, n)
	must(t, err)
	in := make([]complex64, n)
	for i := range in {
		in[i] = complex(float32(i%17), float32(i%5))
	}
	x := slice(t, dev, in)
	do(t, dev, p.Forward(second, x))
	want := contents(t, dev, second)
	c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	must(t, err)
	y := slice(t, dev, in)
	_, err = c.Add(p.Forward(y, x))
	must(t, err)
	must(t, c.End())
	z := slice(t, dev, in)
	graphs, calls := dev.Queue(0).NewStream(), dev.Queue(0).NewStream()
	for range 100 {
		must(t, graphs.Do(gpu.Execute(c)))
		must(t, calls.Do(p.Forward(z, x)))
	}
	must(t, graphs.Wait(t.Context()))
	must(t, calls.Wait(t.Context()))
	near(t, "in graphs", contents(t, dev, y), want, 0)
	near(t, "in calls", contents(t, dev, z), want, 0)
	must(t, c.Close())
	must(t, second.Close())
	must(t, lib.Close())
}

// TestFFTCustom checks a plan that the program makes with cuFFT: the transform of every second
// number.
func TestFFTCustom(t *testing.T) {
	dev := openGPU(t)
	lib, err := fft.Open(dev, fft.Options{})
	has(t, err)
	p, err := fft.NewCustomPlan(lib, func(l *cufft.Library, h cufft.Handle, work []uint64) error {
		one := []int64{4}
		return l.MakePlanMany64(h, one, one, 2, 8, one, 1, 4, cufft.Z2Z, 1, work)
	})
	must(t, err)
	x, y := slice(t, dev, []complex128{1, 9, 0, 9, 0, 9, 0, 9}), slice(t, dev, make([]complex128, 4))
	op := p.Call("strided", func(c fft.Call) error {
		return c.ExecZ2Z(c.Plan, cuda.DevicePtr(c.Ptrs[1]), cuda.DevicePtr(c.Ptrs[0]), cufft.Forward)
	}, y.Range(), x.Range())
	do(t, dev, op)
	near(t, "in a stream", contents(t, dev, y), []complex128{1, 1, 1, 1}, 0)
	do(t, dev, y.Fill(0))
	inGraph(t, dev, op)
	near(t, "in a graph", contents(t, dev, y), []complex128{1, 1, 1, 1}, 0)
	must(t, lib.Close())
}

// fftTimes returns the rows of transforms.
func fftTimes() (rows []timed) {
	for _, s := range []fft.Shape{{Dims: []int{256}}, {Dims: []int{1024}, Batch: 1 << 14}, {Dims: []int{1 << 24}}, {Dims: []int{1000003}}, {Dims: []int{4096, 4096}}, {Dims: []int{256, 256, 256}}} {
		shape := append([]int{max(s.Batch, 1)}, s.Dims...)
		dims := make([]int, len(s.Dims))
		for i := range dims {
			dims[i] = i + 1
		}
		list := func(v []int) string {
			text := "["
			for _, n := range v {
				text += fmt.Sprint(n, ",")
			}
			return text + "]"
		}
		n := s.Points() * max(s.Batch, 1)
		rows = append(rows, timed{
			name: fmt.Sprintf("fft complex64 %v", shape), small: n < 1e4,
			open: func(t *testing.T, dev *gpu.Device) gpu.Op {
				lib, err := fft.Open(dev, fft.Options{})
				has(t, err)
				p, err := fft.NewPlan[complex64](lib, s)
				must(t, err)
				t.Cleanup(func() { must(t, lib.Close()) })
				return p.Forward(slice(t, dev, make([]complex64, n)), slice(t, dev, make([]complex64, n)))
			},
			setup: "x = torch.zeros(" + list(shape) + ", dtype=torch.complex64, device='cuda'); y = torch.empty_like(x)",
			run:   "torch.fft.fftn(x, dim=" + list(dims) + ", out=y)",
		}, timed{
			name: fmt.Sprintf("fft float32 %v", shape), small: n < 1e4,
			open: func(t *testing.T, dev *gpu.Device) gpu.Op {
				lib, err := fft.Open(dev, fft.Options{})
				has(t, err)
				p, err := fft.NewRealPlan[float32, complex64](lib, s)
				must(t, err)
				t.Cleanup(func() { must(t, lib.Close()) })
				last := s.Dims[len(s.Dims)-1]
				return p.Forward(slice(t, dev, make([]complex64, n/last*(last/2+1))), slice(t, dev, make([]float32, n)))
			},
			setup: "x = torch.zeros(" + list(shape) + ", device='cuda'); y = torch.fft.rfftn(x, dim=" + list(dims) + ")",
			run:   "torch.fft.rfftn(x, dim=" + list(dims) + ", out=y)",
		})
	}
	return rows
}
