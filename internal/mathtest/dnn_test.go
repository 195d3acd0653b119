//go:build linux && (amd64 || arm64) && !nogpu

package mathtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/dnn"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
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

func TestNorm(t *testing.T) {
	dev, lib := openDNN(t)
	Norm(t, dev, lib)
}

func TestDNNTogether(t *testing.T) {
	dev, lib := openDNN(t)
	DNNTogether(t, dev, lib)
}

func TestDNNRefused(t *testing.T) {
	dev, lib := openDNN(t)
	DNNRefused(t, dev, lib)
	call, st := lib.Call("bad", 0, func(c dnn.Call) error {
		return c.WithReason(func() error { return c.BackendExecute(c.Handle, 0, 0) })
	}), dev.Queue(0).NewStream()
	err := st.Do(call)
	if err == nil {
		err = st.Wait(minute(t))
	}
	if _, ok := errors.AsType[cudnn.Status](err); !ok {
		t.Errorf("a call that cuDNN refuses: %v", err)
	}
	t.Log(err)
}

// TestDNNTorch writes inputs and results that testdata/compare.py compares with PyTorch.
func TestDNNTorch(t *testing.T) {
	if os.Getenv("PUREGPU_MATH_OUT") == "" {
		t.Skip("PUREGPU_MATH_OUT is not set")
	}
	dev, lib := openDNN(t)
	rec := record(t, "dnn")
	for _, s := range convShapes {
		for _, s.ChannelsLast = range []bool{false, true} {
			recordConv(t, rec, dev, lib, s, f32, "float32", 1e-5)
			recordConv(t, rec, dev, lib, s, f16, "float16", 2e-3)
			recordConv(t, rec, dev, lib, s, bf16, "bfloat16", 2e-2)
			s.TF32 = true
			recordConv(t, rec, dev, lib, s, f32, "float32", 4e-3)
			s.TF32 = false
		}
	}
	for _, s := range attentionShapes {
		if s.Lengths { // PyTorch has no lengths
			continue
		}
		recordAttention(t, rec, dev, lib, s, f16, "float16", 4e-3)
		recordAttention(t, rec, dev, lib, s, bf16, "bfloat16", 3e-2)
	}
	for _, s := range normShapes {
		for _, s.RMS = range []bool{false, true} {
			recordNorm(t, rec, dev, lib, s, f32, "float32", 1e-6)
			recordNorm(t, rec, dev, lib, s, f16, "float16", 1e-3)
			recordNorm(t, rec, dev, lib, s, bf16, "bfloat16", 1e-2)
		}
	}
	recordSoftmax(t, rec, dev, lib, f32, "float32", 1e-6)
	recordSoftmax(t, rec, dev, lib, f16, "float16", 1e-3)
	recordSoftmax(t, rec, dev, lib, bf16, "bfloat16", 1e-2)
}

// wide returns elements as an array of float32, which every reader of the files has.
func wide[T dnn.Element](name string, e element[T], data []T, shape ...int) array {
	all := make([]float32, len(data))
	for i, x := range data {
		all[i] = float32(e.from(x))
	}
	return arrayOf(name, all, shape...)
}

