package cudadriver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// logSize is the room for each of the compiler's logs.
const logSize = 16 << 10

// A compiler has the options for a load of device code and the logs that the driver's compiler writes.
type compiler struct {
	options   [4]cuda.JitOption
	values    [4]uintptr
	info, err [logSize]byte
}

// A module is device code that is loaded.
type module struct {
	code    *contents
	library cuda.CodeLibrary // whose module it is, or 0
	logs    *compiler        // that the library may write until it is unloaded, or nil
}

// Load accepts PTX, with or without a NUL at its end, a cubin and a fat binary. A cubin that lacks symbols is refused here: the driver
// may take it, and then not find its kernels.
func (d *device) Load(image []byte) (driver.Module, error) {
	image, form, err := prepare(image)
	if err != nil {
		return 0, d.fail("load", err, "device code")
	}
	code := inspect(image)
	if len(code.undefined) > 0 && form == "cubin" {
		return 0, d.fail("load", code.explain(cuda.ErrorInvalidImage), "%s of %d bytes", form, len(image))
	}
	// To the collector the options' values are numbers, also those that are addresses of the logs. Pin holds on to the
	// logs until Unpin, and has them stay where they are.
	c := new(compiler)
	var pin runtime.Pinner
	pin.Pin(c)
	defer pin.Unpin()
	c.options = [...]cuda.JitOption{cuda.JITInfoLogBuffer, cuda.JITInfoLogBufferSizeBytes, cuda.JITErrorLogBuffer, cuda.JITErrorLogBufferSizeBytes}
	c.values = [...]uintptr{uintptr(unsafe.Pointer(&c.info)), logSize, uintptr(unsafe.Pointer(&c.err)), logSize}
	m, library, err := d.loadImage(unsafe.Pointer(unsafe.SliceData(image)), c)
	if err != nil {
		if log := c.log(); log != "" {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		if errors.Is(err, cuda.ErrorUnsupportedPTXVersion) {
			err = fmt.Errorf("%s: %w", newerPTX(image, d.info.Version), err)
		}
		if len(code.targets) > 0 {
			err = fmt.Errorf("it has code for %s: %w", strings.Join(code.targets, ", "), err)
		}
		return 0, d.fail("load", code.explain(err), "%s of %d bytes for %s", form, len(image), d.info.Arch)
	}
	loaded := module{code: code, library: library}
	if library != 0 && form != "cubin" {
		// CUDA's documentation has a library loaded, and so compiled, when a function is needed, and does not say that the driver is done
		// with the logs when it has given the module out. So they stay; the collector moves nothing that is on the heap.
		loaded.logs = c
	}
	d.mu.Lock()
	d.modules[driver.Module(m)] = loaded
	d.mu.Unlock()
	return driver.Module(m), nil
}

// loadImage loads device code as a library, of which the device's context has a module, where there are such, and else as a module. While the
// driver compiles a module, no thread can submit anything to its context; a library is compiled without the context. Where libraries are
// loaded as a whole at once that is into all contexts, which is not what was asked for.
func (d *device) loadImage(image unsafe.Pointer, c *compiler) (cuda.Module, cuda.CodeLibrary, error) {
	if !d.hasLibraries {
		m, err := d.lib.ModuleLoadDataEx(image, c.options[:], c.values[:])
		return m, 0, err
	}
	library, err := d.lib.LibraryLoadData(image, c.options[:], c.values[:], nil, nil)
	if err != nil {
		return 0, 0, err
	}
	m, err := d.lib.LibraryGetModule(library)
	if err != nil {
		return 0, 0, errors.Join(err, d.lib.LibraryUnload(library))
	}
	return m, library, nil
}

// explain adds to an error what the image lacks.
func (c *contents) explain(err error) error {
	if len(c.undefined) == 0 {
		return err
	}
	const most = 5
	names, more := c.undefined, ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("unresolved symbol %s%s: the image was compiled to be linked (nvcc -rdc=true, ptxas -c); link it with what defines that, by nvcc -dlink or nvlink: %w",
		strings.Join(names, ", "), more, err)
}

// log returns what the compiler had to say, errors first.
func (c *compiler) log() string {
	var parts []string
	for _, b := range [][]byte{c.err[:], c.info[:]} {
		text, _, _ := bytes.Cut(b, []byte{0}) // a log that did not fit may have no end
		if s := strings.TrimSpace(strings.ToValidUTF8(string(text), "?")); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

func (d *device) Unload(m driver.Module) error {
	d.mu.Lock()
	loaded, has := d.modules[m]
	delete(d.modules, m) // before another module can have the handle
	d.mu.Unlock()
	var err error
	if loaded.library != 0 {
		err = d.lib.LibraryUnload(loaded.library)
	} else {
		err = d.lib.ModuleUnload(cuda.Module(m))
	}
	if err != nil {
		if has {
			d.mu.Lock()
			d.modules[m] = loaded
			d.mu.Unlock()
		}
		return d.fail("unload", err, "module %#x", uintptr(m))
	}
	return nil
}

// Function has the kernel's code loaded, and all shared memory and the largest clusters allowed that it can have, since a launch
// must do neither: loading may wait for the whole device, and the limits are the kernel's, not a launch's.
func (d *device) Function(m driver.Module, kernel string) (driver.Function, driver.FuncInfo, error) {
	d.mu.Lock()
	code := d.modules[m].code
	d.mu.Unlock()
	if code == nil { // no module
		code = new(contents)
	}
	fail := func(err error, what string) (driver.Function, driver.FuncInfo, error) {
		return 0, driver.FuncInfo{}, d.fail("function", code.explain(err), "%s of kernel %q in module %#x", what, kernel, uintptr(m))
	}
	f, err := d.lib.ModuleGetFunction(cuda.Module(m), kernel)
	if errors.Is(err, cuda.ErrorNotFound) {
		switch _, has := code.params[kernel]; {
		case !has:
			err = fmt.Errorf("%w; a kernel of C++ that is not extern \"C\" has a mangled name", err)
		case len(code.undefined) == 0:
			err = fmt.Errorf("%w, though the image has code of that name; what was compiled to be linked (nvcc -rdc=true, ptxas -c) has to be linked, by nvcc -dlink or nvlink", err)
		}
		return fail(err, "handle")
	} else if err != nil {
		return fail(err, "handle")
	}
	if d.hasFuncLoad { // drivers without it load at the first question about an attribute
		if err := d.lib.FuncLoad(f); err != nil {
			return fail(err, "code")
		}
	}
	var info driver.FuncInfo
	type attribute struct {
		attr cuda.FunctionAttribute
		to   *int
	}
	attributes := []attribute{
		{cuda.FuncAttributeMaxThreadsPerBlock, &info.MaxThreads},
		{cuda.FuncAttributeSharedSizeBytes, &info.SharedMem},
		{cuda.FuncAttributeNumRegs, &info.Registers},
		{cuda.FuncAttributeLocalSizeBytes, &info.LocalMem},
	}
	if d.info.Clusters {
		attributes = append(attributes,
			attribute{cuda.FuncAttributeRequiredClusterWidth, &info.Cluster[0]},
			attribute{cuda.FuncAttributeRequiredClusterHeight, &info.Cluster[1]},
			attribute{cuda.FuncAttributeRequiredClusterDepth, &info.Cluster[2]})
	}
	for _, a := range attributes {
		v, err := d.lib.FuncGetAttribute(a.attr, f)
		if err != nil {
			return fail(err, a.attr.String())
		}
		*a.to = int(v)
	}
	if d.caps.Clusters {
		// Clusters of more blocks than all devices have room for need leave, which is the kernel's, not a launch's.
		if err := d.lib.FuncSetAttribute(f, cuda.FuncAttributeNonPortableClusterSizeAllowed, 1); err != nil {
			return fail(err, "limit of blocks of a cluster")
		}
		info.MaxCluster = d.maxCluster(f)
	}
	if d.info.SharedOptIn > d.info.SharedMem {
		if err := d.lib.FuncSetAttribute(f, cuda.FuncAttributeMaxDynamicSharedSizeBytes, int32(d.info.SharedOptIn-info.SharedMem)); err != nil {
			return fail(err, "limit of dynamic shared memory")
		}
	}
	if d.caps.KernelParams {
		if info.Params, err = d.params(f, code.number(kernel)); err != nil {
			return fail(err, "parameters")
		}
	}
	return driver.Function(f), info, nil
}

// params asks for the sizes of a kernel's parameters. If their number is untold, what tells it is the first that is not there. That
// call fails, but without the number a launch with too few arguments would have the driver read past their end.
func (d *device) params(f cuda.Function, number int) ([]int, error) {
	const most = 1 << 15 // bytes of parameters that any kernel can have, and then some
	if number == untold {
		number = most
	}
	sizes := []int{}
	for i := range uint64(number) {
		_, size, err := d.lib.FuncGetParamInfo(f, i)
		if err == cuda.ErrorInvalidValue {
			break
		} else if err != nil {
			return nil, err
		}
		sizes = append(sizes, int(size))
	}
	return sizes, nil
}

func (d *device) Global(m driver.Module, variable string) (driver.Ptr, uint64, error) {
	p, size, err := d.lib.ModuleGetGlobal(cuda.Module(m), variable)
	if err != nil {
		return 0, 0, d.fail("global", err, "variable %q in module %#x", variable, uintptr(m))
	}
	return driver.Ptr(p), size, nil
}
