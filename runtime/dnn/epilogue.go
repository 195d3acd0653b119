package dnn

//lint:file-ignore SA1019 cuDNN's graphs of bias and ReLU alone have no engine for many tensors, and these functions take all

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// An epilogue is the step after a convolution that adds the bias to the result and applies ReLU, as
// the shape says. It is used if no engine of cuDNN adds the bias and applies ReLU in the
// convolution's kernel.
type epilogue struct {
	lib     *cudnn.Library
	y, bias cudnn.TensorDescriptor     // bias is 0 if there is none
	relu    cudnn.ActivationDescriptor // 0 if there is none
}

// newEpilogue describes the epilogue of a convolution.
func newEpilogue(lib *cudnn.Library, s ConvShape, kind cudnn.DataType) (*epilogue, error) {
	e := &epilogue{lib: lib}
	err := lib.WithReason(func() (err error) {
		dims, strides := s.layout(s.Batch, s.Out, s.OutSize())
		if e.y, err = tensorDescriptor(lib, kind, dims, strides); err != nil {
			return err
		}
		if s.Bias {
			dims, strides = s.biasLayout()
			if e.bias, err = tensorDescriptor(lib, kind, dims, strides); err != nil {
				return err
			}
		}
		if s.ReLU {
			if e.relu, err = lib.CreateActivationDescriptor(); err != nil {
				return err
			}
			return lib.SetActivationDescriptor(e.relu, cudnn.ActivationRELU, cudnn.PropagateNan, 0)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, e.destroy())
	}
	return e, nil
}

// tensorDescriptor makes a descriptor of a tensor for cuDNN's functions outside graphs. If it
// cannot set the descriptor's values, tensorDescriptor returns the descriptor with the error, and
// the caller destroys the descriptor.
func tensorDescriptor(lib *cudnn.Library, kind cudnn.DataType, dims, strides []int64) (d cudnn.TensorDescriptor, err error) {
	var numbers [2][]int32
	for i, list := range [2][]int64{dims, strides} {
		for _, v := range list {
			if v > math.MaxInt32 {
				return 0, fmt.Errorf("a tensor of dimensions %v and strides %v is too large: %w", dims, strides, gpu.ErrUnsupported)
			}
			numbers[i] = append(numbers[i], int32(v))
		}
	}
	if d, err = lib.CreateTensorDescriptor(); err != nil {
		return 0, err
	}
	return d, lib.SetTensorNdDescriptor(d, kind, numbers[0], numbers[1])
}

// run puts the epilogue into the handle's stream.
func (e *epilogue) run(h cudnn.Handle, at []driver.Ptr, _ driver.Ptr) error {
	return e.lib.WithReason(func() error {
		one, zero, y := float32(1), float32(0), cuda.DevicePtr(at[convY])
		if e.bias != 0 {
			if err := e.lib.AddTensor(h, unsafe.Pointer(&one), e.bias, cuda.DevicePtr(at[convBias]), unsafe.Pointer(&one), e.y, y); err != nil {
				return err
			}
		}
		if e.relu == 0 {
			return nil
		}
		return e.lib.ActivationForward(h, e.relu, unsafe.Pointer(&one), e.y, y, unsafe.Pointer(&zero), e.y, y)
	})
}

func (e *epilogue) scratch() uint64 { return 0 }

func (e *epilogue) destroy() error {
	var errs []error
	if e.y != 0 {
		errs = append(errs, e.lib.DestroyTensorDescriptor(e.y))
	}
	if e.bias != 0 {
		errs = append(errs, e.lib.DestroyTensorDescriptor(e.bias))
	}
	if e.relu != 0 {
		errs = append(errs, e.lib.DestroyActivationDescriptor(e.relu))
	}
	return errors.Join(errs...)
}
