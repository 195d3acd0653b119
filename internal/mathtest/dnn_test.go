//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// openDNN returns cuDNN on the GPU.
func openDNN(t *testing.T) (*gpu.Device, *dnn.Library) {
	dev := openGPU(t)
	lib, err := dnn.Open(dev, dnn.Options{})
	has(t, err)
	t.Cleanup(func() { must(t, lib.Close()) })
	must(t, lib.With(func(l *cudnn.Library, _ cudnn.Handle) error {
		t.Log("cuDNN", cudnn.FormatVersion(l.Version()))
		return nil
	}))
	return dev, lib
}

func TestConv(t *testing.T) {
	dev, lib := openDNN(t)
	Conv(t, dev, lib)
}

func TestAttention(t *testing.T) {
	dev, lib := openDNN(t)
	Attention(t, dev, lib)
}

func TestSoftmax(t *testing.T) {
	dev, lib := openDNN(t)
	Softmax(t, dev, lib)
}

func TestDNNRefused(t *testing.T) {
	dev, lib := openDNN(t)
	DNNRefused(t, dev, lib)
	_, err := dnn.NewConv[float32](lib, dnn.ConvShape{Batch: 1, In: 1, Out: 1, Size: []int{1 << 20}, Kernel: []int{1 << 20}, Dilation: []int{1}})
	t.Log("a kernel of 2^20 elements:", err)
	call := lib.Call("bad", 0, func(c dnn.Call) error {
		return c.WithReason(func() error { return c.BackendExecute(c.Handle, 0, 0) })
	})
	err = dev.Queue(0).NewStream().Do(call)
	if status, ok := errors.AsType[cudnn.Status](err); !ok {
		t.Errorf("a call that cuDNN refuses: %v", err)
	} else {
		t.Log(status)
	}
}
