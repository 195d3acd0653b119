package hipdriver

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Load accepts a code object or a bundle of code objects.
func (d *device) Load(image []byte) (driver.Module, error) {
	form, targets, err := inspect(image, d.info.Arch)
	if err != nil {
		return 0, d.refuse("load", err, "device code for %s", d.arch())
	}
	own := keep(image)
	m, err := d.lib.ModuleLoadData(unsafe.Pointer(unsafe.SliceData(own)))
	if err != nil {
		if len(targets) > 0 {
			err = fmt.Errorf("it has code for %s: %w", strings.Join(targets, ", "), err)
		}
		return 0, d.fail("load", err, "%s of %d bytes for %s", form, len(image), d.arch())
	}
	d.mu.Lock()
	d.images[driver.Module(m)] = own
	d.mu.Unlock()
	return driver.Module(m), nil
}

// arch returns the device's architecture for errors.
func (d *device) arch() string {
	if d.target == "" {
		return "an unknown architecture"
	}
	return d.target
}

func (d *device) Unload(m driver.Module) error {
	d.mu.Lock()
	own := d.images[m]
	delete(d.images, m) // must come before the unload: afterwards another module can get the handle
	d.mu.Unlock()
	err := d.lib.ModuleUnload(hip.Module(m))
	runtime.KeepAlive(own)
	if err != nil {
		if own != nil {
			d.mu.Lock()
			d.images[m] = own
			d.mu.Unlock()
		}
		return d.fail("unload", err, "module %#x", uintptr(m))
	}
	return nil
}

// Function prepares nothing. Load has put the code on the device, and every kernel may use all
// shared memory.
func (d *device) Function(m driver.Module, kernel string) (driver.Function, driver.FuncInfo, error) {
	fail := func(err error, what string) (driver.Function, driver.FuncInfo, error) {
		return 0, driver.FuncInfo{}, d.fail("function", err, "%s of kernel %q in module %#x", what, kernel, uintptr(m))
	}
	f, err := d.lib.ModuleGetFunction(hip.Module(m), kernel)
	if errors.Is(err, hip.ErrorNotFound) {
		return fail(fmt.Errorf("%w; a C++ kernel that is not extern \"C\" has a mangled name", err), "handle")
	} else if err != nil {
		return fail(err, "handle")
	}
	var info driver.FuncInfo
	for _, a := range []struct {
		attr hip.FunctionAttribute
		to   *int
	}{
		{hip.FunctionAttributeMaxThreadsPerBlock, &info.MaxThreads},
		{hip.FunctionAttributeSharedSizeBytes, &info.SharedMem},
		{hip.FunctionAttributeNumRegs, &info.Registers},
		{hip.FunctionAttributeLocalSizeBytes, &info.LocalMem},
	} {
		v, err := d.lib.FuncGetAttribute(a.attr, f)
		if err != nil {
			return fail(err, a.attr.String())
		}
		*a.to = int(v)
	}
	return driver.Function(f), info, nil
}

func (d *device) Global(m driver.Module, variable string) (driver.Ptr, uint64, error) {
	p, size, err := d.lib.ModuleGetGlobal(hip.Module(m), variable)
	if err != nil {
		return 0, 0, d.fail("global", err, "variable %q in module %#x", variable, uintptr(m))
	}
	return driver.Ptr(p), size, nil
}
