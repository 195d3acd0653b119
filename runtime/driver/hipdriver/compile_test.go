//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// withHIPRTC has devices find testdata/fakes/hiprtc.c, as a file of a release, and returns the file.
func withHIPRTC(t *testing.T, file string) string {
	t.Helper()
	path := testlib.Fake{File: file, Source: "hiprtc.c"}.Build(t)
	t.Setenv("PUREGPU_HIPRTC_LIBRARY", path)
	return path
}

// programs returns how many programs the fake has.
func programs(t *testing.T, path string) int {
	t.Helper()
	var ctl dl.Library
	ok(t, ctl.Open(&dl.Spec{Name: "fake's handles", Package: "fake", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "fake_live"}}}, nil, dl.Options{Path: path}))
	n, err := ctl.Slow(0)
	ok(t, err)
	return int(int32(n))
}

func TestCompile(t *testing.T) {
	f, path := newFake(t, hip64), withHIPRTC(t, "libhiprtc.so.6.4.43484")
	d := f.device()
	c, err := d.Compiler()
	ok(t, err)
	if i := c.Info(); i.Name != "hipRTC" || i.Version != "6.4.43484" || i.Target != "gfx90a" || i.Transient || !strings.HasPrefix(i.Build, "libhiprtc.so.6.4.43484 ") {
		t.Errorf("%+v", i)
	}
	src := &driver.Source{Name: "k.hip", Text: "int odd;", Headers: map[string]string{"b.h": "two", "a.h": ""}, Options: []string{"-DX=1", "-O3"}, Names: []string{"f<int>", "&table"}}
	code, err := c.Compile(src)
	ok(t, err)
	if want := "\x7fELFname k.hip\nheader a.h: \n\nheader b.h: two\noption --offload-arch=gfx90a\noption -DX=1\noption -O3\n"; string(code.Image) != want {
		t.Errorf("%q\nwant %q", code.Image, want)
	}
	if src.Headers["a.h"] != "" {
		t.Error("the caller's headers were changed")
	}
	if len(code.Names) != 2 || code.Names["f<int>"] != "_Z_f<int>" || code.Names["&table"] != "_Z_&table" {
		t.Errorf("names %v", code.Names)
	}
	if want := "k.hip:1:5: warning: unused variable 'odd' [-Wunused-variable]\nint odd;\n    ^\n1 warning generated when compiling for gfx90a."; code.Log != want {
		t.Errorf("log %q", code.Log)
	}
	for _, own := range []string{"--offload-arch=gfx90a:xnack-", "--gpu-architecture=gfx942"} {
		code, err := c.Compile(&driver.Source{Name: "k.hip", Options: []string{"-g", own}})
		ok(t, err)
		if text := string(code.Image); strings.Contains(text, "gfx90a\n") || !strings.Contains(text, "option -g\noption "+own+"\n") {
			t.Errorf("%s: %q", own, text)
		}
	}
	f.want("") // it is nothing to HIP
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d.hip", i, j)
				code, err := c.Compile(&driver.Source{Name: name, Text: "x"})
				if err != nil || !strings.Contains(string(code.Image), "name "+name+"\n") {
					t.Errorf("%s: %q, %v", name, code.Image, err)
				}
			}
		})
	}
	all.Wait()
	if n := programs(t, path); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

