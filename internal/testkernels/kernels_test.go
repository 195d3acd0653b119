package testkernels

import (
	"context"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// load opens a simulated GPU and loads the kernels.
func load(t testing.TB, kernels map[string]simdriver.Kernel, o gpu.Options) (*gpu.Device, *KernelsCode) {
	t.Helper()
	sim := simdriver.New(simdriver.Config{Kernels: kernels})
	dev, err := gpu.Open(sim, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err, left := dev.Close(), sim.Leaks(); err != nil || len(left) > 0 {
			t.Errorf("%v; left behind: %q", err, left)
		}
	})
	code, err := LoadKernels(dev)
	if err != nil {
		t.Fatal(err)
	}
	return dev, code
}

func slice(t testing.TB, s *gpu.Stream, values []float32) gpu.Slice[float32] {
	t.Helper()
	x, err := gpu.AllocSliceIn[float32](s, nil, len(values))
	if err != nil {
		t.Fatal(err)
	}
	s.Do(x.UploadCopy(values))
	t.Cleanup(func() { x.Close() })
	return x
}

// some returns n numbers that depend on from.
func some(n, from int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32((i+from)*37%101)/50 - 1
	}
	return out
}

// TestTwins checks the results of launching each kernel on a simulated GPU.
func TestTwins(t *testing.T) {
	dev, code := load(t, SimKernels(Twins{}), gpu.Options{})
	s := dev.Queue(0).NewStream()
	check := func(name string, out gpu.Slice[float32], want func(i int) float64) {
		t.Helper()
		got := make([]float32, out.Len())
		s.Do(out.Download(got))
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if w := want(i); !(math.Abs(float64(v)-w) <= 1e-5) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, v, w)
			}
		}
	}
	const rows, columns, inner = 33, 70, 19
	x, y := some(rows*columns, 0), some(rows*columns, 5)
	xs, ys, out := slice(t, s, x), slice(t, s, y), slice(t, s, make([]float32, rows*columns))
	s.Do(code.VectorAdd.Launch(gpu.GridFor(out.Len(), 256), uint32(out.Len()), xs, ys, out))
	check("vector_add", out, func(i int) float64 { return float64(x[i] + y[i]) })

	grid := gpu.Grid{Blocks: [3]uint32{rows, 1, 1}, Threads: [3]uint32{64, 1, 1}, SharedMem: 64 * 4}
	s.Do(code.Softmax.Launch(grid, columns, 2, xs, out))
	check("softmax", out, func(i int) float64 {
		sum := 0.
		for _, v := range x[i/columns*columns:][:columns] {
			sum += math.Exp(2 * float64(v))
		}
		return math.Exp(2*float64(x[i])) / sum
	})

	factor, err := code.Factor()
	if err != nil {
		t.Fatal(err)
	}
	defer factor.Close()
	s.Do(factor.UploadCopy([]float32{0.5}))
	a, b := some(rows*inner, 1), some(inner*columns, 2)
	as, bs := slice(t, s, a), slice(t, s, b)
	grid = gpu.Grid{Blocks: [3]uint32{(columns + 15) / 16, (rows + 15) / 16, 1}, Threads: [3]uint32{16, 16, 1}}
	s.Do(code.Matmul.Launch(grid, rows, columns, inner, as, bs, out))
	check("matmul", out, func(i int) float64 {
		sum := 0.
		for j := range inner {
			sum += float64(a[i/columns*inner+j]) * float64(b[j*columns+i%columns])
		}
		return sum / 2
	})
}

// TestLeftOut checks the error of launching a kernel that has no twin.
func TestLeftOut(t *testing.T) {
	dev, code := load(t, SimKernels(struct{ NoKernelsTwins }{}), gpu.Options{})
	s := dev.Queue(0).NewStream()
	x := slice(t, s, some(8, 0))
	s.Do(code.VectorAdd.Launch(gpu.GridFor(8, 8), 8, x, x, x))
	err := s.Wait(t.Context())
	if err == nil || !strings.Contains(err.Error(), "kernel vector_add of kernels.cu has no twin: implement KernelsTwins.VectorAdd") {
		t.Errorf("the error is %v", err)
	}
}

// quiet has kernels that allocate nothing.
var quiet = map[string]simdriver.Kernel{
	"vector_add": simdriver.MustKernel(func(*simdriver.Grid, uint32, driver.Ptr, driver.Ptr, driver.Ptr) {}),
	"softmax":    simdriver.MustKernel(func(*simdriver.Grid, uint32, float32, driver.Ptr, driver.Ptr) {}),
	"matmul":     simdriver.MustKernel(func(*simdriver.Grid, int32, int32, int32, driver.Ptr, driver.Ptr, driver.Ptr) {}),
}

// launches returns functions that launch the same kernel: "again" reuses its Op, "generated" makes
// an Op with the generated function.
func launches(t testing.TB) (s *gpu.Stream, all map[string]func() error) {
	dev, code := load(t, quiet, gpu.Options{Spin: -1, Poll: time.Minute})
	s = dev.Queue(0).NewStream()
	x := slice(t, s, some(1000, 0))
	op := gpu.Launch(code.VectorAdd.Kernel(), gpu.GridFor(1000, 256), uint32(1000), x, x, x)
	return s, map[string]func() error{
		"again":     func() error { return s.Do(op) },
		"generated": func() error { return s.Do(code.VectorAdd.Launch(gpu.GridFor(1000, 256), 1000, x, x, x)) },
	}
}

// finish waits for the Stream's work and allocates nothing.
func finish(s *gpu.Stream) error {
	for end := s.Point(); ; runtime.Gosched() {
		if got, err := end.Semaphore.Query(); err != nil || got >= end.Value {
			return err
		}
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	s, all := launches(t)
	for name, launch := range all {
		one := func() {
			if err := launch(); err != nil {
				t.Fatal(err)
			}
			if err := finish(s); err != nil {
				t.Fatal(err)
			}
		}
		for range 300 {
			one()
		}
		// The least of several measurements counts, because the device's goroutines sometimes
		// allocate.
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(200, one))
		}
		if least != 0 {
			t.Errorf("%s: %v allocations a launch", name, least)
		}
	}
}

func BenchmarkLaunch(b *testing.B) {
	s, all := launches(b)
	for _, name := range []string{"again", "generated"} {
		launch := all[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if err := launch(); err != nil {
					b.Fatal(err)
				}
				if n%256 == 255 {
					if err := finish(s); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := s.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
