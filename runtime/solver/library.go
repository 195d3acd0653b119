package solver

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options configure a [Library]. The zero value loads the system's library.
type Options struct {
	CuSOLVER cusolver.Options // where cuSOLVER is
}

// A Library is cuSOLVER's part for dense matrices, for one device. All methods may be called
// concurrently.
type Library struct {
	dev    libcall.Device
	lib    *cusolver.Library // nil on a simulated device
	handle *libcall.Handle[cusolver.DnHandle]
}

// Open loads cuSOLVER for a device and makes a handle. It blocks while the library initializes. If
// the library is not installed, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	on, err := libcall.For("solver", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: on}
	if !on.Simulated() {
		if l.lib, err = cusolver.Open(o.CuSOLVER); err != nil {
			return nil, fmt.Errorf("solver: %w", err)
		}
	}
	set := func(h cusolver.DnHandle, s cuda.Stream, _ cuda.DevicePtr) error { return l.lib.DnSetStream(h, s) }
	if l.handle, err = libcall.NewHandle(on, l.lib.DnCreate, set, l.lib.DnDestroy); err != nil {
		return nil, err
	}
	return l, nil
}

// Close destroys the handle. It blocks until the device is done with the library's work. Work that
// was submitted and has not been issued fails with gpu.ErrClosed. Close recordings with such work
// first, because their graphs may use memory of the handle. Closing again does nothing.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	return l.handle.Close()
}

// isZero reports whether the Library is nil or a zero value.
func (l *Library) isZero() bool { return l == nil || l.dev.GPU() == nil }

// A Call has the library, the handle and the memory for a function given to [Library.Call].
type Call struct {
	*cusolver.Library
	Handle cusolver.DnHandle // has the stream
	Stream cuda.Stream       // the stream
	Ptrs   []driver.Ptr      // addresses of the ranges, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that calls functions of cuSOLVER. They give work to the stream of Handle. name
// is the Op's label. workspace is the size of the function's workspace in bytes: query it in
// [Library.With]. The ranges in uses are the memory that the work uses. gpu.Native says what the
// function may do. If the device is simulated, the Op carries gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	switch {
	case l.isZero():
		return gpu.BadOp(errZero)
	case fn == nil:
		return gpu.BadOp(fmt.Errorf("solver: call: no function: %w", gpu.ErrArgument))
	case l.dev.Simulated():
		return gpu.BadOp(fmt.Errorf("solver: a simulated device has no cuSOLVER to call: %w", gpu.ErrUnsupported))
	}
	return l.call(name, workspace, fn, uses...)
}

var errZero = fmt.Errorf("solver: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// call is Call on a device that is not simulated.
func (l *Library) call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	return gpu.Native(name, func(n gpu.NativeCall) error {
		return l.handle.Use(n, 0, func(h cusolver.DnHandle) error {
			return fn(Call{l.lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)})
		})
	}, uses...).Scratch(workspace)
}

// With calls a function immediately, with the handle, and with the device current on the thread. It
// is for functions of the library that return the size of a workspace. A function given to
// [Library.Call] has the handle already, and must not call With. If the device is simulated, the
// error is gpu.ErrUnsupported.
func (l *Library) With(fn func(*cusolver.Library, cusolver.DnHandle) error) error {
	switch {
	case l.isZero():
		return errZero
	case fn == nil:
		return fmt.Errorf("solver: with: no function: %w", gpu.ErrArgument)
	case l.dev.Simulated():
		return fmt.Errorf("solver: a simulated device has no cuSOLVER: %w", gpu.ErrUnsupported)
	}
	return l.handle.With(func(h cusolver.DnHandle) error { return fn(l.lib, h) })
}
