package dnn

import (
	"fmt"
	"math"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// NormShape describes the normalization of rows: (x - mean)/√(variance + Epsilon)·scale + bias, or
// x/√(mean of squares + Epsilon)·scale if RMS is true, as PyTorch's layer_norm and rms_norm compute
// them.
type NormShape struct {
	Rows, Cols int
	RMS        bool
	Epsilon    float64 // 0 means 1e-5
}

// A Norm is a plan for normalizations of one shape. It may be used concurrently, in several queues
// and recordings.
type Norm[T Element] struct {
	plan *plan
	rms  bool
}

// NewNorm makes a plan for normalizations. It blocks until cuDNN has chosen an engine. cuDNN may
// compile a kernel for the engine. If cuDNN has no engine for the shape or the device, the error is
// gpu.ErrUnsupported, with cuDNN's reason. The device must be an Ampere GPU or a newer one. C:
// CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR.
func NewNorm[T Element](l *Library, s NormShape) (*Norm[T], error) {
	switch {
	case l.isZero():
		return nil, errZero
	case s.Rows < 1 || s.Cols < 1:
		return nil, fmt.Errorf("dnn: norm: Rows is %d, Cols is %d; each must be 1 or more: %w", s.Rows, s.Cols, gpu.ErrArgument)
	case !fits(s.Rows, s.Cols):
		return nil, fmt.Errorf("dnn: norm: %d rows of %d elements are too large: %w", s.Rows, s.Cols, gpu.ErrArgument)
	case !(s.Epsilon >= 0) || math.IsInf(s.Epsilon, 0):
		return nil, fmt.Errorf("dnn: norm: an epsilon of %v: %w", s.Epsilon, gpu.ErrArgument)
	}
	if s.Epsilon == 0 {
		s.Epsilon = 1e-5
	}
	n := &Norm[T]{rms: s.RMS}
	tensors := []spec{specOf[T]("y", s.Rows*s.Cols), specOf[T]("x", s.Rows*s.Cols), specOf[T]("scale", s.Cols)}
	if !s.RMS {
		tensors = append(tensors, specOf[T]("bias", s.Cols))
	}
	var err error
	n.plan, err = newPlan(l, "norm", tensors,
		func(h cudnn.Handle) ([]step, error) { return normSteps[T](l.in.Lib, h, s) },
		func(m standin.Memory, p []driver.Ptr) error { return normalizeRows[T](m, s, p) })
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Forward returns the Op that normalizes the rows of x. scale and bias have Cols elements. bias is
// the zero Slice if RMS is true. y must not overlap x, scale or bias. C: cudnnBackendExecute.
func (n *Norm[T]) Forward(y, x, scale, bias gpu.Slice[T]) gpu.Op {
	tensors := [4]tensor{tensorOf(y), tensorOf(x), tensorOf(scale), tensorOf(bias)}
	if n.rms && bias.Len() == 0 {
		return n.plan.op("norm", tensors[:3]...)
	}
	return n.plan.op("norm", tensors[:]...)
}

// Close destroys the plan. It blocks until the device is done with all work. Close the recordings
// that use the plan first. Closing again does nothing.
func (n *Norm[T]) Close() error { return n.plan.close() }

// Indexes of a normalization's tensors in the addresses of a call.
const (
	normY = iota
	normX
	normScale
	normBias
)

func normSteps[T Element](lib *cudnn.Library, h cudnn.Handle, s NormShape) ([]step, error) {
	g, kind := &graph{lib: lib}, kindOf[T]()
	rows, cols := int64(s.Rows), int64(s.Cols)
	strides := []int64{cols, 1, cols, cols}
	set := []func(*cudnn.Descriptor) error{
		with(cudnn.AttrOperationNormFwdPhase, cudnn.NormFwdInference),
		with(cudnn.AttrOperationNormFwdYdesc, g.memory(normY, kind, []int64{rows, cols, 1, 1}, strides).desc),
		with(cudnn.AttrOperationNormFwdXdesc, g.memory(normX, kind, []int64{rows, cols, 1, 1}, strides).desc),
		with(cudnn.AttrOperationNormFwdScaleDesc, g.memory(normScale, kind, []int64{1, cols, 1, 1}, strides).desc),
		with(cudnn.AttrOperationNormFwdEpsilonDesc, g.number(float32(s.Epsilon)).desc),
	}
	if s.RMS {
		set = append(set, with(cudnn.AttrOperationNormFwdMode, cudnn.RmsNorm))
	} else {
		bias := g.memory(normBias, kind, []int64{1, cols, 1, 1}, strides)
		set = append(set, with(cudnn.AttrOperationNormFwdMode, cudnn.LayerNorm), with(cudnn.AttrOperationNormFwdBiasDesc, bias.desc))
	}
	g.operation(cudnn.BackendOperationNormForwardDescriptor, set...)
	p, err := g.program(h)
	if err != nil {
		return nil, err
	}
	return []step{p}, nil
}
