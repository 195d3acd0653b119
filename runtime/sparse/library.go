package sparse

import (
	"errors"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options configure a [Library]. The zero value loads the system's library.
type Options struct {
	CuSPARSE cusparse.Options // where cuSPARSE is
}

// A Library is cuSPARSE for one device. All methods may be called concurrently.
type Library struct {
	dev    libcall.Device
	lib    *cusparse.Library // nil on a simulated device
	handle *libcall.Handle[cusparse.Handle]

	plans map[planKey]*plan // used only by functions that use handle, and by the one that ends it
}

// Open loads cuSPARSE for a device and makes a handle. It blocks while the library initializes. If
// the library is not installed, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	on, err := libcall.For("sparse", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: on, plans: make(map[planKey]*plan)}
	if !on.Simulated() {
		if l.lib, err = cusparse.Open(o.CuSPARSE); err != nil {
			return nil, fmt.Errorf("sparse: %w", err)
		}
	}
	set := func(h cusparse.Handle, s cuda.Stream, _ cuda.DevicePtr) error { return l.lib.SetStream(h, s) }
	if l.handle, err = libcall.NewHandle(on, l.lib.Create, set, l.end); err != nil {
		return nil, err
	}
	return l, nil
}

// end destroys the plans and the handle.
func (l *Library) end(h cusparse.Handle) error {
	var errs []error
	for _, p := range l.plans {
		errs = append(errs, p.destroy(l.lib))
	}
	l.plans = nil
	return errors.Join(append(errs, l.lib.Destroy(h))...)
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
	*cusparse.Library
	Handle cusparse.Handle // has the stream
	Stream cuda.Stream     // the stream
	Ptrs   []driver.Ptr    // addresses of the ranges, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that calls functions of cuSPARSE. They give work to the stream of Handle. name
// is the Op's label. workspace is the size of the function's workspace in bytes: query it in
// [Library.With]. The ranges in uses are the memory that the work uses. gpu.Native says what the
// function may do. If the device is simulated, the Op carries gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	switch {
	case l.isZero():
		return gpu.BadOp(errZero)
	case fn == nil:
		return gpu.BadOp(fmt.Errorf("sparse: call: no function: %w", gpu.ErrArgument))
	case l.dev.Simulated():
		return gpu.BadOp(fmt.Errorf("sparse: a simulated device has no cuSPARSE to call: %w", gpu.ErrUnsupported))
	}
	return l.call(name, workspace, fn, uses...)
}

var errZero = fmt.Errorf("sparse: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// call is Call on a device that is not simulated.
func (l *Library) call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	return gpu.Native(name, func(n gpu.NativeCall) error {
		return l.handle.Use(n, 0, func(h cusparse.Handle) error {
			return fn(Call{l.lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)})
		})
	}, uses...).Scratch(workspace)
}

// With calls a function immediately, with the handle, and with the device current on the thread. It
// is for functions of the library that return the size of a workspace. A function given to
// [Library.Call] has the handle already, and must not call With. If the device is simulated, the
// error is gpu.ErrUnsupported.
func (l *Library) With(fn func(*cusparse.Library, cusparse.Handle) error) error {
	switch {
	case l.isZero():
		return errZero
	case fn == nil:
		return fmt.Errorf("sparse: with: no function: %w", gpu.ErrArgument)
	case l.dev.Simulated():
		return fmt.Errorf("sparse: a simulated device has no cuSPARSE: %w", gpu.ErrUnsupported)
	}
	return l.handle.With(func(h cusparse.Handle) error { return fn(l.lib, h) })
}
