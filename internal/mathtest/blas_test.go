//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// openBLAS returns cuBLAS on the GPU.
func openBLAS(t *testing.T) (*gpu.Device, *blas.Library) {
	dev := openGPU(t)
	lib, err := blas.Open(dev, blas.Options{})
	has(t, err)
	t.Cleanup(func() { must(t, lib.Close()) })
	return dev, lib
}

func TestGemm(t *testing.T) {
	dev, lib := openBLAS(t)
	Gemm(t, dev, lib)
}

func TestGemmHeads(t *testing.T) {
	dev, lib := openBLAS(t)
	GemmHeads(t, dev, lib)
}

func TestGemmRecorded(t *testing.T) {
	dev, lib := openBLAS(t)
	GemmRecorded(t, dev, lib)
}

// TestCall checks that Call runs a function of cuBLAS in a stream and in a recording, and that an
// error of cuBLAS is returned.
func TestCall(t *testing.T) {
	dev, lib := openBLAS(t)
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 7)
	must(t, err)
	defer x.Close()
	double := lib.Call("double", func(c blas.Call) error {
		two := float32(2)
		return c.Sscal(c.Handle, 7, &two, cuda.DevicePtr(c.Ptrs[0]), 1)
	}, x.Range())
	st := dev.Queue(0).NewStream()
	must(t, st.Do(x.Fill(1), double, double))
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true})
	must(t, err)
	for range 3 {
		_, err = rec.Add(double)
		must(t, err)
	}
	must(t, rec.End())
	got := make([]float32, 7)
	must(t, st.Do(gpu.Execute(rec), gpu.Execute(rec), double, x.Download(got)))
	must(t, st.Wait(minute(t)))
	for i, v := range got {
		if v != 512 {
			t.Errorf("element %d is %v; want 512", i, v)
		}
	}
	must(t, rec.Close())
	bad := lib.Call("bad", func(c blas.Call) error {
		one, at := float32(1), cuda.DevicePtr(c.Ptrs[0])
		return c.Sgemm(c.Handle, cublas.OpN, cublas.OpN, -1, 1, 1, &one, at, 1, at, 1, &one, at, 1)
	}, x.Range())
	err = st.Do(bad)
	if err == nil {
		err = st.Wait(minute(t))
	}
	var status cublas.Status
	if !errors.As(err, &status) {
		t.Errorf("a call that cuBLAS refuses: %v", err)
	}
}

// TestGemmAllocs checks that repeated submission of one product does not allocate.
func TestGemmAllocs(t *testing.T) {
	dev, lib := openBLAS(t)
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 3*64*64)
	must(t, err)
	defer x.Close()
	var m [3]blas.Matrix[float32]
	for i := range m {
		m[i] = blas.Matrix[float32]{Data: x.Slice(i*64*64, (i+1)*64*64), Rows: 64, Cols: 64}
	}
	op, st, ctx := blas.Gemm(lib, m[0], m[1], m[2]), dev.Queue(0).NewStream(), minute(t)
	least := math.Inf(1)
	for range 5 { // several times, because a pool of the runtime may grow in one of them
		least = min(least, testing.AllocsPerRun(200, func() {
			must(t, st.Do(op))
			must(t, st.Wait(ctx))
		}))
	}
	if least != 0 {
		t.Errorf("%v allocations", least)
	}
}

// blasTimes returns the rows of TestTimes for products: large products, and small ones to measure
// the host's time.
func blasTimes() []timed {
	rows := []timed{fp8Time(8192)}
	for _, n := range []int{64, 4096, 8192} {
		rows = append(rows, gemmTime[float32](n, "float32"), gemmTime[smallfloat.BFloat16](n, "bfloat16"))
	}
	return rows
}

// operand returns an n × n matrix, filled with one value.
func operand[T blas.Element](t *testing.T, dev *gpu.Device, n int, one T) blas.Matrix[T] {
	t.Helper()
	data, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n*n)
	must(t, err)
	t.Cleanup(func() { must(t, data.Close()) })
	do(t, dev, data.Fill(one))
	return blas.Matrix[T]{Data: data, Rows: n, Cols: n}
}

// gemmTime returns the row of TestTimes for a product of n by n matrices.
func gemmTime[T blas.Element](n int, name string) timed {
	return timed{name: fmt.Sprintf("gemm %s %d", name, n), small: n < 1000,
		open: func(t *testing.T, dev *gpu.Device) gpu.Op {
			lib, err := blas.Open(dev, blas.Options{})
			has(t, err)
			t.Cleanup(func() { must(t, lib.Close()) })
			var zero T
			return blas.Gemm(lib, operand(t, dev, n, zero), operand(t, dev, n, zero), operand(t, dev, n, zero))
		},
		setup: fmt.Sprintf("a = torch.zeros(%d, %[1]d, dtype=torch.%s, device='cuda'); b = a.clone(); c = a.clone()", n, name),
		run:   "torch.mm(a, b, out=c)",
	}
}

// fp8Time returns the row of TestTimes for a product of 8-bit matrices.
func fp8Time(n int) timed {
	return timed{name: fmt.Sprintf("gemm float8e4m3 %d", n),
		open: func(t *testing.T, dev *gpu.Device) gpu.Op {
			lib, err := blas.Open(dev, blas.Options{})
			has(t, err)
			t.Cleanup(func() { must(t, lib.Close()) })
			one, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 1)
			must(t, err)
			t.Cleanup(func() { must(t, one.Close()) })
			do(t, dev, one.Fill(1))
			var zero smallfloat.Float8E4M3
			return blas.GemmWith(lib, operand(t, dev, n, smallfloat.BFloat16(0)), operand(t, dev, n, zero), operand(t, dev, n, zero).T(),
				blas.GemmOptions[smallfloat.BFloat16]{ScaleA: one, ScaleB: one})
		},
		setup: fmt.Sprintf("a = torch.zeros(%d, %[1]d, device='cuda').to(torch.float8_e4m3fn); b = a.clone().t(); s = torch.ones((), device='cuda'); c = torch.zeros(%[1]d, %[1]d, dtype=torch.bfloat16, device='cuda')", n),
		run:   "torch._scaled_mm(a, b, s, s, out_dtype=torch.bfloat16, out=c)",
	}
}
