//go:build linux && (amd64 || arm64) && !nogpu

package nvrtc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens this machine's NVRTC, which needs no GPU.
func openReal(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{})
	if os.Getenv(spec.Env) == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NVRTC to compile with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NVRTC %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

func newProgram(t *testing.T, l *Library, source, file string, headers, names []*byte) Program {
	t.Helper()
	p, err := l.CreateProgram(source, file, headers, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.DestroyProgram(&p); err != nil || p != 0 {
			t.Errorf("destroying the program leaves %#x: %v", p, err)
		}
	})
	return p
}

// output fetches the output of a pair of functions, one for the size and one for the bytes.
func output(t *testing.T, p Program, size func(Program) (uint64, error), get func(Program, []byte) error) []byte {
	t.Helper()
	n, err := size(p)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if n > 0 {
		if err := get(p, b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func log(t *testing.T, l *Library, p Program) string {
	return strings.TrimRight(string(output(t, p, l.GetProgramLogSize, l.GetProgramLog)), "\x00")
}

func texts(t *testing.T, s ...string) []*byte {
	t.Helper()
	out, err := Texts(s...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	major, minor, err := l.GetVersion()
	if err != nil || dl.Version(major*1000+minor*10) != l.Version() {
		t.Errorf("version %d.%d, %v; Open found %d", major, minor, err, l.Version())
	}
	lacks := l.Missing()
	for _, s := range symbols {
		missing := slices.ContainsFunc(lacks, func(m dl.MissingSymbol) bool { return m.Name == s.Name })
		nvvm := strings.HasPrefix(s.Name, "nvrtcGetNVVM") && major >= 13
		if missing && s.Since <= l.Version() && !nvvm {
			t.Errorf("%s lacks %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
		if !missing && s.Since > l.Version() {
			t.Errorf("%s has %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
	}
	for r := Success; r <= ErrorInternalError; r++ {
		if got, err := l.GetErrorString(r); err != nil || got != r.Name() {
			t.Errorf("the library calls %d %q, %v; want %q", r, got, err, r.Name())
		}
	}
}

const scale = `#include "factor.h"
template <typename T> __global__ void scale(T *x, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] *= FACTOR;
}
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += FACTOR; }
`

// TestRealCompile compiles for the release's architectures, with a header, options and a lowered
// name.
func TestRealCompile(t *testing.T) {
	l := openReal(t)
	n, err := l.GetNumSupportedArchs()
	if err != nil {
		t.Fatal(err)
	}
	archs := make([]int32, n)
	if err := l.GetSupportedArchs(archs); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(archs) || !slices.Contains(archs, 75) || !slices.Contains(archs, 80) {
		t.Errorf("architectures %v are not in order, or without 75 and 80", archs)
	}
	for _, arch := range []int32{75, 80, 86, 90} {
		if !slices.Contains(archs, arch) {
			t.Logf("sm_%d is newer than this release", arch)
			continue
		}
		headers, names := texts(t, "#define FACTOR 3\n"), texts(t, "factor.h")
		p := newProgram(t, l, scale, "scale.cu", headers, names)
		*headers[0], *names[0] = '?', '?' // the library has copied the texts, so Go may free them
		if err := l.AddNameExpression(p, "scale<double>"); err != nil {
			t.Fatal(err)
		}
		if err := l.CompileProgram(p, texts(t, fmt.Sprintf("--gpu-architecture=sm_%d", arch), "--std=c++14")); err != nil {
			t.Fatalf("sm_%d: %v\n%s", arch, err, log(t, l, p))
		}
		lowered, err := l.GetLoweredName(p, "scale<double>")
		if err != nil {
			t.Fatal(err)
		}
		ptx := string(output(t, p, l.GetPTXSize, l.GetPTX))
		for _, want := range []string{".entry plain(", ".entry " + lowered + "(", fmt.Sprintf(".target sm_%d", arch)} {
			if !strings.Contains(ptx, want) {
				t.Errorf("sm_%d: the PTX has no %q:\n%.2000s", arch, want, ptx)
			}
		}
		if cubin := output(t, p, l.GetCUBINSize, l.GetCUBIN); !bytes.HasPrefix(cubin, []byte("\x7fELF")) {
			t.Errorf("sm_%d: the machine code is no ELF file: % x", arch, cubin[:min(len(cubin), 16)])
		}
	}
}

// TestRealMessages checks that the message for an error in the source has file and line.
func TestRealMessages(t *testing.T) {
	l := openReal(t)
	p := newProgram(t, l, "extern \"C\" __global__ void f(int *x) {\n\t*x = nothing;\n}\n", "broken.cu", nil, nil)
	if err := l.CompileProgram(p, nil); !errors.Is(err, ErrorCompilation) {
		t.Fatalf("compiling gives %v, want %v", err, ErrorCompilation)
	}
	text := log(t, l, p)
	want := []string{"broken.cu(2): error", `"nothing" is undefined`}
	if l.Version() >= 12040 { // 11.8 does not quote the line
		want = append(want, "*x = nothing;", "^")
	}
	for _, want := range want {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
	if err := l.AddNameExpression(p, "f"); !errors.Is(err, ErrorNoNameExpressionsAfterCompilation) {
		t.Errorf("a name after compiling: %v", err)
	}
	q := newProgram(t, l, "", "", nil, nil)
	if err := l.CompileProgram(q, texts(t, "--no-such-option")); !errors.Is(err, ErrorInvalidOption) {
		t.Errorf("an unknown option: %v", err)
	}
	if _, err := l.GetPTXSize(0); !errors.Is(err, ErrorInvalidProgram) && !errors.Is(err, ErrorInvalidInput) {
		t.Errorf("PTX of no program: %v", err)
	}
}

// TestRealPrecompiled makes a precompiled header in one compilation and uses it in another, if the
// release can.
func TestRealPrecompiled(t *testing.T) {
	l := openReal(t)
	size, err := l.GetPCHHeapSize()
	if l.Version() < 12080 {
		_, required := l.GetPCHHeapSizeRequired(0)
		for _, err := range []error{err, l.SetPCHHeapSize(1 << 20), l.GetPCHCreateStatus(0), required} {
			absent(t, err, "12.8")
		}
		return
	}
	if err != nil || size == 0 {
		t.Fatalf("the heap has %d bytes, %v", size, err)
	}
	if err := l.SetPCHHeapSize(2 * size); err != nil {
		t.Fatal(err)
	}
	if got, err := l.GetPCHHeapSize(); err != nil || got < 2*size {
		t.Errorf("the heap has %d bytes, %v, of the %d set", got, err, 2*size)
	}
	headers, names := texts(t, "template <typename T> __device__ T twice(T x) { return 2 * x; }\n"), texts(t, "twice.h")
	source := "#include \"twice.h\"\nextern \"C\" __global__ void f(int *x) { *x = twice(*x); }\n"
	dir := t.TempDir()
	for _, tt := range []struct {
		option string
		want   error
	}{
		{"", ErrorNoPCHCreateAttempted},
		{"--create-pch=twice.pch", nil},
		{"--use-pch=twice.pch", ErrorNoPCHCreateAttempted},
	} {
		p := newProgram(t, l, source, "twice.cu", headers, names)
		options := []string{"--gpu-architecture=sm_80"}
		if tt.option != "" {
			options = append(options, tt.option, "--pch-dir="+dir)
		}
		if err := l.CompileProgram(p, texts(t, options...)); err != nil {
			t.Fatalf("%q: %v\n%s", tt.option, err, log(t, l, p))
		}
		if err := l.GetPCHCreateStatus(p); !errors.Is(err, tt.want) {
			t.Errorf("%q: the status is %v, want %v\n%s", tt.option, err, tt.want, log(t, l, p))
		}
		if tt.want == nil {
			if n, err := l.GetPCHHeapSizeRequired(p); err != nil || n == 0 {
				t.Errorf("%q took %d bytes of the heap, %v", tt.option, n, err)
			}
		}
	}
}

// TestRealCancel checks that a Go function can cancel or watch a compilation, if the release has
// callbacks.
func TestRealCancel(t *testing.T) {
	l := openReal(t)
	const cancel, watch = 7, 8
	var calls [watch + 1]atomic.Int32
	addr, err := dl.Callback(func(payload, reserved uintptr) int32 {
		if payload > watch || reserved != 0 {
			return 0
		}
		calls[payload].Add(1)
		if payload == cancel {
			return 1
		}
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, l, "extern \"C\" __global__ void f(int *x) { *x += 1; }\n", "f.cu", nil, nil)
	err = l.SetFlowCallback(p, FlowCallback(addr), cancel)
	if l.Version() < 12080 {
		absent(t, err, "12.8")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CompileProgram(p, nil); !errors.Is(err, ErrorCancelled) || calls[cancel].Load() == 0 {
		t.Errorf("cancelled at once: %v after %d calls", err, calls[cancel].Load())
	}
	q := newProgram(t, l, "extern \"C\" __global__ void f(int *x) { *x += 1; }\n", "f.cu", nil, nil)
	if err := errors.Join(l.SetFlowCallback(q, FlowCallback(addr), watch), l.CompileProgram(q, nil)); err != nil || calls[watch].Load() == 0 {
		t.Errorf("not cancelled: %v after %d calls\n%s", err, calls[watch].Load(), log(t, l, q))
	}
}

// absent fails the test unless err says that a later release introduced the function.
func absent(t *testing.T, err error, since string) {
	t.Helper()
	if !errors.Is(err, dl.ErrSymbol) || !strings.Contains(err.Error(), since) {
		t.Errorf("a function that the library lacks: %v, want an error that tells %s", err, since)
	}
}
