// Package libcall has the common parts of the packages for NVIDIA's libraries, such as blas and
// fft: the device on which a library works, and one handle of the library. Queues, streams and
// recordings share this handle.
package libcall

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/standin"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Device is a device of CUDA or a simulated device. On a simulated device, Go functions do the
// library's work.
type Device struct {
	name string // the package's name, for errors
	dev  *gpu.Device
	cuda cudadriver.Native // the zero value on a simulated device
}

// For returns the device for a package. If the device's driver is neither CUDA nor the simulated
// GPU, the error is gpu.ErrUnsupported.
func For(name string, dev *gpu.Device) (Device, error) {
	inside := gpu.Inside(dev)
	if err := inside.Ready("open " + name); err != nil {
		return Device{}, err
	}
	native := inside.Engine.Native
	n, ok := cudadriver.NativeOf(native)
	if !ok {
		if _, ok := native.(standin.Device); !ok {
			return Device{}, fmt.Errorf("%s: driver %s: the library is of CUDA: %w", name, inside.Engine.Driver.Name(), gpu.ErrUnsupported)
		}
	}
	return Device{name, dev, n}, nil
}

// Simulated reports whether the device is simulated.
func (d Device) Simulated() bool { return d.cuda.Library == nil }

// CUDA returns the driver's API. The device must not be simulated.
func (d Device) CUDA() *cuda.Library { return d.cuda.Library }

// GPU returns the runtime's device.
func (d Device) GPU() *gpu.Device { return d.dev }

// Current calls a function with the device's CUDA context current on the thread. The context is not
// destroyed before the function returns. Current fails if the device is closed or lost. The device
// must not be simulated.
func (d Device) Current(fn func() error) error {
	inside := gpu.Inside(d.dev)
	if err := inside.Ready(d.name); err != nil {
		return err
	}
	return inside.Engine.WhileThere(func() error { return d.current(fn) })
}

func (d Device) current(fn func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.cuda.Library.CtxPushCurrent(d.cuda.Context); err != nil {
		return fmt.Errorf("%s: make the device current: %w", d.name, err)
	}
	defer func() {
		_, pop := d.cuda.Library.CtxPopCurrent()
		err = errors.Join(err, pop)
	}()
	return fn()
}

// Idle blocks until the device has no more work. The device must be current on the thread.
func (d Device) Idle() error { return d.cuda.Library.CtxSynchronize() }

// StandIn gives the call's stream a Go function, which does the work of the library on a simulated
// device. If the function becomes a node of a graph, executions fail with the error of usable,
// unless it is nil.
func (d Device) StandIn(call gpu.NativeCall, name string, usable func() error, fn func(standin.Memory) error) error {
	on, ok := call.Device.(standin.Device)
	if !ok || call.Device != gpu.Inside(d.dev).Engine.Native {
		return d.elsewhere()
	}
	return on.RunGo(call.Stream, name, usable, fn)
}

// elsewhere returns the error of an operation in a queue of another device.
func (d Device) elsewhere() error {
	return fmt.Errorf("%s: the operation was given to another device than the one that the library was opened for: %w", d.name, gpu.ErrArgument)
}

// EachExecution returns an Op of gpu.Native, changed so that each execution of a recording calls
// the Op's function. The Op never becomes a node of a graph, and runs after everything that was
// recorded before it, and before everything recorded later. EachExecution is for a library's work
// that may differ from one execution to the next.
func EachExecution(op gpu.Op) gpu.Op {
	return gpu.OpOf(inside.Op{Kind: work.Native, Native: &op})
}

// A Handle is a library's handle for a device. One function at a time uses the handle, with the
// stream and the workspace of the function's call. On a simulated device there is no handle of a
// library: only StandIn and Close may be called.
type Handle[H any] struct {
	dev Device
	set func(h H, stream cuda.Stream, workspace cuda.DevicePtr) error
	end func(H) error

	mu        sync.Mutex // protects the following fields, and is held while a function uses the handle
	h         H
	closed    bool
	stream    driver.Stream // stream of the handle
	workspace driver.Ptr    // workspace of the handle
}

// NewHandle makes a handle with the function create. Before a function uses the handle, the
// function set gives the handle the stream and the workspace of the call, unless the handle has
// them already. The function end destroys the handle. create, set and end are called with the
// device current, and never for a simulated device.
func NewHandle[H any](dev Device, create func() (H, error), set func(h H, stream cuda.Stream, workspace cuda.DevicePtr) error, end func(H) error) (*Handle[H], error) {
	x := &Handle[H]{dev: dev, set: set, end: end}
	if dev.Simulated() {
		return x, nil
	}
	err := dev.Current(func() (err error) {
		x.h, err = create()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dev.name, err)
	}
	return x, nil
}

// Use calls fn, which uses the handle to give work to the call's stream. The workspace is 0 if the
// call has none.
func (x *Handle[H]) Use(call gpu.NativeCall, workspace driver.Ptr, fn func(H) error) error {
	if n, ok := cudadriver.NativeOf(call.Device); !ok || n != x.dev.cuda {
		return x.dev.elsewhere()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("%s: %w", x.dev.name, gpu.ErrClosed)
	}
	if x.stream != call.Stream || x.workspace != workspace {
		x.stream = 0 // if set fails, the handle's stream is unknown
		if err := x.set(x.h, cudadriver.Stream(call.Stream), cuda.DevicePtr(workspace)); err != nil {
			return err
		}
		x.stream, x.workspace = call.Stream, workspace
	}
	return fn(x.h)
}

// StandIn calls Device.StandIn. It fails if the handle is closed, or if part is not nil and returns
// an error. So do executions of a graph that the function is a node of: on a GPU these would use
// freed memory.
func (x *Handle[H]) StandIn(call gpu.NativeCall, name string, part func() error, fn func(standin.Memory) error) error {
	usable := func() error {
		x.mu.Lock()
		closed := x.closed
		x.mu.Unlock()
		if closed {
			return fmt.Errorf("%s: %w", x.dev.name, gpu.ErrClosed)
		}
		if part != nil {
			return part()
		}
		return nil
	}
	if err := usable(); err != nil {
		return err
	}
	return x.dev.StandIn(call, name, usable, fn)
}

// With calls a function with the handle and with the device current, outside of an operation, for
// example to query a size.
func (x *Handle[H]) With(fn func(H) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("%s: %w", x.dev.name, gpu.ErrClosed)
	}
	return x.dev.Current(func() error { return fn(x.h) })
}

// Close destroys the handle. It blocks until the device is done with the library's work. Calls that
// need the handle meanwhile fail at once, because the device's work may wait for such calls. If the
// device is closed or lost, the handle is left to the device's context. Closing a nil handle, or
// closing again, does nothing.
func (x *Handle[H]) Close() error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	was := x.closed
	x.closed = true
	x.mu.Unlock()
	if was || x.dev.Simulated() {
		return nil
	}
	ended := false
	err := x.dev.Current(func() error {
		ended = true
		return x.end(x.h)
	})
	if !ended && gpu.Inside(x.dev.dev).Ready(x.dev.name) != nil {
		return nil
	}
	return err
}
