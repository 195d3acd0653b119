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

// logSize is the size of each log buffer of the driver's compiler.
const logSize = 16 << 10

// A compiler holds the options for loading device code, and the logs that the driver's compiler
// writes.
type compiler struct {
	options   [4]cuda.JitOption
	values    [4]uintptr
	info, err [logSize]byte
}

// A module is loaded device code.
type module struct {
	code    *contents
	library cuda.CodeLibrary // the library that the module belongs to, or 0
	logs    *compiler        // logs that library may write until Unload, or nil
}

// Load accepts a cubin, a fat binary, and PTX with or without a NUL at its end. It refuses a cubin
// that lacks symbols, because the CUDA driver may accept the cubin and then not find its kernels.
func (d *device) Load(image []byte) (driver.Module, error) {
	image, form, err := prepare(image)
	if err != nil {
		return 0, d.fail("load", err, "device code")
	}
	code := inspect(image)
	if len(code.undefined) > 0 && form == "cubin" {
		return 0, d.fail("load", code.explain(cuda.ErrorInvalidImage), "%s of %d bytes", form, len(image))
	}
	// The option values are numbers to the garbage collector, even the addresses of the logs. Pin
	// keeps the logs alive until Unpin.
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
		// CUDA's documentation says that a library is compiled when a function is needed. It does
		// not say that the driver stops using the logs after loading. So the logs live until the
		// unload. Their addresses stay the same, because the garbage collector does not move heap
		// memory.
		loaded.logs = c
	}
	d.mu.Lock()
	d.modules[driver.Module(m)] = loaded
	d.mu.Unlock()
	return driver.Module(m), nil
}

// loadImage loads device code. If d.hasLibraries is set, it loads a library and gets the context's
// module from the library. Otherwise it loads a module. While the CUDA driver compiles a module, no
// thread can submit to the context, but a library is compiled without the context. hasLibraries is
// not set if the driver loads eagerly, because such a driver would load a library into all
// contexts.
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

// explain adds the symbols that the image lacks to an error.
func (c *contents) explain(err error) error {
	if len(c.undefined) == 0 {
		return err
	}
	const most = 5
	names, more := c.undefined, ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("unresolved symbol %s%s: the image was compiled to be linked (nvcc -rdc=true, ptxas -c); link it with the code that defines the symbol, by nvcc -dlink or nvlink: %w",
		strings.Join(names, ", "), more, err)
}

// log returns the messages of the compiler, errors first.
func (c *compiler) log() string {
	var parts []string
	for _, b := range [][]byte{c.err[:], c.info[:]} {
		text, _, _ := bytes.Cut(b, []byte{0}) // a truncated log may have no terminating NUL
		if s := strings.TrimSpace(strings.ToValidUTF8(string(text), "?")); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

func (d *device) Unload(m driver.Module) error {
	d.mu.Lock()
	loaded, has := d.modules[m]
	delete(d.modules, m) // must come before the unload: afterwards another module can get the handle
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

// Function loads the kernel's code now: loading it at a launch may have to wait for all work of the
// device. Function also allows the maximum of shared memory and the largest clusters.
func (d *device) Function(m driver.Module, kernel string) (driver.Function, driver.FuncInfo, error) {
	d.mu.Lock()
	code := d.modules[m].code
	d.mu.Unlock()
	if code == nil { // d.modules has no such module
		code = new(contents)
	}
	fail := func(err error, what string) (driver.Function, driver.FuncInfo, error) {
		return 0, driver.FuncInfo{}, d.fail("function", code.explain(err), "%s of kernel %q in module %#x", what, kernel, uintptr(m))
	}
	f, err := d.lib.ModuleGetFunction(cuda.Module(m), kernel)
	if errors.Is(err, cuda.ErrorNotFound) {
		switch _, has := code.params[kernel]; {
		case !has:
			err = fmt.Errorf("%w; a C++ kernel that is not extern \"C\" has a mangled name", err)
		case len(code.undefined) == 0:
			err = fmt.Errorf("%w, though the image has code of that name; code compiled with nvcc -rdc=true or ptxas -c must be linked by nvcc -dlink or nvlink", err)
		}
		return fail(err, "handle")
	} else if err != nil {
		return fail(err, "handle")
	}
	if d.hasFuncLoad { // older drivers load the code at the first query of an attribute
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
		// A kernel needs permission for clusters larger than the portable size.
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

// params returns the sizes of a kernel's parameters. If number is the constant untold, params asks
// the driver for one index after another until the driver returns an error. The sizes are worth
// that failing call: without them, a launch with too few arguments would make the driver read past
// the end of the arguments.
func (d *device) params(f cuda.Function, number int) ([]int, error) {
	const most = 1 << 15 // limits the loop: no kernel has parameters of more bytes
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