func recordConv[T dnn.Element](t *testing.T, rec *recorder, dev *gpu.Device, lib *dnn.Library, s dnn.ConvShape, e element[T], name string, eps float64) {
	t.Helper()
	plan, err := dnn.NewConv[T](lib, s)
	must(t, err)
	shape := func(outer, channels int, size []int) []int {
		if s.ChannelsLast {
			return append(append([]int{outer}, size...), channels)
		}
		return append([]int{outer, channels}, size...)
	}
	r, groups := rand.New(rand.NewPCG(31, 32)), max(s.Groups, 1)
	xShape, wShape, yShape := shape(s.Batch, s.In, s.Size), shape(s.Out, s.In/groups, s.Kernel), shape(s.Batch, s.Out, s.OutSize())
	xs, ws, biases := randoms(r, e, count(xShape...)), randoms(r, e, count(wShape...)), randoms(r, e, s.Out)
	y, bias := slice(t, dev, make([]T, count(yShape...))), gpu.Slice[T]{}
	if s.Bias {
		bias = slice(t, dev, biases)
	}
	do(t, dev, plan.Forward(y, slice(t, dev, xs), slice(t, dev, ws), bias))
	rec.add("conv", map[string]any{"type": name, "stride": s.Stride, "padding": s.Padding, "dilation": s.Dilation, "groups": groups, "bias": s.Bias, "relu": s.ReLU,
		"tf32": s.TF32, "channels_last": s.ChannelsLast, "eps": eps},
		wide("x", e, xs, xShape...), wide("w", e, ws, wShape...), wide("bias", e, biases, s.Out), wide("y", e, contents(t, dev, y), yShape...))
	must(t, plan.Close())
}

func recordAttention[T dnn.Half](t *testing.T, rec *recorder, dev *gpu.Device, lib *dnn.Library, s dnn.AttentionShape, e element[T], name string, eps float64) {
	t.Helper()
	plan, err := dnn.NewAttention[T](lib, s)
	must(t, err)
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.Keys == 0 {
		s.Keys = s.Queries
	}
	r, qShape, kShape := rand.New(rand.NewPCG(33, 34)), []int{s.Batch, s.Heads, s.Queries, s.HeadDim}, []int{s.Batch, s.KVHeads, s.Keys, s.HeadDim}
	qs, ks, vs := randoms(r, e, count(qShape...)), randoms(r, e, count(kShape...)), randoms(r, e, count(kShape...))
	out := slice(t, dev, make([]T, len(qs)))
	do(t, dev, plan.Forward(out, slice(t, dev, qs), slice(t, dev, ks), slice(t, dev, vs)))
	rec.add("attention", map[string]any{"type": name, "causal": s.Causal, "scale": s.Scale, "eps": eps},
		wide("q", e, qs, qShape...), wide("k", e, ks, kShape...), wide("v", e, vs, kShape...), wide("out", e, contents(t, dev, out), qShape...))
	must(t, plan.Close())
}

func recordNorm[T dnn.Element](t *testing.T, rec *recorder, dev *gpu.Device, lib *dnn.Library, s dnn.NormShape, e element[T], name string, eps float64) {
	t.Helper()
	plan, err := dnn.NewNorm[T](lib, s)
	must(t, err)
	r := rand.New(rand.NewPCG(37, 38))
	xs, scales, biases := randoms(r, e, s.Rows*s.Cols), randoms(r, e, s.Cols), randoms(r, e, s.Cols)
	y, bias := slice(t, dev, make([]T, len(xs))), gpu.Slice[T]{}
	if !s.RMS {
		bias = slice(t, dev, biases)
	}
	do(t, dev, plan.Forward(y, slice(t, dev, xs), slice(t, dev, scales), bias))
	rec.add("norm", map[string]any{"type": name, "rms": s.RMS, "epsilon": s.Epsilon, "eps": eps},
		wide("x", e, xs, s.Rows, s.Cols), wide("scale", e, scales, s.Cols), wide("bias", e, biases, s.Cols), wide("y", e, contents(t, dev, y), s.Rows, s.Cols))
	must(t, plan.Close())
}

func recordSoftmax[T dnn.Element](t *testing.T, rec *recorder, dev *gpu.Device, lib *dnn.Library, e element[T], name string, eps float64) {
	t.Helper()
	const rows, cols = 37, 1001
	xs := randoms(rand.New(rand.NewPCG(35, 36)), e, rows*cols)
	y := slice(t, dev, make([]T, len(xs)))
	do(t, dev, dnn.Softmax(lib, y, slice(t, dev, xs), cols))
	rec.add("softmax", map[string]any{"type": name, "eps": eps}, wide("x", e, xs, rows, cols), wide("y", e, contents(t, dev, y), rows, cols))
}

