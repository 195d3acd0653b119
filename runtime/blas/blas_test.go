package blas_test

import (
	"context"
	"errors"
	"math"
	"strings"
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

// TestGemmHeads multiplies matrices that are side by side in the rows of memory.
func TestGemmHeads(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.GemmHeads(t, dev, lib)
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
	ok, c := m{Data: data.Slice(0, 16), Rows: 4, Cols: 4}, m{Data: data.Slice(16, 32), Rows: 4, Cols: 4}
	part := func(col int) m { return m{Data: data.Slice(col, 64), Rows: 4, Cols: 4, Stride: 12} }
	eight := blas.Matrix[smallfloat.Float8E5M2]{Data: tiny, Rows: 16, Cols: 16}
	row := func(from int) blas.Matrix[smallfloat.Float8E4M3] {
		return blas.Matrix[smallfloat.Float8E4M3]{Data: fine.Slice(from, from+16), Rows: 1, Cols: 16}
	}
	square := blas.Matrix[smallfloat.Float8E4M3]{Data: fine.Slice(16, 272), Rows: 16, Cols: 16}
	must(t, dev.Queue(0).NewStream().Do(blas.Gemm(lib, part(0), part(4), part(8)))) // columns of one matrix
	must(t, dev.Queue(0).NewStream().Do(blas.Gemm(lib, m{Data: data.Slice(0, 16), Rows: 1, Cols: 16}, row(0), square.T())))
	for name, op := range map[string]gpu.Op{
		"no library":       blas.Gemm(nil, c, ok, ok),
		"a zero library":   blas.Gemm(new(blas.Library), c, ok, ok),
		"no rows":          blas.Gemm(lib, c, m{Data: data, Cols: 4}, ok),
		"shapes":           blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 5}, ok),
		"short data":       blas.Gemm(lib, m{Data: data, Rows: 9, Cols: 8}, m{Data: data, Rows: 9, Cols: 1}, m{Data: data, Rows: 1, Cols: 8}),
		"no data":          blas.Gemm(lib, m{Rows: 4, Cols: 4}, ok, ok),
		"huge":             blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 4, Stride: math.MaxInt}, ok),
		"huge batch":       blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 4, Batch: math.MaxInt, BatchStride: math.MaxInt}, ok),
		"negative stride":  blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 4, BatchStride: -1, Batch: 2}, ok),
		"small stride":     blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 4, Stride: 3}, ok),
		"transposed c":     blas.Gemm(lib, c.T(), ok, ok),
		"batches":          blas.Gemm(lib, c, m{Data: data, Rows: 4, Cols: 4, Batch: 2}, ok),
		"overlapping c":    blas.Gemm(lib, m{Data: data, Rows: 4, Cols: 4, Batch: 2, BatchStride: 8}, ok, ok),
		"overlapping rows": blas.Gemm(lib, m{Data: data, Rows: 4, Cols: 4, Stride: 7, Batch: 2, BatchStride: 4}, ok, ok),
		"shifted matrices": blas.Gemm(lib, m{Data: data, Rows: 4, Cols: 4, Stride: 8, Batch: 2, BatchStride: 3}, ok, ok),
		"mixed types":      blas.Gemm(lib, c, ok, blas.Matrix[float64]{Data: wide, Rows: 4, Cols: 4}),
		"types of 8 bits":  blas.Gemm(lib, m{Data: data, Rows: 8, Cols: 8}, eight, eight.T()),
		"odd 8 bits":       blas.Gemm(lib, m{Data: data.Slice(0, 16), Rows: 1, Cols: 16}, row(1), square.T()),
		"activation":       blas.GemmWith(lib, c, ok, ok, blas.GemmOptions[float32]{Activation: 9}),
		"bias":             blas.GemmWith(lib, c, ok, ok, blas.GemmOptions[float32]{Bias: data.Slice(32, 64)}),
		"bias outside":     blas.GemmWith(lib, c, ok, ok, blas.GemmOptions[float32]{Bias: data.Slice(64, 68)}),
		"scale":            blas.GemmWith(lib, c, ok, ok, blas.GemmOptions[float32]{ScaleA: data.Slice(40, 41)}),
		"c is a":           blas.Gemm(lib, ok, ok, c),
		"c is b":           blas.Gemm(lib, ok, c, ok),
		"shifted":          blas.Gemm(lib, m{Data: data.Slice(2, 18), Rows: 4, Cols: 4}, ok, m{Data: data.Slice(48, 64), Rows: 4, Cols: 4}),
		"columns":          blas.Gemm(lib, part(0), part(3), part(8)),
		"bias in c":        blas.GemmWith(lib, c, ok, ok, blas.GemmOptions[float32]{Bias: c.Data.Slice(4, 8)}),
		"a call of no lib": lib.Call("x", nil),
	} {
		if err := dev.Queue(0).NewStream().Do(op); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := dev.Queue(0).NewStream().Do(lib.Call("x", func(blas.Call) error { return nil })); !errors.Is(err, gpu.ErrUnsupported) || err.Error() != "blas: a simulated device has no cuBLAS to call: a test calls a gpu.Native in its place" {
		t.Errorf("a call on the simulated GPU: %v", err)
	}
	if _, err := blas.Open(nil, blas.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
	must(t, (*blas.Library)(nil).Close())
}

// TestGemmBindings checks that an execution fails if its bindings make c overlap a, or if a begins
// between two elements.
func TestGemmBindings(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		dev, lib := open(t, simdriver.CUDACaps())
		data, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 12)
		must(t, err)
		rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		must(t, err)
		to, err := gpu.BindingSlice[float32](rec, 4)
		must(t, err)
		from, err := gpu.BindingSlice[float32](rec, 4)
		must(t, err)
		a := blas.Matrix[float32]{Data: from, Rows: 2, Cols: 2}
		_, err = rec.Add(blas.Gemm(lib, blas.Matrix[float32]{Data: to, Rows: 2, Cols: 2}, a, a))
		must(t, err)
		must(t, rec.End())
		st := dev.Queue(0).NewStream()
		must(t, st.Do(gpu.Execute(rec, data.Slice(0, 4).Range(), data.Slice(4, 8).Range())))
		must(t, st.Wait(context.Background()))
		err = errors.Join(st.Do(gpu.Execute(rec, data.Slice(0, 4).Range(), data.Slice(2, 6).Range())), st.Wait(context.Background()))
		if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "c and a overlap") {
			t.Errorf("mode %v: %v", mode, err)
		}
		st = dev.Queue(0).NewStream()
		err = errors.Join(st.Do(gpu.Execute(rec, data.Slice(0, 4).Range(), data.Range().Buffer.Range(18, 16))), st.Wait(context.Background()))
		if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "a is at address") {
			t.Errorf("mode %v: an address between elements: %v", mode, err)
		}
		must(t, errors.Join(rec.Close(), data.Close()))
	}
}

