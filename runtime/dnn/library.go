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

// Options configure a [Library]. The zero value loads the system's library.
type Options struct {
	CuDNN cudnn.Options // where cuDNN is
}

// A Library is cuDNN for one device. All methods may be called concurrently.
type Library struct {
	in *libcall.Library[cudnn.Library, cudnn.Handle] // nil in a zero Library

	steps map[step]bool // steps not destroyed yet, of all plans; used only while the handle is held, and by the method end
}

// Open loads cuDNN for a device and makes a handle. It blocks while the library initializes. If
// the library is not installed, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	load := func() (*cudnn.Library, error) { return cudnn.Open(o.CuDNN) }
	create := func(lib *cudnn.Library) (h cudnn.Handle, err error) {
		err = lib.WithReason(func() (err error) {
			h, err = lib.Create()
			return err
		})
		return h, err
	}
	set := func(lib *cudnn.Library, h cudnn.Handle, s cuda.Stream) error {
		return lib.WithReason(func() error { return lib.SetStream(h, s) })
	}
	l := &Library{steps: make(map[step]bool)}
	var err error
	if l.in, err = libcall.Open("dnn", "cuDNN", dev, load, create, set, l.end); err != nil {
		return nil, err
	}
	return l, nil
}

// end destroys the plans and the handle.
func (l *Library) end(lib *cudnn.Library, h cudnn.Handle) error {
	errs := []error{l.in.Dev.Idle()}
	for p := range l.steps {
		errs = append(errs, p.destroy())
	}
	l.steps = nil
	return errors.Join(append(errs, lib.Destroy(h))...)
}

// Close destroys the plans and the handle. It blocks until the device is done with all work. Work
// that was submitted and has not been issued fails with gpu.ErrClosed. Close the recordings that use
// the library first. Closing again does nothing.
func (l *Library) Close() error {
	if l.isZero() {
		return nil
	}
	return l.in.Handle.Close()
}

// isZero reports whether the Library is nil or a zero value.
func (l *Library) isZero() bool { return l == nil || l.in == nil }

// A Call is the argument of a function given to [Library.Call]: the library, its handle and the
// memory.
type Call struct {
	*cudnn.Library
	Handle cudnn.Handle // its stream is set
	Stream cuda.Stream  // the stream of Handle
	Ptrs   []driver.Ptr // addresses of Library.Call's uses, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuDNN. These functions put their work
// into the stream of Handle. name is the Op's label. workspace is the size of the workspace that fn
// needs, in bytes: query it in [Library.With]. uses are the ranges of memory that the work touches.
// The documentation of gpu.Native says what fn may do. If the device is simulated, the Op carries
// gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	if l.isZero() {
		return gpu.BadOp(errZero)
	}
	return libcall.Call(l.in, name, workspace, newCall, fn, uses)
}

var errZero = fmt.Errorf("dnn: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// newCall makes the argument of a function given to [Library.Call].
func newCall(lib *cudnn.Library, h cudnn.Handle, n gpu.NativeCall) Call {
	return Call{lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)}
}

// With calls fn with the handle, while the device is current on the thread. With is for functions
// that make plans or return the size of a workspace. A function given to [Library.Call] has the
// handle already, and must not call With. If the device is simulated, the error is
// gpu.ErrUnsupported.
func (l *Library) With(fn func(*cudnn.Library, cudnn.Handle) error) error {
	if l.isZero() {
		return errZero
	}
	return l.in.With(fn)
}
