package dnn

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// Softmax returns an Op that computes the softmax of each row of cols elements. y may be x.
// C: cudnnSoftmaxForward. Wrong arguments make an Op that carries the error.
func Softmax[T Element](l *Library, y, x gpu.Slice[T], cols int) gpu.Op {
	n := x.Len()
	switch {
	case l.isZero():
		return gpu.BadOp(errZero)
	case cols < 1 || n < 1 || n%cols != 0 || y.Len() != n || cols > math.MaxInt32 || n/cols > math.MaxInt32:
		return gpu.BadOp(fmt.Errorf("dnn: softmax: rows of %d elements, x of %d and y of %d elements: %w", cols, n, y.Len(), gpu.ErrArgument))
	case x != y && overlap(y.Range(), x.Range()):
		return gpu.BadOp(fmt.Errorf("dnn: softmax: x and y overlap, and are not the same: %w", gpu.ErrArgument))
	}
	rows := n / cols
	if l.in.Dev.Simulated() {
		return gpu.Native("softmax", func(c gpu.NativeCall) error {
			at := [2]driver.Ptr(c.Ptrs)
			return l.in.Handle.StandIn(c, "softmax", func(m standin.Memory) error { return softmax[T](m, at[0], at[1], rows, cols) })
		}, y.Range(), x.Range())
	}
	return l.Call("softmax", 0, func(c Call) error {
		err := c.WithReason(func() error {
			desc, err := c.CreateTensorDescriptor()
			if err != nil {
				return err
			}
			err = c.SetTensor4dDescriptor(desc, cudnn.TensorNCHW, kindOf[T](), int32(rows), int32(cols), 1, 1)
			if err == nil {
				one, zero := float32(1), float32(0)
				err = c.SoftmaxForward(c.Handle, cudnn.SoftmaxAccurate, cudnn.SoftmaxModeInstance, unsafe.Pointer(&one), desc, cuda.DevicePtr(c.Ptrs[1]),
					unsafe.Pointer(&zero), desc, cuda.DevicePtr(c.Ptrs[0]))
			}
			return errors.Join(err, c.DestroyTensorDescriptor(desc))
		})
		if err != nil {
			return fmt.Errorf("dnn: softmax: %w", err)
		}
		return nil
	}, y.Range(), x.Range())
}
