//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// withNVJitLink builds testdata/fakes/nvjitlink.c and makes devices load it. It returns the path of
// the library.
func withNVJitLink(t *testing.T, defines ...string) string {
	t.Helper()
	path := testlib.Fake{File: "libnvJitLink.so.12", Source: "nvjitlink.c", Defines: defines}.Build(t)
	t.Setenv("PUREGPU_NVJITLINK_LIBRARY", path)
	return path
}

// linker returns the compiler that links.
func linker(d driver.Device) (driver.Compiler, error) {
	c, err := d.(driver.Compilers).Compiler()
	if err != nil {
		return nil, err
	}
	return c.(driver.Linkers).Linker()
}

func TestLink(t *testing.T) {
	f, compiler, path := newFake(t, 13000), withNVRTC(t), withNVJitLink(t)
	c, err := linker(f.device())
	ok(t, err)
	if i := c.Info(); i.Name != "NVRTC" || i.Version != "12.4, nvJitLink 12.4" || i.Target != "sm_90" || i.Transient ||
		!strings.HasPrefix(i.Build, "libnvrtc.so.12 ") || !strings.Contains(i.Build, "\nlibnvJitLink.so.12 ") {
		t.Errorf("%+v", i)
	}
	src := &driver.Source{Name: "a.cu", Text: "int odd;", Headers: map[string]string{"a.h": "one"}, Options: []string{"-DX=1"}, Names: []string{"f<int>"},
		Link: []driver.Source{{Name: "b.cu", Text: "b", Options: []string{"-dlto"}, Names: []string{"&table"}}}, LinkOptions: []string{"-verbose"}}
	code, err := c.Compile(src)
	ok(t, err)
	want := "\x7fELFlink -lto\nlink -arch=sm_90\nlink -verbose\n" +
		"input a.cu {\nname a.cu\nheader a.h: one\noption -dlto\noption --gpu-architecture=sm_90\noption -DX=1\nint odd;\n}\n" +
		"input b.cu {\nname b.cu\noption --gpu-architecture=sm_90\noption -dlto\nb\n}\n"
	if string(code.Image) != want {
		t.Errorf("%q\nwant %q", code.Image, want)
	}
	if len(code.Names) != 2 || code.Names["f<int>"] != "_Z_f<int>" || code.Names["&table"] != "_Z_&table" {
		t.Errorf("names %v", code.Names)
	}
	if want := "a.cu(1): warning #177-D: variable \"odd\" was declared but never referenced\n  int odd;\n      ^\ninfo    : it was linked"; code.Log != want {
		t.Errorf("log %q", code.Log)
	}
	b := []driver.Source{{Name: "b.cu", Text: "b"}}
	for _, x := range []struct {
		src  driver.Source
		want string
	}{
		{driver.Source{Options: []string{"-arch=sm_90a"}}, "\x7fELFlink -lto\nlink -arch=sm_90a\ninput "},
		{driver.Source{Options: []string{"--gpu-architecture", "sm_90a"}}, "\x7fELFlink -lto\nlink -arch=sm_90a\ninput "},
		{driver.Source{Options: []string{"-arch=compute_80"}}, ".version\nlink -lto\nlink -ptx\nlink -arch=sm_80\ninput "},
		{driver.Source{LinkOptions: []string{"-lto", "-arch=sm_80", "-ftz=1"}}, "\x7fELFlink -lto\nlink -arch=sm_80\nlink -ftz=1\ninput "},
		{driver.Source{LinkOptions: []string{"-ptx"}}, ".version\nlink -lto\nlink -arch=sm_90\nlink -ptx\ninput "},
	} {
		x.src.Name, x.src.Link = "a.cu", b
		code, err := c.Compile(&x.src)
		ok(t, err)
		if !strings.HasPrefix(string(code.Image), x.want) {
			t.Errorf("%q and %q: %q", x.src.Options, x.src.LinkOptions, code.Image)
		}
	}
	f.Want("") // linking makes no call of the CUDA driver
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d.cu", i, j)
				code, err := c.Compile(&driver.Source{Name: name, Text: "x", Link: b})
				if err != nil || !strings.Contains(string(code.Image), "input "+name+" {\n") {
					t.Errorf("%s: %q, %v", name, code.Image, err)
				}
			}
		})
	}
	all.Wait()
	if n, m := drivertest.Programs(t, compiler), drivertest.Programs(t, path); n != 0 || m != 0 {
		t.Errorf("%d programs and %d linkers are left", n, m)
	}
}

