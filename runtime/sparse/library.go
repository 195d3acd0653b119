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
	in *libcall.Library[cusparse.Library, cusparse.Handle] // nil in a zero Library

	plans map[planKey]*plan // used only while the handle is held, and by the method end
}

// Open loads cuSPARSE for a device and makes a handle. It blocks while the library initializes. If
// the library is not installed, the error is dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	load := func() (*cusparse.Library, error) { return cusparse.Open(o.CuSPARSE) }
	l := &Library{plans: make(map[planKey]*plan)}
	var err error
	l.in, err = libcall.Open("sparse", "cuSPARSE", dev, load, (*cusparse.Library).Create, (*cusparse.Library).SetStream, l.end)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// end destroys the plans and the handle.
func (l *Library) end(lib *cusparse.Library, h cusparse.Handle) error {
	var errs []error
	for _, p := range l.plans {
		errs = append(errs, p.destroy(lib))
	}
	l.plans = nil
	return errors.Join(append(errs, lib.Destroy(h))...)
}

// Close destroys the handle. It blocks until the device is done with the library's work. Work that
// was submitted and has not been issued fails with gpu.ErrClosed. Close recordings with work of the
// library first, because their graphs may use memory of the handle. Closing again does nothing.
func (l *Library) Close() error {
	if l.isZero() {
		return nil
	}
	return l.in.Handle.Close()
}

func (l *Library) isZero() bool { return l == nil || l.in == nil }

// A Call is the argument of a function given to [Library.Call]: the library, its handle and the
// memory.
type Call struct {
	*cusparse.Library
	Handle cusparse.Handle // its stream is set
	Stream cuda.Stream     // the stream of Handle
	Ptrs   []driver.Ptr    // addresses of Library.Call's uses, in order, then of the workspace; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuSPARSE. These functions put their
// work into the stream of Handle. name is the Op's label. workspace is the size of the workspace
// that fn needs, in bytes: query it in [Library.With]. uses are the ranges of memory that the work
// touches. The documentation of gpu.Native says what fn may do. If the device is simulated, the Op
// carries gpu.ErrUnsupported.
func (l *Library) Call(name string, workspace uint64, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	if l.isZero() {
		return gpu.BadOp(errZero)
	}
	return libcall.Call(l.in, name, workspace, newCall, fn, uses)
}

var errZero = fmt.Errorf("sparse: a nil or zero Library: use Open: %w", gpu.ErrArgument)

// newCall makes the argument of a function given to [Library.Call].
func newCall(lib *cusparse.Library, h cusparse.Handle, n gpu.NativeCall) Call {
	return Call{lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs)}
}

// With calls fn at once with the handle, while the device is current on the thread. With is for
// functions of the library that return the size of a workspace. A function given to [Library.Call]
// has the handle already, and must not call With. If the device is simulated, the error is
// gpu.ErrUnsupported.
func (l *Library) With(fn func(*cusparse.Library, cusparse.Handle) error) error {
	if l.isZero() {
		return errZero
	}
	return l.in.With(fn)
}
