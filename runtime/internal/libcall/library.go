package libcall

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Library is the common part of the packages that use a library through one handle. L has the
// functions of the library, and H is the type of its handle.
type Library[L, H any] struct {
	Dev    Device
	Lib    *L // nil on a simulated device
	Handle *Handle[H]

	name string // the library's name, for errors
}

// Open loads a library with the function load and makes the library's handle: see NewHandle. pkg is
// the name of the package, and name is the name of the library, for errors.
func Open[L, H any](pkg, name string, dev *gpu.Device, load func() (*L, error), create func(*L) (H, error),
	set func(*L, H, cuda.Stream) error, end func(*L, H) error) (*Library[L, H], error) {
	on, err := For(pkg, dev)
	if err != nil {
		return nil, err
	}
	l := &Library[L, H]{Dev: on, name: name}
	if !on.Simulated() {
		if l.Lib, err = load(); err != nil {
			return nil, fmt.Errorf("%s: %w", pkg, err)
		}
	}
	l.Handle, err = NewHandle(on,
		func() (H, error) { return create(l.Lib) },
		func(h H, s cuda.Stream, _ cuda.DevicePtr) error { return set(l.Lib, h, s) },
		func(h H) error { return end(l.Lib, h) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Call returns the Op of a package's method Call: the Op calls fn with the argument that arg makes.
// If workspace is not 0, the last address of the call is the workspace's.
func Call[L, H, A any](l *Library[L, H], name string, workspace uint64, arg func(*L, H, gpu.NativeCall) A,
	fn func(A) error, uses []gpu.Range) gpu.Op {
	if err := l.check("call", fn == nil); err != nil {
		return gpu.BadOp(err)
	}
	return gpu.Native(name, func(n gpu.NativeCall) error {
		return l.Handle.Use(n, 0, func(h H) error { return fn(arg(l.Lib, h, n)) })
	}, uses...).Scratch(workspace)
}

// With is a package's method With: it calls fn immediately, with the device current on the thread.
func (l *Library[L, H]) With(fn func(*L, H) error) error {
	if err := l.check("with", fn == nil); err != nil {
		return err
	}
	return l.Handle.With(func(h H) error { return fn(l.Lib, h) })
}

// simulatedError is the error of a call of a library on a simulated device. It is
// [gpu.ErrUnsupported].
type simulatedError struct{ pkg, library string }

// Simulated returns the error of package pkg for a call of a library on a simulated device.
func Simulated(pkg, library string) error { return simulatedError{pkg, library} }

func (e simulatedError) Error() string {
	return fmt.Sprintf("%s: a simulated device has no %s to call: a test calls a gpu.Native in its place", e.pkg, e.library)
}

func (e simulatedError) Unwrap() error { return gpu.ErrUnsupported }

// check returns an error if the program gave a method no function, or if the device is simulated.
func (l *Library[L, H]) check(method string, noFunction bool) error {
	switch {
	case noFunction:
		return fmt.Errorf("%s: %s: no function: %w", l.Dev.name, method, gpu.ErrArgument)
	case l.Dev.Simulated():
		return Simulated(l.Dev.name, l.name)
	}
	return nil
}