func TestLinkErrors(t *testing.T) {
	f, compiler, path := newFake(t, 13000), withNVRTC(t), withNVJitLink(t)
	c, err := linker(f.device())
	ok(t, err)
	const by = "cuda: compile: NVRTC 12.4, nvJitLink 12.4 for sm_90: "
	for _, x := range []struct {
		name string
		src  driver.Source
		of   string
		kind error
		text string
		msgs int
	}{
		{"the second source", driver.Source{Link: []driver.Source{{Name: "b.cu", Text: "wrong"}}}, "b.cu", nvrtc.ErrorCompilation, `b.cu(2): error: identifier "wrong" is undefined`, 1},
		{"linking", driver.Source{Link: []driver.Source{{Name: "b.cu", Text: "unresolved"}}}, "a.cu", nvjitlink.ErrorNVVMCompile, "b.cu: error: symbol multiply defined!\n", 1},
		{"an option", driver.Source{LinkOptions: []string{"-bogus"}}, "a.cu", nvjitlink.ErrorUnrecognizedOption, "a.cu: nvjitlink: NVJITLINK_ERROR_UNRECOGNIZED_OPTION", 0},
		{"a NUL", driver.Source{LinkOptions: []string{"\x00"}}, "a.cu", dl.ErrNUL, "a.cu: ", 0},
	} {
		x.src.Name = "a.cu"
		_, err := c.Compile(&x.src)
		e, is := errors.AsType[*driver.CompileError](err)
		if !is || !errors.Is(err, x.kind) || e.Source != x.of || !strings.HasPrefix(err.Error(), by+x.text) || len(e.Messages) != x.msgs {
			t.Errorf("%s: %v", x.name, err)
		}
		if x.name == "an option" && !strings.Contains(err.Error(), "-bogus") {
			t.Errorf("%s is not named: %v", x.name, err)
		}
	}
	if n, m := drivertest.Programs(t, compiler), drivertest.Programs(t, path); n != 0 || m != 0 {
		t.Errorf("%d programs and %d linkers are left", n, m)
	}
}

// TestNoNVJitLink tests compilation without nvJitLink or with an old one: sources without Link
// still compile.
func TestNoNVJitLink(t *testing.T) {
	for _, x := range []struct {
		nvrtc, nvjitlink []string
		kind             error
		text             string
	}{
		{nil, nil, dl.ErrNotFound, "PUREGPU_NVJITLINK_LIBRARY"},
		{nil, []string{"VERSION=12020"}, dl.ErrTooOld, "install"},
		{[]string{"VERSION=11080", "NO_LTO"}, []string{}, driver.ErrUnsupported, "NVRTC 11.8 cannot make LTO-IR; install 12.0 or newer"},
	} {
		f := newFake(t, 13000)
		withNVRTC(t, x.nvrtc...)
		t.Setenv("PUREGPU_NVJITLINK_LIBRARY", filepath.Join(t.TempDir(), "libnvJitLink.so.12"))
		if x.nvjitlink != nil {
			withNVJitLink(t, x.nvjitlink...)
		}
		cache := compile.Cache{Size: -1}
		dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
		ok(t, err)
		defer dev.Close()
		for range 2 {
			_, _, err = cache.Compile(dev, compile.Source{Text: "x", Link: []compile.Source{{Text: "y"}}})
			e, is := errors.AsType[*driver.Error](err)
			if !is || e.Op != "compile" || !errors.Is(err, x.kind) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), x.text) || !strings.Contains(err.Error(), "install") {
				t.Errorf("%v", err)
			}
		}
		code, _, err := cache.Compile(dev, compile.Source{Text: "x", Options: []string{"-arch=compute_80"}})
		ok(t, err)
		ok(t, code.Close())
	}
}