// dnnTimes returns the rows of convolutions, attention, normalizations and softmax.
func dnnTimes() []timed {
	layer := dnn.ConvShape{Batch: 64, In: 128, Out: 128, Size: []int{56, 56}, Kernel: []int{3, 3}, Padding: []int{1, 1}, TF32: true}
	last, small, fused := layer, layer, layer
	last.ChannelsLast = true
	small.Batch, small.In, small.Out, small.Size, small.ChannelsLast = 1, 64, 64, []int{14, 14}, true
	fused.ChannelsLast, fused.Bias, fused.ReLU = true, true, true
	prefill := dnn.AttentionShape{Batch: 4, Heads: 32, KVHeads: 8, Queries: 4096, HeadDim: 128, Causal: true}
	decode := dnn.AttentionShape{Batch: 32, Heads: 32, KVHeads: 8, Queries: 1, Keys: 4096, HeadDim: 128}
	tiny := dnn.AttentionShape{Batch: 1, Heads: 8, Queries: 64, HeadDim: 64}
	return []timed{
		convTime[float32](layer, "conv NCHW", "float32"), convTime[smallfloat.BFloat16](layer, "conv NCHW", "bfloat16"),
		convTime[float32](last, "conv NHWC", "float32"), convTime[smallfloat.BFloat16](last, "conv NHWC", "bfloat16"),
		convTime[smallfloat.BFloat16](fused, "conv bias ReLU NHWC", "bfloat16"), convTime[smallfloat.BFloat16](small, "conv small", "bfloat16"),
		attentionTime[smallfloat.BFloat16](prefill, "attention prefill", "bfloat16"), attentionTime[smallfloat.BFloat16](decode, "attention decode", "bfloat16"),
		attentionTime[smallfloat.Float16](tiny, "attention small", "float16"),
		normTime[smallfloat.BFloat16](dnn.NormShape{Rows: 16384, Cols: 4096}, "layer norm", "bfloat16"), normTime[smallfloat.BFloat16](dnn.NormShape{Rows: 16384, Cols: 4096, RMS: true}, "rms norm", "bfloat16"),
		softmaxTime[float32](8192, "float32"), softmaxTime[smallfloat.BFloat16](8192, "bfloat16"), softmaxTime[float32](32, "float32"),
	}
}

func convTime[T dnn.Element](s dnn.ConvShape, name, kind string) timed {
	h, w := s.Size[0], s.Size[1]
	setup := fmt.Sprintf("x = torch.zeros(%d, %d, %d, %d, dtype=torch.%s, device='cuda'); w = torch.zeros(%d, %d, %d, %d, dtype=x.dtype, device='cuda')",
		s.Batch, s.In, h, w, kind, s.Out, s.In, s.Kernel[0], s.Kernel[1])
	run := "torch.nn.functional.conv2d(x, w, padding=1)"
	if s.ChannelsLast {
		setup += "; x = x.contiguous(memory_format=torch.channels_last); w = w.contiguous(memory_format=torch.channels_last)"
	}
	if s.Bias {
		setup += fmt.Sprintf("; b = torch.zeros(%d, dtype=x.dtype, device='cuda')", s.Out)
		run = "torch.relu_(torch.nn.functional.conv2d(x, w, b, padding=1))"
	}
	return timed{name: name + " " + kind, small: s.Batch == 1, setup: setup, run: run, open: func(t *testing.T, dev *gpu.Device) gpu.Op {
		lib, err := dnn.Open(dev, dnn.Options{})
		has(t, err)
		t.Cleanup(func() { must(t, lib.Close()) })
		plan, err := dnn.NewConv[T](lib, s)
		must(t, err)
		var bias gpu.Slice[T]
		if s.Bias {
			bias = zeros[T](t, dev, s.Out)
		}
		return plan.Forward(zeros[T](t, dev, s.Batch*s.Out*h*w), zeros[T](t, dev, s.Batch*s.In*h*w), zeros[T](t, dev, s.Out*s.In*count(s.Kernel...)), bias)
	}}
}

