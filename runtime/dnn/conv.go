package dnn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// ConvShape describes convolutions of one, two or three dimensions, as PyTorch's conv1d, conv2d and
// conv3d compute them. The kernel is not flipped.
//
// Tensors are in row-major order. By default, their dimensions are images (Batch), channels, and
// then Size: NCHW in two dimensions. The dimensions of the weights are Out, In/Groups, and then
// Kernel.
type ConvShape struct {
	Batch        int   // number of images
	In, Out      int   // numbers of channels
	Size         []int // size of an image: length; height and width; or depth, height and width
	Kernel       []int // size of the kernel, in the same order as Size
	Stride       []int // step of the kernel in each dimension; nil means 1
	Padding      []int // zeros added on both sides of each dimension; nil means 0
	Dilation     []int // distance between the kernel's elements in each dimension; nil means 1
	Groups       int   // channels are divided into groups that do not mix; 0 means 1
	ChannelsLast bool  // channels are the last dimension of images and weights: NHWC in two dimensions
	Bias         bool  // a number is added to each channel of the result
	ReLU         bool  // negative numbers of the result become 0
	TF32         bool  // the factors of float32 products may be rounded to TF32, which is faster
}

// OutSize returns the size of an image of the result.
func (s ConvShape) OutSize() []int {
	size := make([]int, len(s.Size))
	for i := range size {
		size[i] = (s.Size[i]+2*or(s.Padding, i, 0)-or(s.Dilation, i, 1)*(s.Kernel[i]-1)-1)/or(s.Stride, i, 1) + 1
	}
	return size
}

// or returns list[i]. A nil list stands for a list whose elements are all otherwise.
func or(list []int, i, otherwise int) int {
	if list == nil {
		return otherwise
	}
	return list[i]
}

func (s ConvShape) groups() int { return max(s.Groups, 1) }

// check checks the shape. Computations with the sizes of a valid shape do not overflow.
func (s ConvShape) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dnn: convolution: %s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument)
	}
	n := len(s.Size)
	switch {
	case n < 1 || n > 3:
		return bad("images of %d dimensions, and not 1, 2 or 3", n)
	case len(s.Kernel) != n:
		return bad("a kernel of %d dimensions for images of %d", len(s.Kernel), n)
	case s.Batch < 1 || s.In < 1 || s.Out < 1:
		return bad("Batch is %d, In is %d, Out is %d; each must be 1 or more", s.Batch, s.In, s.Out)
	case s.Groups < 0:
		return bad("%d groups", s.Groups)
	case s.In%s.groups() != 0:
		return bad("%d groups do not divide the %d input channels", s.Groups, s.In)
	case s.Out%s.groups() != 0:
		return bad("%d groups do not divide the %d output channels", s.Groups, s.Out)
	}
	for _, x := range []struct {
		name  string
		list  []int
		least int
	}{{"size", s.Size, 1}, {"kernel", s.Kernel, 1}, {"stride", s.Stride, 1}, {"padding", s.Padding, 0}, {"dilation", s.Dilation, 1}} {
		if x.list != nil && len(x.list) != n {
			return bad("a %s of %d dimensions for images of %d", x.name, len(x.list), n)
		}
		for _, v := range x.list {
			if v < x.least || v > math.MaxInt32/4 {
				return bad("a %s of %v", x.name, x.list)
			}
		}
	}
	for i, v := range s.OutSize() {
		if v < 1 || (s.Kernel[i]-1)*or(s.Dilation, i, 1)+1 > s.Size[i]+2*or(s.Padding, i, 0) {
			return bad("a kernel of %v is larger than images of %v with their padding", s.Kernel, s.Size)
		}
	}
	for _, dims := range [][]int{append([]int{s.Batch, s.In}, s.Size...), append([]int{s.Batch, s.Out}, s.OutSize()...), append([]int{s.Out, s.In / s.groups()}, s.Kernel...)} {
		if !fits(dims...) {
			return bad("a tensor of %v", dims)
		}
	}
	return nil
}

