package dnn_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/internal/mathtest"
	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
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
