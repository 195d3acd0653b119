//go:build linux && (amd64 || arm64) && !nogpu

package toolkittest

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cudnn"
)

// TestGPUCuDNNSoftmax checks a softmax over channels by SoftmaxForward, and the error for a bad
// descriptor.
func TestGPUCuDNNSoftmax(t *testing.T) {
	g := OpenGPU(t)
	l, err := cudnn.Open(cudnn.Options{})
	g.Check("Open", err)
	c, err := l.NewContext()
	g.Check("NewContext", err)
	const n, channels = 3, 5
	var x []float32
	var want []float64
	for i := range n {
		sum := 0.0
		for k := range channels {
			x = append(x, float32(i-k)/2)
			sum += math.Exp(float64(i-k) / 2)
		}
		for k := range channels {
			want = append(want, math.Exp(float64(i-k)/2)/sum)
		}
	}
	desc, err := l.CreateTensorDescriptor()
	g.Check("CreateTensorDescriptor", err)
	g.Check("SetTensor4dDescriptor", l.SetTensor4dDescriptor(desc, cudnn.TensorNCHW, cudnn.DataFloat, n, channels, 1, 1))
	size, err := l.GetTensorSizeInBytes(desc)
	if err != nil || size != 4*n*channels {
		t.Errorf("the tensor takes %d bytes, want %d: %v", size, 4*n*channels, err)
	}
	in, out := Upload(g, x...), g.Alloc(size)
	one, zero := float32(1), float32(0)
	g.Check("SoftmaxForward", l.WithReason(func() error {
		return l.SoftmaxForward(c.Handle(), cudnn.SoftmaxAccurate, cudnn.SoftmaxModeChannel, unsafe.Pointer(&one), desc, in, unsafe.Pointer(&zero), desc, out)
	}))
	for i, got := range Download[float32](g, out, n*channels) {
		if math.Abs(float64(got)-want[i]) > 1e-6 {
			t.Errorf("element %d of the softmax is %v, want %v", i, got, want[i])
		}
	}
	err = l.WithReason(func() error { return l.SetTensor4dDescriptor(desc, cudnn.TensorNCHW, cudnn.DataFloat, -1, 1, 1, 1) })
	if code, ok := errors.AsType[cudnn.Status](err); !ok || code/1000 != cudnn.StatusBadParam/1000 {
		t.Errorf("a tensor of -1 elements: %v", err)
	}
	t.Log(err) // the log shows the library's reason
	g.Check("DestroyTensorDescriptor", l.DestroyTensorDescriptor(desc))
	g.Check("Close", c.Close())
}

// A dnn makes cuDNN descriptors, which are closed when the test ends.
type dnn struct {
	*GPU
	lib *cudnn.Library
}

// finalized makes a descriptor and finalizes it after the calls of set.
func (g *dnn) finalized(kind cudnn.BackendDescriptorType, set ...func(*cudnn.Descriptor) error) *cudnn.Descriptor {
	g.t.Helper()
	d := g.empty(kind)
	for _, f := range set {
		g.Check(kind.String(), f(d))
	}
	g.Check("Finalize", d.Finalize())
	return d
}

func (g *dnn) empty(kind cudnn.BackendDescriptorType) *cudnn.Descriptor {
	g.t.Helper()
	d, err := g.lib.NewDescriptor(kind)
	g.Check("NewDescriptor", err)
	g.t.Cleanup(func() {
		if err := d.Close(); err != nil {
			g.t.Errorf("closing %v: %v", kind, err)
		}
	})
	return d
}

func with[T cudnn.Attribute](name cudnn.BackendAttributeName, values ...T) func(*cudnn.Descriptor) error {
	return func(d *cudnn.Descriptor) error { return cudnn.Set(d, name, values...) }
}

// tensor describes a tensor of four dimensions without gaps.
func (g *dnn) tensor(id int64, dims ...int64) cudnn.BackendDescriptor {
	g.t.Helper()
	return g.finalized(cudnn.BackendTensorDescriptor, with(cudnn.AttrTensorUniqueID, id), with(cudnn.AttrTensorDataType, cudnn.DataFloat),
		with(cudnn.AttrTensorByteAlignment, int64(16)), with(cudnn.AttrTensorDimensions, dims...),
		with(cudnn.AttrTensorStrides, dims[1]*dims[2]*dims[3], dims[2]*dims[3], dims[3], 1)).Handle()
}