// TestGemmBindings8 checks that a product of 8-bit elements fails if a binding does not begin at a
// multiple of 16 bytes.
func TestGemmBindings8(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	data, err := gpu.AllocSlice[smallfloat.Float8E4M3](dev, gpu.DeviceMem, 304)
	must(t, err)
	out, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 16)
	must(t, err)
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	row, err := gpu.BindingSlice[smallfloat.Float8E4M3](rec, 16)
	must(t, err)
	a := blas.Matrix[smallfloat.Float8E4M3]{Data: row, Rows: 1, Cols: 16}
	b := blas.Matrix[smallfloat.Float8E4M3]{Data: data.Slice(0, 256), Rows: 16, Cols: 16}
	_, err = rec.Add(blas.Gemm(lib, blas.Matrix[float32]{Data: out, Rows: 1, Cols: 16}, a, b.T()))
	must(t, err)
	must(t, rec.End())
	st := dev.Queue(0).NewStream()
	must(t, errors.Join(st.Do(gpu.Execute(rec, data.Slice(272, 288).Range())), st.Wait(context.Background())))
	err = errors.Join(st.Do(gpu.Execute(rec, data.Slice(280, 296).Range())), st.Wait(context.Background()))
	if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "a is at address") {
		t.Error(err)
	}
	must(t, errors.Join(rec.Close(), data.Close(), out.Close()))
}

// TestGemmElsewhere checks that a product with memory of another device fails.
func TestGemmElsewhere(t *testing.T) {
	dev, _ := open(t, simdriver.CUDACaps())
	other, lib := open(t, simdriver.CUDACaps())
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 32)
	must(t, err)
	defer x.Close()
	m, c := blas.Matrix[float32]{Data: x.Slice(0, 16), Rows: 4, Cols: 4}, blas.Matrix[float32]{Data: x.Slice(16, 32), Rows: 4, Cols: 4}
	if err := other.Queue(0).NewStream().Do(blas.Gemm(lib, c, m, m)); err == nil {
		t.Error("memory of another device was taken")
	}
	st := dev.Queue(0).NewStream()
	if err := errors.Join(st.Do(blas.Gemm(lib, c, m, m)), st.Wait(context.Background())); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("the library of another device: %v", err)
	}
}

// TestClosed checks that a product, a recording with it, and a call of a closed library fail with
// ErrClosed.
func TestClosed(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 32)
	must(t, err)
	defer x.Close()
	m, c := blas.Matrix[float32]{Data: x.Slice(0, 16), Rows: 4, Cols: 4}, blas.Matrix[float32]{Data: x.Slice(16, 32), Rows: 4, Cols: 4}
	op := blas.Gemm(lib, c, m, m)
	rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: gpu.GraphMode})
	must(t, err)
	defer func() { must(t, rec.Close()) }()
	_, err = rec.Add(op)
	must(t, err)
	must(t, rec.End())
	st := dev.Queue(0).NewStream()
	must(t, st.Do(gpu.Execute(rec)))
	must(t, st.Wait(context.Background()))
	must(t, lib.Close())
	for name, op := range map[string]gpu.Op{"a product": op, "a recording": gpu.Execute(rec)} {
		st := dev.Queue(0).NewStream()
		if err := errors.Join(st.Do(op), st.Wait(context.Background())); !errors.Is(err, gpu.ErrClosed) || errors.Is(err, gpu.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
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
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 64)
	must(t, err)
	var wg sync.WaitGroup
	for q := range 2 {
		m := blas.Matrix[float32]{Data: x.Slice(32*q, 32*q+16), Rows: 4, Cols: 4}
		c := blas.Matrix[float32]{Data: x.Slice(32*q+16, 32*q+32), Rows: 4, Cols: 4}
		wg.Go(func() {
			for {
				st := dev.Queue(q).NewStream()
				err := errors.Join(st.Do(blas.Gemm(lib, c, m, m.T())), st.Wait(context.Background()))
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
