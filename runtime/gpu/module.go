package gpu

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A Module is device code that has been loaded.
type Module struct {
	dev    *Device
	mod    driver.Module
	refs   atomic.Int32 // 1 until Close, and 1 for each user; the module is unloaded at 0
	closed atomic.Bool
	names  map[string]string // native names by C++ expression; nil if Load loaded the module
}

// Load loads device code in a format that the driver knows: for CUDA, PTX, cubin or fatbin. If the
// driver compiles the code, the error has the compiler's log. If the code has undefined symbols,
// Load returns an error, or [Module.Kernel] does if the driver finds them later. Load blocks while
// the driver compiles and loads the code.
func (d *Device) Load(image []byte) (*Module, error) { return d.load(image, nil) }

// LoadCode loads code.Image as [Device.Load] does. To make code from source, use the compiler that
// [Device.Compiler] returns. [Module.Kernel] and [Module.Global] then find kernels and variables
// also by the C++ expressions in code.Names.
func (d *Device) LoadCode(code driver.Code) (*Module, error) {
	names := map[string]string{}
	maps.Copy(names, code.Names)
	return d.load(code.Image, names)
}

// load loads an image. names maps C++ expressions to native names, and is nil for Load.
func (d *Device) load(image []byte, names map[string]string) (*Module, error) {
	if err := d.ready("load code"); err != nil {
		return nil, err
	}
	x := &Module{dev: d, names: names}
	x.refs.Store(1)
	began := time.Now()
	err := d.native.Do(func() (err error) {
		if x.mod, err = d.native.Native.Load(image); err == nil {
			d.mu.Lock()
			d.code[x] = struct{}{}
			d.mu.Unlock()
		}
		return err
	})
	observe.Tell(d.memory.Observer, observe.Load, began, "", uint64(len(image)), err)
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: load %d bytes of code on %s: %w", len(image), d.native.Info.Name, err)
	}
	return x, nil
}

// Close releases the module, and returns nil. Submitted launches still use it, and so do recordings
// and buffers of [Module.Global] until they are closed. New launches fail with [ErrClosed]. Closing
// again does nothing.
func (x *Module) Close() error {
	if x != nil && x.dev != nil && x.closed.CompareAndSwap(false, true) {
		x.release()
	}
	return nil
}

// isZero reports whether the module is nil, or a zero value that was not loaded.
func (x *Module) isZero() bool { return x == nil || x.dev == nil }

func (x *Module) hold() error {
	if x.closed.Load() || !engine.HoldLive(&x.refs, 1) {
		return fmt.Errorf("module: %w", ErrClosed)
	}
	return nil
}

// A codeUse is a Module that implements engine.Holder. A module has no frontier of uses, so Use and
// Unuse do nothing.
type codeUse Module

func (*codeUse) Use(engine.Mark) error            { return nil }
func (*codeUse) Unuse(engine.Mark) (awaited bool) { return false }
func (u *codeUse) Release(n int32)                { (*Module)(u).releaseAll(n) }

// Hold and IsClosed make a codeUse a recording.Code.
func (u *codeUse) Hold() error    { return (*Module)(u).hold() }
func (u *codeUse) IsClosed() bool { return u.closed.Load() }

func (x *Module) release() { x.releaseAll(1) }

func (x *Module) releaseAll(n int32) {
	if x.refs.Add(-n) > 0 {
		return
	}
	d := x.dev
	d.native.Reclaim(func() {
		d.mu.Lock()
		_, ok := d.code[x]
		delete(d.code, x)
		d.mu.Unlock()
		if ok {
			d.native.NotTaken(d.native.Native.Unload(x.mod))
		}
	})
}

// native returns the name by which the driver knows a kernel or variable. If name is a C++
// expression in x.names, native returns the name there, otherwise it returns name itself.
func (x *Module) native(name string) string {
	if n, ok := x.names[name]; ok {
		return n
	}
	return name
}

// Global returns a variable of the code as a buffer. It finds the variable by its name, or by its
// C++ expression if [Device.LoadCode] loaded the code. The buffer keeps the module loaded until the
// buffer is closed and no longer used. The memory belongs to the module: its contents stay from one
// launch to the next. Global blocks while the driver looks for the variable. If there is no such
// variable, Global returns the driver's error.
func (x *Module) Global(name string) (*Buffer, error) {
	if x.isZero() {
		return nil, errs.Zero("global", "Module")
	}
	if err := x.hold(); err != nil {
		return nil, fmt.Errorf("gpu: global %s: %w", name, err)
	}
	var m driver.Mem
	err := x.dev.native.Do(func() (err error) {
		m.Ptr, m.Size, err = x.dev.native.Native.Global(x.mod, x.native(name))
		return err
	})
	if err != nil {
		x.dev.native.Check(err)
		x.release()
		return nil, fmt.Errorf("gpu: global %s: %w", name, err)
	}
	return (*Buffer)(memory.NewPart(x.dev.mem(), m, x.release)), nil
}

// A Kernel is an entry point of a module, and lives as long as the module.
type Kernel struct {
	exe  *Module
	name string
	fn   driver.Function
	info driver.FuncInfo

	resident atomic.Pointer[residency] // the last answer of holds; nil before the first
}

// Kernel returns a kernel by its name, or by its C++ expression if [Device.LoadCode] loaded the
// code. The method blocks while the driver looks for the kernel. If there is no such kernel, the
// method returns the driver's error.
func (x *Module) Kernel(name string) (*Kernel, error) {
	if x.isZero() {
		return nil, errs.Zero("kernel", "Module")
	}
	if err := x.hold(); err != nil {
		return nil, fmt.Errorf("gpu: kernel %s: %w", name, err)
	}
	defer x.release()
	k := &Kernel{exe: x, name: name}
	err := x.dev.native.Do(func() (err error) {
		k.fn, k.info, err = x.dev.native.Native.Function(x.mod, x.native(name))
		return err
	})
	if err != nil {
		x.dev.native.Check(err)
		if x.names != nil && x.native(name) == name {
			err = fmt.Errorf("%w; in compiled code a kernel is found by name if it is extern \"C\", else by its expression in Source.Names", err)
		}
		return nil, fmt.Errorf("gpu: kernel %s: %w", name, err)
	}
	return k, nil
}

// Name returns the kernel's name.
func (k *Kernel) Name() string {
	if k == nil {
		return ""
	}
	return k.name
}

// Info returns the driver's description of the kernel.
func (k *Kernel) Info() driver.FuncInfo {
	if k == nil {
		return driver.FuncInfo{}
	}
	return k.info
}

// isZero reports whether the kernel is nil, or a zero value, which belongs to no module.
func (k *Kernel) isZero() bool { return k == nil || k.exe.isZero() }
