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
	in *libcall.Library[cusolver.Library, cusolver.DnHandle] // nil in a zero Library
}

// Open loads cuSOLVER for a device and makes a handle. It blocks while the library initializes. If
// the library is not installed, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	load := func() (*cusolver.Library, error) { return cusolver.Open(o.CuSOLVER) }
	in, err := libcall.Open("solver", "cuSOLVER", dev, load, (*cusolver.Library).DnCreate, (*cusolver.Library).DnSetStream, (*cusolver.Library).DnDestroy)
	if err != nil {
		return nil, err
	}
	return &Library{in}, nil
}

// Close destroys the handle. It blocks until the device is done with the library's work. Work that
// was submitted and has not been issued fails with gpu.ErrClosed, and so do later executions of
// recordings with such work. Closing again does nothing.
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
	*cusolver.Library
	Handle cusolver.DnHandle // its stream is set
	Stream cuda.Stream       // the stream of Handle
	Ptrs   []driver.Ptr      // addresses of the ranges in uses, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuSOLVER. These functions put their
// work into the stream of Handle. name is the Op's label. workspace is the size of the workspace
// that fn needs, in bytes: query it in [Library.With]. uses are the ranges of memory that the work
// touches. The documentation of gpu.Native says what fn may do. In a recording each execution calls
// fn. If the device is simulated, the Op carries gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	if l.isZero() {
		return gpu.BadOp(errZero)
	}
	return libcall.EachExecution(libcall.Call(l.in, name, workspace, newCall, fn, uses))
}

var errZero = fmt.Errorf("solver: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// newCall makes the argument of a function given to [Library.Call].
func newCall(lib *cusolver.Library, h cusolver.DnHandle, n gpu.NativeCall) Call {
	return Call{lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)}
}

// With calls fn at once with the handle, while the device is current on the thread. With is for
// functions of the library that return the size of a workspace. A function given to [Library.Call]
// has the handle already, and must not call With. If the device is simulated, the error is
// gpu.ErrUnsupported.
func (l *Library) With(fn func(*cusolver.Library, cusolver.DnHandle) error) error {
	if l.isZero() {
		return errZero
	}
	return l.in.With(fn)
}
