package gpu

import (
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// Compiler returns the compiler for the device: NVRTC on CUDA, hipRTC on HIP. The first call opens
// the compiler's library, and blocks until the library is open. If the driver has no compiler, the
// error is [ErrUnsupported]. If the compiler's library is missing, the error is [ErrUnsupported]
// too, and says what to install.
//
// [Device.LoadCode] loads the code that the compiler makes. The compiler uses no resources of the
// device, and its methods may be called concurrently. The compiler implements [driver.Linkers]. If
// it cannot link, its method Linker returns [ErrUnsupported]. After the device has been closed, the
// compiler still compiles, but Linker fails.
//
// Package [github.com/puregpu/puregpu/runtime/compile] compiles and loads in one call, and keeps
// code on disk.
func (d *Device) Compiler() (driver.Compiler, error) {
	if err := d.ready("compiler"); err != nil {
		return nil, err
	}
	compilers, ok := d.native.Native.(driver.Compilers)
	if !ok || !d.native.Caps.Compile {
		return nil, fmt.Errorf("gpu: %s has no compiler: %w", d.native.Info.Name, driver.ErrUnsupported)
	}
	return d.openCompiler(compilers.Compiler)
}

// openCompiler calls the function open on a bound thread. The function opens a compiler or a
// linker.
func (d *Device) openCompiler(open func() (driver.Compiler, error)) (driver.Compiler, error) {
	c := compiler{dev: d}
	err := d.native.Do(func() (err error) {
		c.Compiler, err = open()
		return err
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: compiler for %s: %w", d.native.Info.Name, err)
	}
	return c, nil
}

// A compiler is a driver's compiler. It tells the device's observer about each compilation.
type compiler struct {
	driver.Compiler
	dev *Device
}

func (c compiler) Compile(src *driver.Source) (driver.Code, error) {
	began := time.Now()
	code, err := c.Compiler.Compile(src)
	observe.Tell(c.dev.memory.Observer, observe.Compile, began, src.Name, 0, err)
	if err != nil {
		c.dev.native.Check(err)
	}
	return code, err
}

func (c compiler) Linker() (driver.Compiler, error) {
	linkers, ok := c.Compiler.(driver.Linkers)
	if !ok {
		return nil, fmt.Errorf("gpu: compiler for %s: %s links no sources: %w", c.dev.native.Info.Name, c.Info().Name, driver.ErrUnsupported)
	}
	return c.dev.openCompiler(linkers.Linker)
}

// Once calls fn if this is the first call of Once for the device. Package compile uses Once to log,
// once for each device, that the folder of the package's cache is not trusted.
func (c compiler) Once(fn func()) { c.dev.warned.Do(fn) }
