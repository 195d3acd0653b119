package gputest

import (
	"errors"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// saxpy has the arguments of kernel saxpy. X and Y are the types of the kernel's memory arguments.
type saxpy[X, Y any] struct {
	N uint64
	A float32
	X X
	Y Y
}

type saxpySlices = saxpy[gpu.Slice[float32], gpu.Slice[float32]]

// bind makes a TypedKernel of a kernel.
func bind[A any](e *env, k *gpu.Kernel) *gpu.TypedKernel[A] {
	e.Helper()
	typed, err := gpu.Typed[A](k)
	e.must(err)
	return typed
}

// floatSlice allocates a slice of n elements in the first device's own memory.
func floatSlice(e *env, n int) gpu.Slice[float32] {
	e.Helper()
	xs, err := gpu.AllocSlice[float32](e.devs[0], gpu.DeviceMem, n)
	e.must(err)
	e.Cleanup(func() { xs.Close() })
	return xs
}

var typed = []test{
	{name: "B107 B147 saxpy with a struct of arguments, in a stream", kernels: true, run: func(e *env) {
		const n = 100_000
		k, s := bind[saxpySlices](e, e.kernel(kernels.Saxpy, "saxpy")), e.q(0).NewStream()
		x, y, host := floatSlice(e, n), floatSlice(e, n), e.sem()
		hx, got := make([]float32, n), make([]float32, n)
		for i := range hx {
			hx[i] = float32(i)
		}
		e.must(s.After(host.At(1)))
		e.must(s.Do(x.UploadCopy(hx)))
		e.must(s.Do(y.Fill(0.5)))
		e.must(s.Do(k.Launch(gpu.GridFor(n, 256), saxpySlices{n, 2, x, y})))
		e.must(s.Do(k.Launch(gpu.GridFor(1000, 256), saxpySlices{1000, 1, x.Slice(1000, 2000), y.Slice(n-1000, n)})))
		e.must(s.Do(y.Download(got)))
		e.must(host.Signal(1))
		e.must(s.Wait(e.ctx))
		for i, v := range got {
			want := 0.5 + 2*float32(i)
			if i >= n-1000 {
				want += float32(1000 + i - (n - 1000))
			}
			if v != want {
				e.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	}},
	{name: "B107 B147 typed memory of a pool, in the order of a stream", kernels: true, run: func(e *env) {
		k, s := bind[saxpySlices](e, e.kernel(kernels.Saxpy, "saxpy")), e.q(0).NewStream()
		host, got := e.sem(), make([]float32, 4)
		e.must(s.After(host.At(1)))
		x, err := gpu.AllocSliceIn[float32](s, nil, 4)
		e.must(err)
		y, err := gpu.AllocSliceIn[float32](s, nil, 4)
		e.must(err)
		e.must(s.Do(x.Upload([]float32{1, 2, 3, 4})))
		e.must(s.Do(y.CopyFrom(x)))
		e.must(s.Do(k.Launch(gpu.GridFor(3, 2), saxpySlices{3, 10, x.Slice(1, 4), y})))
		e.must(s.Do(y.Download(got)))
		e.must(s.Do(x.Free()))
		e.must(s.Do(y.Free()))
		e.must(host.Signal(1))
		e.must(s.Wait(e.ctx))
		if want := []float32{21, 32, 43, 4}; !slices.Equal(got, want) {
			e.Errorf("%v, want %v", got, want)
		}
	}},
	{name: "B107 B147 structs of arguments, recorded", kernels: true, run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			kernel := e.kernel(kernels.Saxpy, "saxpy")
			k, s := bind[saxpy[gpu.Range, gpu.Slice[float32]]](e, kernel), e.q(0).NewStream()
			pointers := bind[saxpy[driver.Ptr, *gpu.Buffer]](e, kernel)
			x, y, got := floatSlice(e, 4), floatSlice(e, 4), make([]float32, 4)
			c := e.commands(m)
			b, err := c.Binding()
			e.must(err)
			grid := gpu.GridFor(2, 64)
			first, err := c.CommandBuffer.Add(k.Launch(grid, saxpy[gpu.Range, gpu.Slice[float32]]{2, 1, b.Range(4, 8), y.Slice(2, 4)}))
			e.must(err)
			_, err = c.CommandBuffer.Add(pointers.Launch(grid, saxpy[driver.Ptr, *gpu.Buffer]{2, 3, x.Range().Buffer.Ptr(), y.Range().Buffer}), first)
			e.must(err)
			e.must(c.End())
			e.must(s.Do(x.UploadCopy([]float32{1, 2, 3, 4})))
			e.must(s.Do(y.Fill(0)))
			e.must(s.Do(gpu.Execute(c.CommandBuffer, x.Range())))
			e.must(s.Do(gpu.Execute(c.CommandBuffer, x.Slice(1, 4).Range())))
			e.must(s.Do(y.Download(got)))
			e.must(s.Wait(e.ctx))
			if want := []float32{6, 12, 5, 7}; !slices.Equal(got, want) {
				e.Errorf("%v, want %v", got, want)
			}
		})
	}},
	{name: "B82 B147 structs that are not a kernel's arguments", kernels: true, run: func(e *env) {
		k := e.kernel(kernels.Saxpy, "saxpy")
		refused := func(err error, field string) {
			e.Helper()
			if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), field) {
				e.Errorf("%v; want an error that names %s", err, field)
			}
		}
		_, err := gpu.Typed[struct{ N int }](k)
		refused(err, "field N (int)")
		_, err = gpu.Typed[saxpy[[]float32, gpu.Slice[float32]]](k)
		refused(err, "field X ([]float32)")
		if k.Info().Params != nil {
			_, err = gpu.Typed[saxpy[uint32, gpu.Slice[float32]]](k)
			refused(err, "field X has 4 bytes")
			_, err = gpu.Typed[struct{ N uint64 }](k)
			refused(err, "has 1 fields")
		}
		x, s := floatSlice(e, 4), e.q(0).NewStream()
		err = s.Do(bind[saxpySlices](e, k).Launch(gpu.GridFor(4, 64), saxpySlices{4, 1, x, x.Slice(2, 5)}))
		if !errors.Is(err, gpu.ErrRange) || !strings.Contains(err.Error(), "argument Y") || s.Wait(e.ctx) != err {
			e.Errorf("elements outside: %v", err)
		}
	}},
}
