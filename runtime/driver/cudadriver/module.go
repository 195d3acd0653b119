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

// Load accepts PTX, with or without a NUL at its end, a cubin and a fat binary.
func (d *device) Load(image []byte) (driver.Module, error) {
	image, form, err := prepare(image)
	if err != nil {
		return 0, d.fail("load", err, "device code")
	}
	// To the collector the options' values are numbers, also those that are addresses of the logs. Pin holds on to the
	// logs until Unpin, and has them stay where they are.
	c := new(compiler)
	var pin runtime.Pinner
	pin.Pin(c)
	defer pin.Unpin()
	c.options = [...]cuda.JitOption{cuda.JITInfoLogBuffer, cuda.JITInfoLogBufferSizeBytes, cuda.JITErrorLogBuffer, cuda.JITErrorLogBufferSizeBytes}
	c.values = [...]uintptr{uintptr(unsafe.Pointer(&c.info)), logSize, uintptr(unsafe.Pointer(&c.err)), logSize}
	m, err := d.lib.ModuleLoadDataEx(unsafe.Pointer(unsafe.SliceData(image)), c.options[:], c.values[:])
	if err != nil {
		if log := c.log(); log != "" {
			err = fmt.Errorf("%w\n%s", err, log)
		}
		return 0, d.fail("load", err, "%s of %d bytes", form, len(image))
	}
	return driver.Module(m), nil
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
	if err := d.lib.ModuleUnload(cuda.Module(m)); err != nil {
		return d.fail("unload", err, "module %#x", uintptr(m))
	}
	return nil
}

// Function has the kernel's code loaded and all shared memory allowed that it can have, since a launch must do neither:
// loading may wait for the whole device, and the limit is one of the kernel, not of a launch.
func (d *device) Function(m driver.Module, kernel string) (driver.Function, driver.FuncInfo, error) {
	fail := func(err error, what string) (driver.Function, driver.FuncInfo, error) {
		return 0, driver.FuncInfo{}, d.fail("function", err, "%s of kernel %q in module %#x", what, kernel, uintptr(m))
	}
	f, err := d.lib.ModuleGetFunction(cuda.Module(m), kernel)
	if errors.Is(err, cuda.ErrorNotFound) {
		return fail(fmt.Errorf("%w; a kernel of C++ that is not extern \"C\" has a mangled name", err), "handle")
	} else if err != nil {
		return fail(err, "handle")
	}
	if d.hasFuncLoad { // drivers without it load at the first question about an attribute
		if err := d.lib.FuncLoad(f); err != nil {
			return fail(err, "code")
		}
	}
	var info driver.FuncInfo
	for _, a := range []struct {
		attr cuda.FunctionAttribute
		to   *int
	}{
		{cuda.FuncAttributeMaxThreadsPerBlock, &info.MaxThreads},
		{cuda.FuncAttributeSharedSizeBytes, &info.SharedMem},
		{cuda.FuncAttributeNumRegs, &info.Registers},
		{cuda.FuncAttributeLocalSizeBytes, &info.LocalMem},
	} {
		v, err := d.lib.FuncGetAttribute(a.attr, f)
		if err != nil {
			return fail(err, a.attr.String())
		}
		*a.to = int(v)
	}
	if d.info.SharedOptIn > d.info.SharedMem {
		if err := d.lib.FuncSetAttribute(f, cuda.FuncAttributeMaxDynamicSharedSizeBytes, int32(d.info.SharedOptIn-info.SharedMem)); err != nil {
			return fail(err, "limit of dynamic shared memory")
		}
	}
	if d.caps.KernelParams {
		if info.Params, err = d.params(f); err != nil {
			return fail(err, "parameters")
		}
	}
	return driver.Function(f), info, nil
}

// params asks for the sizes of a kernel's parameters, whose number is told only by the first that is not there.
func (d *device) params(f cuda.Function) ([]int, error) {
	const most = 1 << 15 // bytes of parameters that any kernel can have, and then some
	sizes := []int{}
	for i := range uint64(most) {
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
