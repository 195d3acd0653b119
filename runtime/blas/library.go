package blas

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/libcall"
)

// Options configure a [Library]. The zero value loads the system's libraries.
type Options struct {
	CuBLAS    cublas.Options   // where cuBLAS is
	CuBLASLt  cublaslt.Options // where cuBLASLt is
	Workspace uint64           // bytes of workspace for a product; 0 means 32 MiB, or 8 MiB on devices older than Hopper
}

// A Library is cuBLAS and cuBLASLt for one device. All methods may be called concurrently.
type Library struct {
	dev       libcall.Device
	options   Options
	workspace uint64
	lt        *cublaslt.Library // nil on a simulated device
	light     *libcall.Handle[cublaslt.Handle]
	plans     map[planKey]*plan // used only while light is held, and by endLight

	mu     sync.Mutex // protects the following fields
	blas   *cublas.Library
	handle *libcall.Handle[cublas.Handle] // nil until Call needs it
	closed bool
}

// Open loads cuBLASLt for a device and makes a handle. It blocks while the library initializes,
// which takes some tenths of a second. If the library is not installed, the error is
// dl.ErrNotFound. Close the Library before the device.
func Open(dev *gpu.Device, o Options) (*Library, error) {
	on, err := libcall.For("blas", dev)
	if err != nil {
		return nil, err
	}
	l := &Library{dev: on, options: o, workspace: o.Workspace, plans: make(map[planKey]*plan)}
	if l.workspace == 0 {
		l.workspace = 8 << 20
		if dev.Info().Major >= 9 {
			l.workspace = 32 << 20
		}
	}
	if !on.Simulated() {
		if l.lt, err = cublaslt.Open(o.CuBLASLt); err != nil {
			return nil, fmt.Errorf("blas: %w", err)
		}
	}
	l.light, err = libcall.NewHandle(on, l.lt.Create, func(cublaslt.Handle, cuda.Stream, cuda.DevicePtr) error { return nil }, l.endLight)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// endLight destroys the plans and the handle.
func (l *Library) endLight(h cublaslt.Handle) error {
	var errs []error
	for _, p := range l.plans {
		errs = append(errs, p.destroy(l.lt))
	}
	l.plans = nil
	return errors.Join(append(errs, l.lt.Destroy(h))...)
}

// Close destroys the handles. It blocks until the device is done with the library's work. Work that
// was submitted and has not been issued fails with gpu.ErrClosed. Close recordings that use the
// library first, because their graphs may use memory of the handles. Closing again does nothing.
func (l *Library) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	handle := l.handle
	l.mu.Unlock()
	return errors.Join(handle.Close(), l.light.Close())
}

// isZero reports whether the Library is nil or a zero value.
func (l *Library) isZero() bool { return l == nil || l.light == nil }

var errZero = fmt.Errorf("a nil or zero Library: use Open: %w", gpu.ErrArgument)

// A Call is the argument of a function given to [Library.Call]: the library, its handle and the
// memory.
type Call struct {
	*cublas.Library
	Handle cublas.Handle // its stream and its workspace are set
	Stream cuda.Stream   // the stream of Handle
	Ptrs   []driver.Ptr  // addresses of the ranges in uses, in order; valid until the function returns
}

// Call returns an Op that runs fn, which calls functions of cuBLAS. These functions put their work
// into the stream of Handle. name is the Op's label, and uses are the ranges of memory that the
// work touches. The documentation of gpu.Native says what fn may do. The first Call loads cuBLAS
// and makes a handle, and blocks meanwhile. If this fails, or if the device is simulated, the Op
// carries the error.
//
//	stream.Do(lib.Call("triangle", func(c blas.Call) error {
//		return c.Strsm(c.Handle, …, cuda.DevicePtr(c.Ptrs[0]), …)
//	}, a.Range(), b.Range()))
func (l *Library) Call(name string, fn func(Call) error, uses ...gpu.Range) gpu.Op {
	if fn == nil {
		return gpu.BadOp(fmt.Errorf("blas: call: no function: %w", gpu.ErrArgument))
	}
	lib, handle, err := l.open()
	if err != nil {
		return gpu.BadOp(err)
	}
	return gpu.Native(name, func(n gpu.NativeCall) error {
		last := len(n.Ptrs) - 1
		return handle.Use(n, n.Ptrs[last], func(h cublas.Handle) error {
			return fn(Call{lib, h, cudadriver.Stream(n.Stream), slices.Clip(n.Ptrs[:last])})
		})
	}, uses...).Scratch(l.workspace)
}

// open returns cuBLAS and its handle. The first call loads the library and makes the handle.
func (l *Library) open() (*cublas.Library, *libcall.Handle[cublas.Handle], error) {
	if l.isZero() {
		return nil, nil, fmt.Errorf("blas: %w", errZero)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, fmt.Errorf("blas: %w", gpu.ErrClosed)
	case l.dev.Simulated():
		return nil, nil, libcall.Simulated("blas", "cuBLAS")
	case l.handle != nil:
		return l.blas, l.handle, nil
	}
	lib, err := cublas.Open(l.options.CuBLAS)
	if err != nil {
		return nil, nil, fmt.Errorf("blas: %w", err)
	}
	set := func(h cublas.Handle, s cuda.Stream, workspace cuda.DevicePtr) error {
		if err := lib.SetStream(h, s); err != nil { // SetStream also resets the workspace
			return err
		}
		return lib.SetWorkspace(h, workspace, l.workspace)
	}
	handle, err := libcall.NewHandle(l.dev, lib.Create, set, lib.Destroy)
	if err != nil {
		return nil, nil, err
	}
	l.blas, l.handle = lib, handle
	return lib, handle, nil
}
