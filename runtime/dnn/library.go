package dnn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options are the options of [Open]. The zero value finds the library of the system.
type Options struct {
	CuDNN cudnn.Options // where cuDNN is
}

// A Library is cuDNN for one device. All methods may be called concurrently.
type Library struct {
	dev    libcall.Device
	lib    *cudnn.Library // nil on a simulated device
	handle *libcall.Handle[cudnn.Handle]

	steps map[step]bool // of plans, that are not destroyed; used only by functions that use handle
}

// Open loads cuDNN for a device and makes a handle. It blocks while the library initializes. If the
// library is not there, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	on, err := libcall.For("dnn", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: on, steps: make(map[step]bool)}
	if !on.Simulated() {
		if l.lib, err = cudnn.Open(o.CuDNN); err != nil {
			return nil, fmt.Errorf("dnn: %w", err)
		}
	}
	create := func() (h cudnn.Handle, err error) {
		err = l.lib.WithReason(func() (err error) {
			h, err = l.lib.Create()
			return err
		})
		return h, err
	}
	set := func(h cudnn.Handle, s cuda.Stream, _ cuda.DevicePtr) error {
		return l.lib.WithReason(func() error { return l.lib.SetStream(h, s) })
	}
	if l.handle, err = libcall.NewHandle(on, create, set, l.end); err != nil {
		return nil, err
	}
	return l, nil
}

// end destroys the plans and the handle.
func (l *Library) end(h cudnn.Handle) error {
	errs := []error{l.dev.Idle()}
	for p := range l.steps {
		errs = append(errs, p.destroy())
	}
	l.steps = nil
	return errors.Join(append(errs, l.lib.Destroy(h))...)
}

// Close destroys the plans and the handle. It blocks until the device is done with all work. Work
// that was submitted and has not been issued fails with gpu.ErrClosed. Close the recordings that use
// the library first. Closing again does nothing.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	return l.handle.Close()
}

// isZero reports whether Open did not make the Library.
func (l *Library) isZero() bool { return l == nil || l.dev.GPU() == nil }

// A Call is what a function given to [Library.Call] works with.
type Call struct {
	*cudnn.Library
	Handle cudnn.Handle // has the stream
	Stream cuda.Stream  // the stream
	Ptrs   []driver.Ptr // addresses of the ranges, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that calls functions of cuDNN, which give the stream of Handle work. name is
// the Op's label, workspace how many bytes of device memory the function computes in, and the ranges
// in uses are the memory that it uses. [Library.With] makes plans and asks for the size of a
// workspace. gpu.Native says what the function may do. If the device is simulated, the Op carries
// gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	switch {
	case l.isZero():
		return gpu.BadOp(errZero)
	case fn == nil:
		return gpu.BadOp(fmt.Errorf("dnn: call: no function: %w", gpu.ErrArgument))
	case l.dev.Simulated():
		return gpu.BadOp(fmt.Errorf("dnn: a simulated device has no cuDNN to call: %w", gpu.ErrUnsupported))
	}
	return gpu.Native(name, func(n gpu.NativeCall) error {
		return l.handle.Use(n, 0, func(h cudnn.Handle) error {
			return fn(Call{l.lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)})
		})
	}, uses...).Scratch(workspace)
}

var errZero = fmt.Errorf("dnn: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// With calls a function with the handle, and with the device current on the thread, at once. It is
// for functions that make plans. If the device is simulated, the error is gpu.ErrUnsupported.
func (l *Library) With(fn func(*cudnn.Library, cudnn.Handle) error) error {
	switch {
	case l.isZero():
		return errZero
	case fn == nil:
		return fmt.Errorf("dnn: with: no function: %w", gpu.ErrArgument)
	case l.dev.Simulated():
		return fmt.Errorf("dnn: a simulated device has no cuDNN: %w", gpu.ErrUnsupported)
	}
	return l.handle.With(func(h cudnn.Handle) error { return fn(l.lib, h) })
}
