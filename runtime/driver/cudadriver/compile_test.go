//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// withNVRTC has devices find testdata/fakes/nvrtc.c, and returns its file.
func withNVRTC(t *testing.T, defines ...string) string {
	t.Helper()
	path := testlib.Fake{File: "libnvrtc.so.12", Source: "nvrtc.c", Defines: defines}.Build(t)
	t.Setenv("PUREGPU_NVRTC_LIBRARY", path)
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
	f, path := newFake(t, 13000), withNVRTC(t)
	d := f.device()
	c, err := d.Compiler()
	ok(t, err)
	if i := c.Info(); i.Name != "NVRTC" || i.Version != "12.4" || i.Target != "sm_90" || i.Transient || !strings.HasPrefix(i.Build, "libnvrtc.so.12 ") {
		t.Errorf("%+v", i)
	}
	src := &driver.Source{Name: "k.cu", Text: "int odd;", Headers: map[string]string{"b.h": "two", "a.h": "one"}, Options: []string{"-DX=1", "-lineinfo"}, Names: []string{"f<int>", "&table"}}
	code, err := c.Compile(src)
	ok(t, err)
	if want := "\x7fELFname k.cu\nheader a.h: one\nheader b.h: two\noption --gpu-architecture=sm_90\noption -DX=1\noption -lineinfo\n"; string(code.Image) != want {
		t.Errorf("%q\nwant %q", code.Image, want)
	}
	if len(code.Names) != 2 || code.Names["f<int>"] != "_Z_f<int>" || code.Names["&table"] != "_Z_&table" {
		t.Errorf("names %v", code.Names)
	}
	if want := "k.cu(1): warning #177-D: variable \"odd\" was declared but never referenced\n  int odd;\n      ^"; code.Log != want {
		t.Errorf("log %q", code.Log)
	}
	for _, own := range []string{"-arch=sm_90a", "--gpu-architecture=sm_90a", "-gpu-architecture=compute_80"} {
		src.Options = []string{"-G", own}
		code, err := c.Compile(src)
		ok(t, err)
		if text := string(code.Image); strings.Contains(text, "sm_90\n") || !strings.Contains(text, "option -G\noption "+own+"\n") {
			t.Errorf("%s: %q", own, text)
		}
	}
	f.want("") // it is nothing to the driver
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d.cu", i, j)
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
	f, path := newFake(t, 13000), withNVRTC(t)
	c, err := f.device().Compiler()
	ok(t, err)
	for _, x := range []struct {
		name string
		src  driver.Source
		kind error
		text string
		msgs int
	}{
		{"the source", driver.Source{Text: "odd\nwrong"}, nvrtc.ErrorCompilation, `cuda: compile: NVRTC 12.4 for sm_90: k.cu(2): error: identifier "wrong" is undefined`, 2},
		{"an option", driver.Source{Options: []string{"--bogus"}}, nvrtc.ErrorInvalidOption, "cuda: compile: NVRTC 12.4 for sm_90: error: nvrtc: unrecognized option --bogus found", 1},
		{"an expression", driver.Source{Text: "none", Names: []string{"f<int>"}}, nvrtc.ErrorNameExpressionNotValid, `cuda: compile: NVRTC 12.4 for sm_90: k.cu: name expression "f<int>": nvrtc: NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID`, 0},
		{"no code", driver.Source{Options: []string{"-arch=lto_90", "-dlto"}}, driver.ErrUnsupported, "cuda: compile: NVRTC 12.4 for sm_90: k.cu: the options give neither", 0},
		{"a NUL", driver.Source{Text: "\x00"}, dl.ErrNUL, "cuda: compile: NVRTC 12.4 for sm_90: k.cu: ", 0},
		{"a NUL in an option", driver.Source{Options: []string{"a\x00"}}, dl.ErrNUL, "cuda: compile: NVRTC 12.4 for sm_90: k.cu: ", 0},
		{"a NUL in a header", driver.Source{Headers: map[string]string{"a": "a\x00"}}, dl.ErrNUL, "cuda: compile: NVRTC 12.4 for sm_90: k.cu: ", 0},
	} {
		x.src.Name = "k.cu"
		_, err := c.Compile(&x.src)
		e, is := errors.AsType[*driver.CompileError](err)
		if !is || !errors.Is(err, x.kind) || !strings.HasPrefix(err.Error(), x.text) || len(e.Messages) != x.msgs {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if n := programs(t, path); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

func TestCompileTargets(t *testing.T) {
	l := &nvrtcLibrary{archs: []int{50, 52, 75, 80, 90}}
	for arch, want := range map[int]string{50: "sm_50", 75: "sm_75", 90: "sm_90", 53: "compute_52", 86: "compute_80", 100: "compute_90", 121: "compute_90"} {
		if got, err := l.target(arch); got != want || err != nil {
			t.Errorf("for %d: %s, %v; want %s", arch, got, err, want)
		}
	}
	for _, l := range []*nvrtcLibrary{l, {}} {
		if got, err := l.target(37); got != "" || !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("for 37: %s, %v", got, err)
		}
	}
	// Through a library: the device is of compute capability 9.0.
	for archs, want := range map[string]string{"50,80": "compute_80", "100,90,80": "sm_90", "100,120": ""} {
		f := newFake(t, 13000)
		withNVRTC(t, "ARCHS="+archs)
		c, err := f.device().Compiler()
		if want == "" {
			if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "[100 120]") {
				t.Errorf("%v", err)
			}
			continue
		}
		ok(t, err)
		code, err := c.Compile(&driver.Source{Name: "k.cu"})
		if c.Info().Target != want || err != nil || strings.HasPrefix(string(code.Image), ".version") != strings.HasPrefix(want, "compute") {
			t.Errorf("%s: %+v, %q, %v", archs, c.Info(), code.Image, err)
		}
	}
}

// TestNoNVRTC does without the library: everything else works.
func TestNoNVRTC(t *testing.T) {
	f := newFake(t, 13000)
	t.Setenv("PUREGPU_NVRTC_LIBRARY", filepath.Join(t.TempDir(), "libnvrtc.so.12"))
	cache := compile.Cache{Size: -1}
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for range 2 {
		_, _, err = cache.Compile(dev, compile.Source{Text: "x"})
		e, is := errors.AsType[*driver.Error](err)
		if !is || e.Op != "compile" || !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) ||
			!strings.Contains(err.Error(), "PUREGPU_NVRTC_LIBRARY") || !strings.Contains(err.Error(), "install") {
			t.Errorf("%v", err)
		}
	}
	x, err := dev.Load([]byte(emptyPTX))
	ok(t, err)
	ok(t, x.Close())
}