func TestCompileErrors(t *testing.T) {
	f, path := newFake(t, hip64), withHIPRTC(t, "libhiprtc.so.6")
	c, err := f.device().Compiler()
	ok(t, err)
	if i := c.Info(); i.Version != "" { // neither the name nor the library tells it
		t.Errorf("%+v", i)
	}
	for _, x := range []struct {
		name string
		src  driver.Source
		kind error
		text string
		msgs int
	}{
		{"the source", driver.Source{Text: "odd\nwrong"}, hiprtc.ErrorCompilation, "hip: compile: hipRTC for gfx90a: sub/bad.h(1): error: unknown type name 'bad' (and 1 more)\n", 3},
		{"an option", driver.Source{Options: []string{"--bogus"}}, hiprtc.ErrorCompilation, "hip: compile: hipRTC for gfx90a: error: unsupported option '--bogus'\n", 1},
		{"an expression", driver.Source{Text: "none", Names: []string{"f<int>"}}, hiprtc.ErrorNameExpressionNotValid, `hip: compile: hipRTC for gfx90a: k.hip: name expression "f<int>": hiprtc: HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID`, 0},
		{"no code", driver.Source{Options: []string{"-fgpu-rdc"}}, driver.ErrUnsupported, "hip: compile: hipRTC for gfx90a: k.hip: the options give no code object", 0},
		{"a NUL", driver.Source{Text: "\x00"}, dl.ErrNUL, "hip: compile: hipRTC for gfx90a: k.hip: ", 0},
		{"a NUL in an option", driver.Source{Options: []string{"a\x00"}}, dl.ErrNUL, "hip: compile: hipRTC for gfx90a: k.hip: ", 0},
		{"a NUL in a header", driver.Source{Headers: map[string]string{"a": "a\x00"}}, dl.ErrNUL, "hip: compile: hipRTC for gfx90a: k.hip: ", 0},
	} {
		x.src.Name = "k.hip"
		_, err := c.Compile(&x.src)
		e, is := errors.AsType[*driver.CompileError](err)
		if !is || !errors.Is(err, x.kind) || !strings.HasPrefix(err.Error(), x.text) || len(e.Messages) != x.msgs || strings.Contains(e.Log, "comgr") {
			t.Errorf("%s: %v", x.name, err)
		}
		if x.name == "the source" && (e.Messages[2].File != "k.hip" || e.Messages[2].Line != 2 || e.Messages[2].Column != 6 || e.Messages[2].Detail != "*x = wrong;\n     ^") {
			t.Errorf("%+v", e.Messages)
		}
	}
	if n := programs(t, path); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

// TestCompileNames gives source and headers their names in logs.
func TestCompileNames(t *testing.T) {
	for log, want := range map[string]string{
		"/tmp/comgr-314-2-f5c1be/input/dir/k.hip:2:7: error: x":                "dir/k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/input/CompileSource:2:7: error: x":                  "k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/input/k.hip:2:7: error: x":                          "k.hip:2:7: error: x",
		"/tmp/comgr-b11c63/include/sub/h.h:2:7: error: x":                      "sub/h.h:2:7: error: x",
		"In file included from /var/tmp/comgr-1/input/CompileSource:1:\nx":     "In file included from k.hip:1:\nx",
		`C:\Temp\comgr-1\include\h.h:1:1: error: 'C:\comgr-2\input\k.hip'`:     `h.h:1:1: error: 'k.hip'`,
		"/usr/include/h.h:1:1: error: x in /tmp/other/input/CompileSource":     "/usr/include/h.h:1:1: error: x in /tmp/other/input/CompileSource",
		"/tmp/comgr-1/input/CompileSources:1:1: error: of a file by this name": "CompileSources:1:1: error: of a file by this name",
	} {
		if got := named(log, "k.hip"); got != want {
			t.Errorf("%q becomes %q", log, got)
		}
	}
}

// TestNoHIPRTC does without the library: everything else works.
func TestNoHIPRTC(t *testing.T) {
	f := newFake(t, hip64)
	t.Setenv("PUREGPU_HIPRTC_LIBRARY", filepath.Join(t.TempDir(), "libhiprtc.so.6"))
	cache := compile.Cache{Size: -1}
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for range 2 {
		_, _, err = cache.Compile(dev, compile.Source{Text: "x"})
		e, is := errors.AsType[*driver.Error](err)
		if !is || e.Op != "compile" || !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) ||
			!strings.Contains(err.Error(), "PUREGPU_HIPRTC_LIBRARY") || !strings.Contains(err.Error(), "install") {
			t.Errorf("%v", err)
		}
	}
	x, err := dev.Load(codeObject())
	ok(t, err)
	ok(t, x.Close())
}