// zeros returns memory of zeros.
func zeros[T any](t *testing.T, dev *gpu.Device, n int) gpu.Slice[T] {
	t.Helper()
	s, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	var zero T
	do(t, dev, s.Fill(zero))
	return s
}

func attentionTime[T dnn.Half](s dnn.AttentionShape, name, kind string) timed {
	keys, heads := s.Keys, s.KVHeads
	if keys == 0 {
		keys = s.Queries
	}
	if heads == 0 {
		heads = s.Heads
	}
	causal := "False"
	if s.Causal {
		causal = "True"
	}
	return timed{name: name + " " + kind, small: s.Batch == 1,
		setup: fmt.Sprintf("q = torch.zeros(%d, %d, %d, %d, dtype=torch.%s, device='cuda'); k = torch.zeros(%d, %d, %d, %d, dtype=q.dtype, device='cuda'); v = k.clone()",
			s.Batch, s.Heads, s.Queries, s.HeadDim, kind, s.Batch, heads, keys, s.HeadDim),
		run: "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=" + causal + ", enable_gqa=True)",
		open: func(t *testing.T, dev *gpu.Device) gpu.Op {
			lib, err := dnn.Open(dev, dnn.Options{})
			has(t, err)
			t.Cleanup(func() { must(t, lib.Close()) })
			plan, err := dnn.NewAttention[T](lib, s)
			must(t, err)
			n, m := s.Batch*s.Heads*s.Queries*s.HeadDim, s.Batch*heads*keys*s.HeadDim
			return plan.Forward(zeros[T](t, dev, n), zeros[T](t, dev, n), zeros[T](t, dev, m), zeros[T](t, dev, m))
		}}
}

func normTime[T dnn.Element](s dnn.NormShape, name, kind string) timed {
	run := "torch.nn.functional.layer_norm(x, s.shape, s, s, 1e-5)"
	if s.RMS {
		run = "torch.nn.functional.rms_norm(x, s.shape, s, 1e-5)"
	}
	return timed{name: name + " " + kind, run: run,
		setup: fmt.Sprintf("x = torch.zeros(%d, %d, dtype=torch.%s, device='cuda'); s = torch.zeros(%[2]d, dtype=x.dtype, device='cuda')", s.Rows, s.Cols, kind),
		open: func(t *testing.T, dev *gpu.Device) gpu.Op {
			lib, err := dnn.Open(dev, dnn.Options{})
			has(t, err)
			t.Cleanup(func() { must(t, lib.Close()) })
			plan, err := dnn.NewNorm[T](lib, s)
			must(t, err)
			var bias gpu.Slice[T]
			if !s.RMS {
				bias = zeros[T](t, dev, s.Cols)
			}
			return plan.Forward(zeros[T](t, dev, s.Rows*s.Cols), zeros[T](t, dev, s.Rows*s.Cols), zeros[T](t, dev, s.Cols), bias)
		}}
}

func softmaxTime[T dnn.Element](n int, kind string) timed {
	return timed{name: fmt.Sprintf("softmax %d %s", n, kind), small: n < 100,
		setup: fmt.Sprintf("x = torch.zeros(%d, %[1]d, dtype=torch.%s, device='cuda'); y = torch.empty_like(x)", n, kind),
		run:   "torch.softmax(x, dim=1, out=y)",
		open: func(t *testing.T, dev *gpu.Device) gpu.Op {
			lib, err := dnn.Open(dev, dnn.Options{})
			has(t, err)
			t.Cleanup(func() { must(t, lib.Close()) })
			return dnn.Softmax(lib, zeros[T](t, dev, n*n), zeros[T](t, dev, n*n), n)
		}}
}
