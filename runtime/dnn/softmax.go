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
	"github.com/puregpu/puregpu/runtime/internal/libcall"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// Softmax returns an Op that computes the softmax of each row of cols elements. y may be x;
// otherwise they must not overlap. C: cudnnSoftmaxForward. Wrong arguments make an Op that carries
// the error.
func Softmax[T Element](l *Library, y, x gpu.Slice[T], cols int) gpu.Op {
	n := x.Len()
	bad := func(format string, args ...any) gpu.Op {
		return gpu.BadOp(fmt.Errorf("dnn: softmax: %s: %w", fmt.Sprintf(format, args...), gpu.ErrArgument))
	}
	switch {
	case l.isZero():
		return gpu.BadOp(errZero)
	case cols < 1 || n < 1:
		return bad("rows of %d elements, x of %d elements; each must be 1 or more", cols, n)
	case n%cols != 0:
		return bad("x has %d elements, which is not a multiple of %d, the elements of a row", n, cols)
	case y.Len() != n:
		return bad("x has %d elements, and y has %d", n, y.Len())
	case cols > math.MaxInt32 || n/cols > math.MaxInt32:
		return bad("%d rows of %d elements are too large", n/cols, cols)
	}
	to, from := y.Range(), x.Range()
	if to.Offset != from.Offset && overlap(to, from) {
		return bad("x and y overlap, and are not the same")
	}
	rows, size := n/cols, uint64(unsafe.Sizeof(*new(T)))
	// check checks a recording's bindings.
	check := func(y, x uint64) error {
		err := libcall.Aligned("y", "address %#x", y, size)
		if err == nil {
			err = libcall.Aligned("x", "address %#x", x, size)
		}
		if err == nil && y != x && libcall.Overlap(y, to.Size, x, from.Size) {
			err = fmt.Errorf("x and y overlap, and are not the same: %w", gpu.ErrArgument)
		}
		if err != nil {
			return fmt.Errorf("dnn: softmax: %w", err)
		}
		return nil
	}
	if l.in.Dev.Simulated() {
		return gpu.Native("softmax", func(c gpu.NativeCall) error {
			if err := check(uint64(c.Ptrs[0]), uint64(c.Ptrs[1])); err != nil {
				return err
			}
			at := [2]driver.Ptr(c.Ptrs)
			return l.in.Handle.StandIn(c, "softmax", nil, func(m standin.Memory) error { return softmax[T](m, at[0], at[1], rows, cols) })
		}, to, from)
	}
	return l.Call("softmax", 0, func(c Call) error {
		if err := check(uint64(c.Ptrs[0]), uint64(c.Ptrs[1])); err != nil {
			return err
		}
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
	}, to, from)
}