// fits reports whether the size in bytes of a tensor with these dimensions fits into an int, with
// room to spare.
func fits(dims ...int) bool {
	n := 1
	for _, d := range dims {
		if d > math.MaxInt/16/n {
			return false
		}
		n *= d
	}
	return true
}

// product returns the number of elements of a tensor.
func product(dims ...int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// clone returns a shape that shares no memory with s.
func (s ConvShape) clone() ConvShape {
	for _, list := range []*[]int{&s.Size, &s.Kernel, &s.Stride, &s.Padding, &s.Dilation} {
		*list = slices.Clone(*list)
	}
	return s
}

// A Conv is a plan for convolutions of one shape. It may be used concurrently, in several queues
// and recordings.
type Conv[T Element] struct {
	plan *plan
	bias bool // the shape has Bias
}

// NewConv makes a plan for convolutions. It blocks until cuDNN has chosen an engine, which may
// compile a kernel. Bias and ReLU are part of the convolution's kernel if cuDNN has such an engine;
// otherwise the result is rounded to T before they are applied. If cuDNN has no engine for the
// shape, the error is gpu.ErrUnsupported, with cuDNN's reason.
// C: CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR.
func NewConv[T Element](l *Library, s ConvShape) (*Conv[T], error) {
	if l.isZero() {
		return nil, errZero
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s = s.clone()
	c := &Conv[T]{bias: s.Bias}
	tensors := []spec{
		specOf[T]("y", s.Batch*s.Out*product(s.OutSize()...)), specOf[T]("x", s.Batch*s.In*product(s.Size...)),
		specOf[T]("w", s.Out*(s.In/s.groups())*product(s.Kernel...)),
	}
	if s.Bias {
		tensors = append(tensors, specOf[T]("bias", s.Out))
	}
	var err error
	c.plan, err = newPlan(l, "convolution", tensors,
		func(h cudnn.Handle) ([]step, error) { return convSteps[T](l.in.Lib, h, s) },
		func(m standin.Memory, p []driver.Ptr) error { return convolve[T](m, s, p) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Forward returns the Op that convolves x with the weights w. bias has Out elements, or is the zero
// Slice if the shape has no bias. y must not overlap x, w or bias. C: cudnnBackendExecute.
func (c *Conv[T]) Forward(y, x, w, bias gpu.Slice[T]) gpu.Op {
	tensors := [4]tensor{tensorOf(y), tensorOf(x), tensorOf(w), tensorOf(bias)}
	if !c.bias && bias.Len() == 0 {
		return c.plan.op("convolution", tensors[:3]...)
	}
	return c.plan.op("convolution", tensors[:]...)
}

// Close destroys the plan. It blocks until the device is done with all work. Close the recordings
// that use the plan first. Closing again does nothing.
func (c *Conv[T]) Close() error { return c.plan.close() }

// Indexes of a convolution's tensors in the addresses of a call.
const (
	convY = iota
	convX
	convW
	convBias
)

// convSteps makes the steps of a convolution. If cuDNN has an engine that also applies bias and
// ReLU, there is one step. Otherwise one step computes the convolution and a second step applies
// bias and ReLU.
func convSteps[T Element](lib *cudnn.Library, h cudnn.Handle, s ConvShape) ([]step, error) {
	all, err := convProgram[T](lib, h, s, s.Bias, s.ReLU)
	if err == nil {
		return []step{all}, nil
	}
	if !s.Bias && !s.ReLU {
		return nil, err
	}
	first, err := convProgram[T](lib, h, s, false, false)
	if err != nil {
		return nil, err
	}
	second, err := newEpilogue(lib, s, kindOf[T]())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bias and ReLU: %w", err), first.destroy())
	}
	return []step{first, second}, nil
}

// convProgram makes a program for a convolution. The program adds the bias if bias is true, and
// applies ReLU if relu is true.
func convProgram[T Element](lib *cudnn.Library, h cudnn.Handle, s ConvShape, bias, relu bool) (*program, error) {
	g, kind := &graph{lib: lib}, kindOf[T]()
	yDims, yStrides := s.layout(s.Batch, s.Out, s.OutSize())
	xDims, xStrides := s.layout(s.Batch, s.In, s.Size)
	wDims, wStrides := s.layout(s.Out, s.In/s.groups(), s.Kernel)
	y, x, w := g.memory(convY, kind, yDims, yStrides), g.memory(convX, kind, xDims, xStrides), g.memory(convW, kind, wDims, wStrides)
	result := func(last bool) node { // returns the tensor for the result of an operation
		if last {
			return y
		}
		return g.between(cudnn.DataFloat, yDims, yStrides)
	}
	n := len(yDims) - 2
	list := func(values []int, otherwise int) []int64 { // adds a value for the dimension that layout adds to images of one dimension
		all := slices.Repeat([]int64{int64(otherwise)}, n)
		for i := range s.Size {
			all[n-len(s.Size)+i] = int64(or(values, i, otherwise))
		}
		return all
	}
	desc := g.make(cudnn.BackendConvolutionDescriptor,
		with(cudnn.AttrConvolutionCompType, cudnn.DataFloat), with(cudnn.AttrConvolutionConvMode, cudnn.CrossCorrelation),
		with(cudnn.AttrConvolutionSpatialDims, int64(n)), with(cudnn.AttrConvolutionFilterStrides, list(s.Stride, 1)...),
		with(cudnn.AttrConvolutionDilations, list(s.Dilation, 1)...),
		with(cudnn.AttrConvolutionPrePaddings, list(s.Padding, 0)...), with(cudnn.AttrConvolutionPostPaddings, list(s.Padding, 0)...))
	last := result(!bias && !relu)
	g.operation(cudnn.BackendOperationConvolutionForwardDescriptor, with(cudnn.AttrOperationConvolutionForwardConvDesc, desc),
		with(cudnn.AttrOperationConvolutionForwardX, x.desc), with(cudnn.AttrOperationConvolutionForwardW, w.desc), with(cudnn.AttrOperationConvolutionForwardY, last.desc),
		with(cudnn.AttrOperationConvolutionForwardAlpha, float32(1)), with(cudnn.AttrOperationConvolutionForwardBeta, float32(0)))
	if bias {
		dims, strides := s.biasLayout()
		last = g.pointwise(result(!relu), cudnn.PointwiseAdd, cudnn.DataFloat, last, g.memory(convBias, kind, dims, strides))
	}
	if relu {
		g.relu(y, last)
	}
	avoid := []cudnn.BackendNumericalNote{cudnn.NumericalNoteDownConvertInputs, cudnn.NumericalNoteReducedPrecisionReduction}
	if kind == cudnn.DataFloat && !s.TF32 {
		avoid = append(avoid, cudnn.NumericalNoteTensorCore)
	}
	return g.program(h, avoid...)
}

// biasLayout returns the dimensions and strides of the bias.
func (s ConvShape) biasLayout() (dims, strides []int64) {
	n := 2 + max(len(s.Size), 2)
	dims, strides = slices.Repeat([]int64{1}, n), slices.Repeat([]int64{int64(s.Out)}, n)
	dims[1], strides[1] = int64(s.Out), 1
	return dims, strides
}

// layout returns the dimensions and strides of images or weights for cuDNN. If size has one
// dimension, layout puts a dimension of size 1 before it.
func (s ConvShape) layout(outer, channels int, size []int) (dims, strides []int64) {
	dims = []int64{int64(outer), int64(channels)}
	if len(size) == 1 {
		dims = append(dims, 1)
	}
	for _, v := range size {
		dims = append(dims, int64(v))
	}
	if !s.ChannelsLast {
		return dims, packed(dims)
	}
	strides = packed(append(append([]int64{dims[0]}, dims[2:]...), dims[1]))
	last := len(strides) - 1
	return dims, append([]int64{strides[0], strides[last]}, strides[1:last]...)
}
