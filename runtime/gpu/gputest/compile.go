package gputest

import (
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var saxpySource = compile.Source{
	Name:    "saxpy.cu",
	Headers: map[string]string{"axpy.h": "__device__ inline float axpy(float a, float x, float y) { return a * x + y; }\n"},
	Text: `#include "axpy.h"

extern "C" __global__ void saxpy(unsigned long long n, float a, const float *x, float *y)
{
	unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = axpy(a, x[i], y[i]);
}
`,
}

// noCache is a cache that keeps no files on the disk.
var noCache = compile.Cache{Size: -1}

// compile compiles a source for the first device. If the compiler's library is missing, compile
// skips the test. If the driver has no compiler, compile returns the error.
func (e *env) compile(source compile.Source) (*gpu.Module, error) {
	e.Helper()
	x, info, err := noCache.Compile(e.devs[0], source)
	if errors.Is(err, driver.ErrUnsupported) {
		if !e.caps(0).Compile {
			return nil, err
		}
		e.Skipf("no compiler: %v", err)
	}
	if err == nil {
		e.Logf("%+v", info)
		e.Cleanup(func() { x.Close() })
	}
	return x, err
}

var compiling = []test{
	{name: "B188 a source with a header", kernels: true, run: func(e *env) {
		x, err := e.compile(saxpySource)
		if !e.tells("compile", e.caps(0).Compile, err) {
			return
		}
		k, err := x.Kernel("saxpy")
		e.must(err)
		const n = 1000
		hx, hy := make([]float32, n), make([]float32, n)
		for i := range n {
			hx[i], hy[i] = float32(i), 1
		}
		bx, by, s := e.buffer(4*n), e.buffer(4*n), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.UploadCopy(bx.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hx[0])), 4*n))))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.UploadCopy(by.All(), unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n))))
		e.must(e.q(0).Submit(between(s, 2, s, 3), gpu.Launch(k, gpu.GridFor(n, 256), uint64(n), float32(2), bx.Ptr(), by.Ptr())))
		e.must(e.q(0).Submit(between(s, 3, s, 4), gpu.Download(unsafe.Slice((*byte)(unsafe.Pointer(&hy[0])), 4*n), by.All())))
		e.wait(s, 4)
		for i, v := range hy {
			if want := 2*float32(i) + 1; v != want {
				e.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
	}},
	{name: "B188 a kernel that the source does not have", kernels: true, run: func(e *env) {
		x, err := e.compile(saxpySource)
		if !e.tells("compile", e.caps(0).Compile, err) {
			return
		}
		if k, err := x.Kernel("no_such_kernel"); err == nil {
			e.Errorf("there is %v", k.Name())
		}
	}},
	{name: "B188 an error has file and line", kernels: true, run: func(e *env) {
		able := e.caps(0).Compile
		// The simulated GPU fails because it has no kernel no_such_kernel. A compiler fails because
		// there is no variable no_such_variable.
		_, err := e.compile(compile.Source{Name: "wrong.cu", Headers: map[string]string{"fine.h": "#define FINE 1\n"},
			Text: "#include \"fine.h\"\n\nextern \"C\" __global__ void no_such_kernel(int *x) { *x = no_such_variable; }\n"})
		if !able {
			e.tells("compile", able, err)
			return
		}
		c, ok := errors.AsType[*driver.CompileError](err)
		if !ok {
			e.Fatalf("%v is no CompileError", err)
		}
		e.Logf("%v", err)
		at := slices.IndexFunc(c.Messages, func(m driver.Message) bool { return m.IsError() && m.File == "wrong.cu" && m.Line == 3 })
		if at < 0 || !strings.Contains(c.Messages[at].Text, "no_such") || !strings.Contains(err.Error(), "wrong.cu(3)") || c.Source != "wrong.cu" {
			e.Errorf("none of %+v says what is wrong in line 3", c.Messages)
		}
	}},
	{name: "B188 on a device that is closed", run: func(e *env) {
		d, err := gpu.Open(e.h.Driver, 0, gpu.Options{})
		e.must(err)
		e.must(d.Close())
		if _, _, err := noCache.Compile(d, saxpySource); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("%v", err)
		}
	}},
}