// TestGPUCuDNNConvolution checks a convolution by the backend API, with the first proposed engine
// that fits. All numbers are small integers, so that the result is exact in any order and with
// tensor cores.
func TestGPUCuDNNConvolution(t *testing.T) {
	gpu := OpenGPU(t)
	l, err := cudnn.Open(cudnn.Options{})
	gpu.Check("Open", err)
	g := &dnn{gpu, l}
	c, err := l.NewContext()
	g.Check("NewContext", err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})

	const channels, filters, side, window = 8, 16, 8, 3 // padded by one element on each side
	x, w := make([]float32, channels*side*side), make([]float32, filters*channels*window*window)
	for i := range x {
		x[i] = float32(i%7 - 3)
	}
	for i := range w {
		w[i] = float32(i%5 - 2)
	}
	want := make([]float32, filters*side*side)
	for i := range want {
		k, row, column := i/(side*side), i/side%side, i%side
		for j := range channels * window * window {
			ch, r, s := j/(window*window), row+j/window%window-1, column+j%window-1
			if r >= 0 && r < side && s >= 0 && s < side {
				want[i] += x[(ch*side+r)*side+s] * w[k*channels*window*window+j]
			}
		}
	}

	xDesc, wDesc, yDesc := g.tensor('x', 1, channels, side, side), g.tensor('w', filters, channels, window, window), g.tensor('y', 1, filters, side, side)
	convolution := g.finalized(cudnn.BackendConvolutionDescriptor,
		with(cudnn.AttrConvolutionCompType, cudnn.DataFloat), with(cudnn.AttrConvolutionConvMode, cudnn.CrossCorrelation),
		with(cudnn.AttrConvolutionSpatialDims, int64(2)), with(cudnn.AttrConvolutionDilations, int64(1), 1), with(cudnn.AttrConvolutionFilterStrides, int64(1), 1),
		with(cudnn.AttrConvolutionPrePaddings, int64(1), 1), with(cudnn.AttrConvolutionPostPaddings, int64(1), 1))
	operation := g.finalized(cudnn.BackendOperationConvolutionForwardDescriptor,
		with(cudnn.AttrOperationConvolutionForwardX, xDesc), with(cudnn.AttrOperationConvolutionForwardW, wDesc), with(cudnn.AttrOperationConvolutionForwardY, yDesc),
		with(cudnn.AttrOperationConvolutionForwardConvDesc, convolution.Handle()),
		with(cudnn.AttrOperationConvolutionForwardAlpha, float32(1)), with(cudnn.AttrOperationConvolutionForwardBeta, float32(0)))
	graph := g.finalized(cudnn.BackendOperationgraphDescriptor, with(cudnn.AttrOperationgraphHandle, c.Handle()), with(cudnn.AttrOperationgraphOps, operation.Handle()))
	plan := g.plan(c, graph)
	if plan == nil {
		t.Fatal("the library has no engine for a convolution of float32")
	}
	size := make([]int64, 1)
	_, err = cudnn.Get(plan, cudnn.AttrExecutionPlanWorkspaceSize, size)
	g.Check("workspace", err)
	y := g.Alloc(4 * uint64(len(want)))
	pack := g.finalized(cudnn.BackendVariantPackDescriptor, with(cudnn.AttrVariantPackUniqueIds, int64('x'), 'w', 'y'),
		with(cudnn.AttrVariantPackDataPointers, Upload(gpu, x...), Upload(gpu, w...), y), with(cudnn.AttrVariantPackWorkspace, g.Alloc(uint64(size[0]))))
	g.Check("BackendExecute", l.WithReason(func() error { return l.BackendExecute(c.Handle(), plan.Handle(), pack.Handle()) }))
	Same(gpu, "a convolution", Download[float32](gpu, y, len(want)), want...)
}

// plan returns an execution plan of the first engine that can run a graph, or nil.
func (g *dnn) plan(c *cudnn.Context, graph *cudnn.Descriptor) *cudnn.Descriptor {
	g.t.Helper()
	for _, mode := range []cudnn.BackendHeurMode{cudnn.HeurModeA, cudnn.HeurModeFallback} {
		heuristic := g.finalized(cudnn.BackendEngineheurDescriptor, with(cudnn.AttrEngineheurOperationGraph, graph.Handle()), with(cudnn.AttrEngineheurMode, mode))
		n, err := cudnn.Get[cudnn.BackendDescriptor](heuristic, cudnn.AttrEngineheurResults, nil)
		g.Check("engines", err)
		configs := make([]cudnn.BackendDescriptor, n)
		for i := range configs {
			configs[i] = g.empty(cudnn.BackendEnginecfgDescriptor).Handle()
		}
		n, err = cudnn.Get(heuristic, cudnn.AttrEngineheurResults, configs)
		g.Check("engines", err)
		for _, config := range configs[:n] {
			plan := g.empty(cudnn.BackendExecutionPlanDescriptor)
			g.Check("plan", cudnn.Set(plan, cudnn.AttrExecutionPlanHandle, c.Handle()))
			g.Check("plan", cudnn.Set(plan, cudnn.AttrExecutionPlanEngineConfig, config))
			err := plan.Finalize()
			if err == nil {
				return plan
			}
			g.t.Logf("an engine does not fit: %v", err)
		}
	}
	return nil
}