// TestWithNVRTC names NVRTC's file by an option, which comes before the environment.
func TestWithNVRTC(t *testing.T) {
	f := newFake(t, 13000)
	withNVRTC(t)
	absent := filepath.Join(t.TempDir(), "libnvrtc.so.12")
	drv, err := Open(cuda.Options{Path: f.path}, WithNVRTC(nvrtc.Options{Path: absent}))
	ok(t, err)
	d, err := drv.Open(0)
	ok(t, err)
	if _, err := d.(driver.Compilers).Compiler(); !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), absent+" (Options.Path)") {
		t.Errorf("NVRTC at %s: %v", absent, err)
	}
	ok(t, d.Close())
}

// TestRealNVRTC compiles with the NVRTC of this machine, which needs no GPU, and loads the code into a driver that is none.
func TestRealNVRTC(t *testing.T) {
	l, err := nvrtc.Open(nvrtc.Options{})
	if os.Getenv("PUREGPU_NVRTC_LIBRARY") == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NVRTC to compile with: %v", err)
	}
	ok(t, err)
	target := "sm_90"
	if l.Version() < 11080 { // which brought that; the newest of the release's is then translated by the driver
		target = "compute_86"
	}
	f := newFake(t, 13000)
	t.Chdir(t.TempDir())
	ok(t, os.WriteFile("scale.h", []byte("#error of the folder"), 0o600)) // that by name comes first
	cache := compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for i, cached := range []bool{false, true} {
		x, info, err := cache.Compile(dev, scaleSource)
		ok(t, err)
		t.Logf("%+v", info)
		if info.Target != target || info.Cached != cached || info.CacheErr != nil {
			t.Errorf("the %d. time: %+v", i+1, info)
		}
		if !strings.Contains(info.Log, "scale.cu(") || !strings.Contains(info.Log, "unused") {
			t.Errorf("the log has no warning: %q", info.Log)
		}
		f.calls()
		for expression, want := range map[string]string{"saxpy": "saxpy", "scale<float>": "_Z5scaleIfEvPT_S0_i", "scale<double>": "_Z5scaleIdEvPT_S0_i"} {
			if _, err := x.Kernel(expression); err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if calls := f.calls(); !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "cuModuleGetFunction(") && strings.Contains(c, want) }) {
				t.Errorf("%s is not looked for as %s: %q", expression, want, calls)
			}
		}
		ok(t, x.Close())
	}
	wrong := scaleSource
	wrong.Headers = map[string]string{"scale.h": "#define FACTOR nothing\n__device__ int f() { return none; }\n"}
	_, _, err = cache.Compile(dev, wrong)
	e, is := errors.AsType[*driver.CompileError](err)
	if !is || !errors.Is(err, nvrtc.ErrorCompilation) {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	var at []string
	for _, m := range e.Messages {
		if m.IsError() {
			at = append(at, fmt.Sprintf("%s:%d", m.File, m.Line))
		}
	}
	if !slices.Contains(at, "scale.h:2") || !slices.Contains(at, "scale.cu:6") {
		t.Errorf("errors at %v", at)
	}
	if _, _, err := cache.Compile(dev, compile.Source{Text: "x", Options: []string{"--no-such-option"}}); !errors.Is(err, nvrtc.ErrorInvalidOption) || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("an option: %v", err)
	}
}

// TestCompileProcesses has 100 processes compile one source at once. They leave one entry, which the next finds.
func TestCompileProcesses(t *testing.T) {
	const child = "PUREGPU_TEST_COMPILE" // has the driver's file and the folder of the cache
	once := func(path, dir string) compile.Info {
		drv, err := Open(cuda.Options{Path: path})
		ok(t, err)
		cache := compile.Cache{Dir: dir}
		dev, err := gpu.Open(drv, 0, gpu.Options{})
		ok(t, err)
		defer dev.Close()
		_, info, err := cache.Compile(dev, compile.Source{Name: "k.cu", Text: "x", Options: []string{"-arch=compute_80"}})
		ok(t, err)
		return info
	}
	if path, dir, is := strings.Cut(os.Getenv(child), "\n"); is {
		if got := once(path, dir); got.CacheErr != nil {
			t.Errorf("%+v", got)
		}
		return
	}
	program, err := os.Executable()
	ok(t, err)
	f, dir := newFake(t, 13000), filepath.Join(t.TempDir(), "cache")
	withNVRTC(t)
	t.Setenv(child, f.path+"\n"+dir)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if out, err := exec.Command(program, "-test.run=^TestCompileProcesses$").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	ok(t, err)
	if len(files) != 1 {
		t.Errorf("they leave %v", files)
	}
	if got := once(f.path, dir); !got.Cached || got.CacheErr != nil {
		t.Errorf("after them: %+v", got)
	}
}
