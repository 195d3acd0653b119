package dnn_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/internal/mathtest"
	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

func open(t testing.TB, caps driver.Caps) (*gpu.Device, *dnn.Library) {
	t.Helper()
	d := simdriver.New(simdriver.Config{Caps: &caps})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lib, err := dnn.Open(dev, dnn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(lib.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
		if leaks := d.Leaks(); len(leaks) > 0 {
			t.Errorf("leaks: %v", leaks)
		}
	})
	return dev, lib
}

// eachCaps runs a check with the features of NVIDIA's and of AMD's devices.
func eachCaps(t *testing.T, check func(*testing.T, *gpu.Device, *dnn.Library)) {
	for _, caps := range []driver.Caps{simdriver.CUDACaps(), simdriver.HIPCaps()} {
		dev, lib := open(t, caps)
		check(t, dev, lib)
	}
}

func TestConv(t *testing.T)      { eachCaps(t, mathtest.Conv) }
func TestAttention(t *testing.T) { eachCaps(t, mathtest.Attention) }
func TestSoftmax(t *testing.T)   { eachCaps(t, mathtest.Softmax) }
func TestNorm(t *testing.T)      { eachCaps(t, mathtest.Norm) }
func TestTogether(t *testing.T)  { eachCaps(t, mathtest.DNNTogether) }

// TestOutSize compares OutSize with the sizes that PyTorch computes.
func TestOutSize(t *testing.T) {
	s := dnn.ConvShape{Size: []int{32, 20, 7}, Kernel: []int{3, 5, 7}}
	if got := s.OutSize(); !slices.Equal(got, []int{30, 16, 1}) {
		t.Errorf("%v", got)
	}
	s.Stride, s.Padding, s.Dilation = []int{2, 3, 1}, []int{1, 0, 3}, []int{1, 2, 1}
	if got := s.OutSize(); !slices.Equal(got, []int{16, 4, 7}) {
		t.Errorf("%v", got)
	}
}

// TestRefused checks that wrong arguments are refused.
func TestRefused(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	mathtest.DNNRefused(t, dev, lib)
	call := lib.Call("x", 0, func(dnn.Call) error { return nil })
	if err := dev.Queue(0).NewStream().Do(call); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a call on the simulated GPU: %v", err)
	}
	if err := lib.With(func(*cudnn.Library, cudnn.Handle) error { return nil }); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("the handle of the simulated GPU: %v", err)
	}
	if err := lib.With(nil); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no function: %v", err)
	}
	if _, err := dnn.Open(nil, dnn.Options{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("no device: %v", err)
	}
	if err := (*dnn.Library)(nil).Close(); err != nil {
		t.Error(err)
	}
}

// TestBindings checks that an execution fails if its bindings are not aligned or overlap.
func TestBindings(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	conv, err := dnn.NewConv[float32](lib, dnn.ConvShape{Batch: 1, In: 1, Out: 1, Size: []int{16}, Kernel: []int{1}})
	must(t, err)
	data, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 64)
	must(t, err)
	for name, c := range map[string]struct {
		make  func(y, x gpu.Slice[float32]) gpu.Op
		align uint64
	}{
		"convolution": {func(y, x gpu.Slice[float32]) gpu.Op {
			return conv.Forward(y, x, data.Slice(60, 61), gpu.Slice[float32]{})
		}, 16},
		"softmax": {func(y, x gpu.Slice[float32]) gpu.Op { return dnn.Softmax(lib, y, x, 4) }, 4},
	} {
		for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
			rec, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
			must(t, err)
			y, err := gpu.BindingSlice[float32](rec, 16)
			must(t, err)
			x, err := gpu.BindingSlice[float32](rec, 16)
			must(t, err)
			_, err = rec.Add(c.make(y, x))
			must(t, err)
			must(t, rec.End())
			run := func(y, x uint64) error {
				st, buffer := dev.Queue(0).NewStream(), data.Range().Buffer
				op := gpu.Execute(rec, buffer.Range(y, 64), buffer.Range(x, 64))
				return errors.Join(st.Do(op), st.Wait(context.Background()))
			}
			must(t, run(0, 64))
			must(t, run(c.align, 80+c.align))
			for text, err := range map[string]error{"x is at address": run(0, 64+c.align/2), "y is at address": run(c.align/2, 80), " overlap": run(0, 48)} {
				if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), text) {
					t.Errorf("%s, mode %v: %v; want %s", name, mode, err, text)
				}
			}
			must(t, rec.Close())
		}
	}
	must(t, errors.Join(conv.Close(), data.Close()))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUndefined checks that the simulated GPU overwrites the results of tokens behind a sequence's
// length.
func TestUndefined(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	attention, err := dnn.NewAttention[smallfloat.Float16](lib, dnn.AttentionShape{Batch: 1, Heads: 1, Queries: 2, HeadDim: 8, Lengths: true})
	must(t, err)
	data, err := gpu.AllocSlice[smallfloat.Float16](dev, gpu.DeviceMem, 32)
	must(t, err)
	lengths, err := gpu.AllocSlice[int32](dev, gpu.DeviceMem, 8)
	must(t, err)
	out, in, got := data.Slice(0, 16), data.Slice(16, 32), make([]smallfloat.Float16, 16)
	st := dev.Queue(0).NewStream()
	must(t, st.Do(data.Fill(smallfloat.ToFloat16(7)), lengths.Fill(1),
		attention.ForwardLengths(out, in, in, in, lengths.Slice(0, 1), lengths.Slice(4, 5)), out.Download(got)))
	must(t, st.Wait(context.Background()))
	for i, x := range got {
		if v := float64(x.Float32()); math.IsNaN(v) != (i >= 8) || i < 8 && v != 7 {
			t.Errorf("element %d is %v", i, v)
		}
	}
	must(t, errors.Join(attention.Close(), data.Close(), lengths.Close()))
}

// TestForwardAllocates checks that making an operation of a plan allocates nothing.
func TestForwardAllocates(t *testing.T) {
	dev, lib := open(t, simdriver.CUDACaps())
	conv, err := dnn.NewConv[float32](lib, dnn.ConvShape{Batch: 1, In: 1, Out: 1, Size: []int{4}, Kernel: []int{1}, Bias: true})
	if err != nil {
		t.Fatal(err)
	}
	data, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	y, x, w, bias := data.Slice(0, 4), data.Slice(4, 8), data.Slice(8, 9), data.Slice(12, 13)
	var op gpu.Op
	if n := testing.AllocsPerRun(100, func() { op = conv.Forward(y, x, w, bias) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := dev.Queue(0).NewStream().Do(op); err != nil {
		t.Fatal(err)
	}
}
