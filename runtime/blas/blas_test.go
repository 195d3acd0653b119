package blas_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/internal/mathtest"
	"github.com/puregpu/puregpu/runtime/blas"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

func open(t testing.TB, caps driver.Caps) (*gpu.Device, *blas.Library) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Caps: &caps})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	lib, err := blas.Open(dev, blas.Options{})
	must(t, err)
	t.Cleanup(func() {
		must(t, lib.Close())
		must(t, dev.Close())
		if leaks := d.Leaks(); len(leaks) > 0 {
			t.Errorf("leaks: %v", leaks)
		}
	})
	return dev, lib
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGemm multiplies matrices of random shapes, strides and options on the simulated GPU.
func TestGemm(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.Gemm(t, dev, lib)
}

// TestGemmRecorded executes a recorded product, with and without a graph.
func TestGemmRecorded(t *testing.T) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		dev, lib := open(t, caps)
		mathtest.GemmRecorded(t, dev, lib)
	}
}

// TestGemmRefused checks that Gemm refuses wrong arguments.
func TestGemmRefused(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	data, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 64)
	must(t, err)
	wide, err := gpu.AllocSlice[float64](dev, gpu.DeviceMem, 64)
	must(t, err)
	tiny, err := gpu.AllocSlice[smallfloat.Float8E5M2](dev, gpu.DeviceMem, 1024)
	must(t, err)
	fine, err := gpu.AllocSlice[smallfloat.Float8E4M3](dev, gpu.DeviceMem, 1024)
	must(t, err)
	defer func() { must(t, errors.Join(data.Close(), wide.Close(), tiny.Close(), fine.Close())) }()
	type m = blas.Matrix[float32]
	ok := m{Data: data, Rows: 4, Cols: 4}
	eight := blas.Matrix[smallfloat.Float8E5M2]{Data: tiny, Rows: 16, Cols: 16}
	row := func(from int) blas.Matrix[smallfloat.Float8E4M3] {
		return blas.Matrix[smallfloat.Float8E4M3]{Data: fine.Slice(from, from+16), Rows: 1, Cols: 16}
	}
	square := blas.Matrix[smallfloat.Float8E4M3]{Data: fine.Slice(16, 272), Rows: 16, Cols: 16}
	must(t, dev.Queue(0).NewStream().Do(blas.Gemm(lib, m{Data: data.Slice(0, 16), Rows: 1, Cols: 16}, row(0), square.T())))
	for name, op := range map[string]gpu.Op{
		"no library":       blas.Gemm(nil, ok, ok, ok),
		"a zero library":   blas.Gemm(new(blas.Library), ok, ok, ok),
		"no rows":          blas.Gemm(lib, ok, m{Data: data, Cols: 4}, ok),
		"shapes":           blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 5}, ok),
		"short data":       blas.Gemm(lib, m{Data: data, Rows: 9, Cols: 8}, m{Data: data, Rows: 9, Cols: 1}, m{Data: data, Rows: 1, Cols: 8}),
		"no data":          blas.Gemm(lib, m{Rows: 4, Cols: 4}, ok, ok),
		"huge":             blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 4, Stride: math.MaxInt}, ok),
		"huge batch":       blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 4, Batch: math.MaxInt, BatchStride: math.MaxInt}, ok),
		"negative stride":  blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 4, BatchStride: -1, Batch: 2}, ok),
		"small stride":     blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 4, Stride: 3}, ok),
		"transposed c":     blas.Gemm(lib, ok.T(), ok, ok),
		"batches":          blas.Gemm(lib, ok, m{Data: data, Rows: 4, Cols: 4, Batch: 2}, ok),
		"overlapping c":    blas.Gemm(lib, m{Data: data, Rows: 4, Cols: 4, Batch: 2, BatchStride: 8}, ok, ok),
		"mixed types":      blas.Gemm(lib, ok, ok, blas.Matrix[float64]{Data: wide, Rows: 4, Cols: 4}),
		"types of 8 bits":  blas.Gemm(lib, m{Data: data, Rows: 8, Cols: 8}, eight, eight.T()),
		"odd 8 bits":       blas.Gemm(lib, m{Data: data.Slice(0, 16), Rows: 1, Cols: 16}, row(1), square.T()),
		"activation":       blas.GemmWith(lib, ok, ok, ok, blas.GemmOptions[float32]{Activation: 9}),
		"bias":             blas.GemmWith(lib, ok, ok, ok, blas.GemmOptions[float32]{Bias: data}),
		"bias outside":     blas.GemmWith(lib, ok, ok, ok, blas.GemmOptions[float32]{Bias: data.Slice(64, 68)}),
		"scale":            blas.GemmWith(lib, ok, ok, ok, blas.GemmOptions[float32]{ScaleA: data.Slice(0, 1)}),
		"a call of no lib": lib.Call("x", nil),
	} {
		if err := dev.Queue(0).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := dev.Queue(0).NewStream().Do(lib.Call("x", func(blas.Call) error { return nil })); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a call on the simulated GPU: %v", err)
	}
	if _, err := blas.Open(nil, blas.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
	must(t, (*blas.Library)(nil).Close())
}

// TestGemmElsewhere checks that a product with memory of another device fails.
func TestGemmElsewhere(t *testing.T) {
	dev, _ := open(t, simdriver.CUDACaps())
	other, lib := open(t, simdriver.CUDACaps())
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 16)
	must(t, err)
	defer x.Close()
	m := blas.Matrix[float32]{Data: x, Rows: 4, Cols: 4}
	if err := other.Queue(0).NewStream().Do(blas.Gemm(lib, m, m, m)); err == nil {
		t.Error("memory of another device was taken")
	}
	st := dev.Queue(0).NewStream()
	if err := errors.Join(st.Do(blas.Gemm(lib, m, m, m)), st.Wait(context.Background())); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("the library of another device: %v", err)
	}
}

// TestClosed checks that a product and a call of a closed library fail with ErrClosed.
func TestClosed(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 16)
	must(t, err)
	defer x.Close()
	m := blas.Matrix[float32]{Data: x, Rows: 4, Cols: 4}
	op := blas.Gemm(lib, m, m, m)
	must(t, lib.Close())
	st := dev.Queue(0).NewStream()
	if err := errors.Join(st.Do(op), st.Wait(context.Background())); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a closed library: %v", err)
	}
	if err := st.Do(lib.Call("x", func(blas.Call) error { return nil })); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("a call of a closed library: %v", err)
	}
}

// TestCloseWhileInUse closes a library while goroutines multiply on two queues.
func TestCloseWhileInUse(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2})
	must(t, err)
	lib, err := blas.Open(dev, blas.Options{})
	must(t, err)
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 32)
	must(t, err)
	var wg sync.WaitGroup
	for q := range 2 {
		data := x.Slice(16*q, 16*q+16)
		m := blas.Matrix[float32]{Data: data, Rows: 4, Cols: 4}
		b := blas.Matrix[float32]{Data: data, Rows: 4, Cols: 4, Transposed: true}
		wg.Go(func() {
			for {
				st := dev.Queue(q).NewStream()
				err := errors.Join(st.Do(blas.Gemm(lib, m, m, b)), st.Wait(context.Background()))
				if errors.Is(err, gpu.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if q == 0 {
					if err := lib.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	must(t, x.Close())
	must(t, dev.Close())
}