// TestWithHIPRTC names hipRTC's file by an option, which comes before the environment.
func TestWithHIPRTC(t *testing.T) {
	f := newFake(t, hip64)
	withHIPRTC(t, "libhiprtc.so.6")
	absent := filepath.Join(t.TempDir(), "libhiprtc.so.6")
	drv, err := Open(hip.Options{Path: f.path}, WithHIPRTC(hiprtc.Options{Path: absent}))
	ok(t, err)
	d, err := drv.Open(0)
	ok(t, err)
	if _, err := d.(driver.Compilers).Compiler(); !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), absent+" (Options.Path)") {
		t.Errorf("hipRTC at %s: %v", absent, err)
	}
	ok(t, d.Close())
}

// TestCompileForOthers has devices that are none of AMD's, or do not tell what they are.
func TestCompileForOthers(t *testing.T) {
	withHIPRTC(t, "libhiprtc.so.6")
	for _, arch := range []string{"", "sm_90"} {
		d := newFake(t, hip64).device()
		d.info.Arch, d.target = arch, arch
		if _, err := d.Compiler(); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), d.arch()) {
			t.Errorf("%q: %v", arch, err)
		}
	}
}

// TestRealHIPRTC compiles with the hipRTC of this machine, which needs no GPU, and loads the code into a library that is no HIP. In HIP 5
// hipRTC is a part of libamdhip64, which is opened only when asked for.
func TestRealHIPRTC(t *testing.T) {
	if os.Getenv("PUREGPU_HIPRTC_LIBRARY") == "" && os.Getenv("PUREGPU_TEST_REAL_HIP") != "1" {
		t.Skip("neither PUREGPU_HIPRTC_LIBRARY nor PUREGPU_TEST_REAL_HIP=1 asks for it")
	}
	source := compile.Source{
		Name:    "dir/scale.hip",
		Headers: map[string]string{"sub/scale.h": "#pragma once\n#include \"empty.h\"\n#define FACTOR 3\n", "empty.h": ""},
		Options: []string{"--std=c++17", "-Wall"},
		Names:   []string{"scale<float>", "scale<double>", "&table"},
		Text: `#include "sub/scale.h"
__constant__ float table[4] = {1, 2, 3, 4};

template <typename T> __global__ void scale(T *x, T add, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, unused;
	if (i < n)
		x[i] = x[i] * (T)FACTOR + add + (T)table[i % 4];
}

extern "C" __global__ void plain(float *x) { x[threadIdx.x] += FACTOR; }
`,
	}
	f := newFake(t, hip64)
	cache := compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for i, cached := range []bool{false, true} {
		x, info, err := cache.Compile(dev, source)
		ok(t, err)
		t.Logf("%+v", info)
		if info.Target != "gfx90a" || info.Cached != cached || info.CacheErr != nil {
			t.Errorf("the %d. time: %+v", i+1, info)
		}
		if !strings.Contains(info.Log, "dir/scale.hip:6:") || !strings.Contains(info.Log, "unused") {
			t.Errorf("the log has no warning: %q", info.Log)
		}
		f.calls()
		for expression, want := range map[string]string{"plain": "plain", "scale<float>": "_Z5scaleIfEvPT_S0_i", "scale<double>": "_Z5scaleIdEvPT_S0_i"} {
			if _, err := x.Kernel(expression); err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if calls := f.calls(); !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "hipModuleGetFunction(") && strings.Contains(c, want) }) {
				t.Errorf("%s is not looked for as %s: %q", expression, want, calls)
			}
		}
		ok(t, x.Close())
	}
	wrong := source
	wrong.Headers = map[string]string{"sub/scale.h": "#define FACTOR nothing\n__device__ int f() { return none; }\n"}
	_, _, err = cache.Compile(dev, wrong)
	e, is := errors.AsType[*driver.CompileError](err)
	if !is || !errors.Is(err, hiprtc.ErrorCompilation) {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	var at []string
	for _, m := range e.Messages {
		if m.IsError() {
			at = append(at, fmt.Sprintf("%s:%d", m.File, m.Line))
		}
	}
	if !slices.Contains(at, "sub/scale.h:2") || !slices.Contains(at, "dir/scale.hip:8") {
		t.Errorf("errors at %v", at)
	}
	if _, _, err := cache.Compile(dev, compile.Source{Text: "", Options: []string{"--no-such-option"}}); !errors.Is(err, hiprtc.ErrorCompilation) || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("an option: %v", err)
	}
}