// TestWithNVJitLink names nvJitLink's file with an option. The option has precedence over the
// environment variable.
func TestWithNVJitLink(t *testing.T) {
	f := newFake(t, 13000)
	withNVRTC(t)
	withNVJitLink(t)
	absent := filepath.Join(t.TempDir(), "libnvJitLink.so.12")
	drv, err := Open(cuda.Options{Path: f.Path}, WithNVJitLink(nvjitlink.Options{Path: absent}))
	ok(t, err)
	d, err := drv.Open(0)
	ok(t, err)
	if _, err := linker(d); !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), absent+" (Options.Path)") {
		t.Errorf("nvJitLink at %s: %v", absent, err)
	}
	ok(t, d.Close())
}

// TestRealLink links with the NVRTC and nvJitLink of this machine, which need no GPU, and loads the
// code into a fake driver.
func TestRealLink(t *testing.T) {
	named := os.Getenv("PUREGPU_NVRTC_LIBRARY") != "" && os.Getenv("PUREGPU_NVJITLINK_LIBRARY") != ""
	f, dir := newFake(t, 13000), filepath.Join(t.TempDir(), "cache")
	d := f.device()
	if _, err := linker(d); errors.Is(err, driver.ErrUnsupported) && !named {
		t.Skipf("nothing to link with: %v", err)
	}
	cache := compile.Cache{Dir: dir}
	dev, err := gpu.Open(f.driver(), 0, gpu.Options{})
	ok(t, err)
	defer dev.Close()
	for i, cached := range []bool{false, true} {
		x, info, err := cache.Compile(dev, linkSource)
		ok(t, err)
		t.Logf("%+v", info)
		if info.Target != "sm_90" || info.Cached != cached || info.CacheErr != nil || !strings.Contains(info.Compiler, "nvJitLink") {
			t.Errorf("the %d. time: %+v", i+1, info)
		}
		f.Calls()
		for expression, want := range map[string]string{"plain": "plain", "scale<float>": "_Z5scaleIfEvPT_i"} {
			if _, err := x.Kernel(expression); err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if calls := f.Calls(); !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "cuModuleGetFunction(") && strings.Contains(c, want) }) {
				t.Errorf("%s is not looked for as %s: %q", expression, want, calls)
			}
		}
		ok(t, x.Close())
	}
	c, err := linker(d)
	ok(t, err)
	source := func(options ...string) *driver.Source {
		s := &driver.Source{Name: "scale.cu", Text: linkSource.Text, Names: linkSource.Names, LinkOptions: options}
		for _, l := range linkSource.Link {
			s.Link = append(s.Link, driver.Source{Name: l.Name, Text: l.Text})
		}
		return s
	}
	// The function of the other source is inlined.
	code, err := c.Compile(source("-ptx"))
	ok(t, err)
	if text := string(code.Image); !strings.Contains(text, ".entry plain(") || !strings.Contains(text, code.Names["scale<float>"]) || strings.Contains(text, "call") {
		t.Errorf("the linked PTX lacks a kernel, or still calls a function:\n%.2000s", text)
	}
	if code, err := c.Compile(source()); err != nil || !strings.HasPrefix(string(code.Image), "\x7fELF") {
		t.Errorf("%.20q, %v", code.Image, err)
	}
	for name, x := range map[string]struct {
		change func(*driver.Source)
		want   error
		text   string
	}{
		"a symbol twice":       {func(s *driver.Source) { s.Link = append(s.Link, s.Link[0]) }, nvjitlink.ErrorNVVMCompile, "symbol multiply defined"},
		"no such symbol":       {func(s *driver.Source) { s.Link[0].Text = "__device__ int nothing;" }, nvjitlink.ErrorPTXCompile, "_Z6factori"},
		"an error":             {func(s *driver.Source) { s.Link[0].Text = "\nnothing;" }, nvrtc.ErrorCompilation, "factor.cu(2): error"},
		"an option of linkers": {func(s *driver.Source) { s.LinkOptions = []string{"-no-such-option"} }, nvjitlink.ErrorUnrecognizedOption, "-no-such-option"},
	} {
		src := source()
		x.change(src)
		_, err := c.Compile(src)
		if e, is := errors.AsType[*driver.CompileError](err); !is || !errors.Is(err, x.want) || !strings.Contains(e.Error(), x.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
