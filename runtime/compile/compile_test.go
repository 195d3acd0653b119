package compile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/trace"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSim makes simulated devices with a few kernels. When the test ends, newSim checks that no
// object of the devices is left.
func newSim(t testing.TB, devices int) *simdriver.Driver {
	kernels := map[string]simdriver.Kernel{}
	for _, name := range []string{"saxpy", "index", "words"} {
		kernels[name] = simdriver.MustKernel(func(*simdriver.Grid, uint64) {})
	}
	d := simdriver.New(simdriver.Config{Devices: devices, Strict: true, Kernels: kernels})
	t.Cleanup(func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
	})
	return d
}

func openDevice(t testing.TB, d driver.Driver) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// newCache makes a cache in a new folder.
func newCache(t testing.TB) compile.Cache {
	return compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
}

// A compilingDriver is a simulated driver with a compiler for tests. The simulated devices can load
// the code of the compiler.
type compilingDriver struct {
	driver.Driver
	info  func(device int) driver.CompilerInfo
	made  atomic.Int32  // number of calls of Compile
	begun chan struct{} // if not nil, Compile sends to it, and then receives from goOn
	goOn  chan struct{}
	links bool   // the compiler can link sources
	newer string // the linker's version
}

func newCompiling(t testing.TB, devices int) *compilingDriver {
	t.Helper()
	return &compilingDriver{Driver: newSim(t, devices), info: func(int) driver.CompilerInfo {
		return driver.CompilerInfo{Name: "C", Version: "1", Build: "b", Target: "t"}
	}}
}

func (c *compilingDriver) Open(i int) (driver.Device, error) {
	d, err := c.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return compilingDevice{d, c}, nil
}

// A compilingDevice is a device with a compiler and no other optional interface.
type compilingDevice struct {
	driver.Device
	of *compilingDriver
}

func (d compilingDevice) Caps() driver.Caps {
	return driver.Caps{RerecordEvents: true, KernelParams: true, Compile: true}
}

func (d compilingDevice) Compiler() (driver.Compiler, error) {
	c := compilerOf{d.of, d.Device.Info().Index}
	if d.of.links {
		return linkingCompiler{c}, nil
	}
	return c, nil
}

// A linkingCompiler is a compiler that can also link.
type linkingCompiler struct{ compilerOf }

func (c linkingCompiler) Linker() (driver.Compiler, error) { return linkerOf(c), nil }

type linkerOf struct{ compilerOf }

func (c linkerOf) Info() driver.CompilerInfo {
	info := c.compilerOf.Info()
	info.Version += ", L" + c.newer
	return info
}

func (c linkerOf) Compile(src *driver.Source) (driver.Code, error) {
	one := *src
	for _, l := range src.Link {
		one.Text += " " + l.Text
	}
	return c.compilerOf.Compile(&one)
}

type compilerOf struct {
	*compilingDriver
	device int
}

func (c compilerOf) Info() driver.CompilerInfo { return c.info(c.device) }

// Compile takes each word of the text as the name of a kernel. Each of src.Names stands for the
// first kernel. A text with "wrong" is refused.
func (c compilerOf) Compile(src *driver.Source) (driver.Code, error) {
	c.made.Add(1)
	if c.begun != nil {
		c.begun <- struct{}{}
		<-c.goOn
	}
	if strings.Contains(src.Text, "wrong") {
		return driver.Code{}, &driver.Error{Driver: "fake", Op: "compile", Err: &driver.CompileError{Source: src.Name, Compiler: "C 1", Target: "t",
			Messages: []driver.Message{{File: src.Name, Line: 1, Kind: "error", Text: "wrong"}}, Err: errors.New("refused")}}
	}
	names := strings.Fields(src.Text)
	code := driver.Code{Image: simdriver.Image(names...), Names: map[string]string{}, Log: "warning: " + src.Name + "\n"}
	for _, n := range src.Names {
		code.Names[n] = names[0]
	}
	return code, nil
}

// compiled compiles and loads a source, checks that the module has the kernel saxpy and those of
// src.Names, and returns the Info.
func compiled(t *testing.T, c compile.Cache, dev *gpu.Device, src compile.Source) compile.Info {
	t.Helper()
	x, info, err := c.Compile(dev, src)
	must(t, err)
	defer x.Close()
	for _, name := range append([]string{"saxpy"}, src.Names...) {
		if k, err := x.Kernel(name); err != nil || k.Name() != name {
			t.Errorf("kernel %s: %v", name, err)
		}
	}
	return info
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	return found
}

// TestCompileCache tests B189: code is found on disk only if neither the source nor the compiler
// has changed.
func TestCompileCache(t *testing.T) {
	d, cache := newCompiling(t, 1), newCache(t)
	dev, dir := openDevice(t, d), cache.Dir
	info := driver.CompilerInfo{Name: "C", Version: "1", Build: "b", Target: "t"}
	d.info = func(int) driver.CompilerInfo { return info }
	src := compile.Source{Name: "a.cu", Text: "saxpy", Headers: map[string]string{"x.h": "x", "y.h": "y"}, Options: []string{"-a", "-b"}, Names: []string{"s<1>"}}
	try := func(what string, cached bool) {
		t.Helper()
		before := d.made.Load()
		got := compiled(t, cache, dev, src)
		want := compile.Info{Compiler: strings.TrimSpace(info.Name + " " + info.Version), Target: info.Target, Log: "warning: " + src.Name + "\n", Cached: cached}
		if got != want || (d.made.Load() == before) != cached {
			t.Errorf("%s: %+v after %d compilations, want %+v", what, got, d.made.Load()-before, want)
		}
	}
	try("at first", false)
	try("again", true)
	for what, change := range map[string]func(){
		"name":            func() { src.Name = "b.cu" },
		"text":            func() { src.Text = "saxpy words" },
		"header":          func() { src.Headers = map[string]string{"x.h": "x", "y.h": "z"} },
		"name of header":  func() { src.Headers = map[string]string{"x.h": "x", "z.h": "y"} },
		"no headers":      func() { src.Headers = nil },
		"option":          func() { src.Options = []string{"-a", "-c"} },
		"order":           func() { src.Options = []string{"-b", "-a"} },
		"option for name": func() { src.Options, src.Names = []string{"-a", "-b", "s<1>"}, nil },
		"expression":      func() { src.Names = []string{"s<2>"} },
		"revision":        func() { src.Revision = "2" },
		"compiler":        func() { info.Name = "D" },
		"version":         func() { info.Version = "2" },
		"build":           func() { info.Build = "c" },
		"target":          func() { info.Target = "u" },
	} {
		was, by := src, info
		change()
		try("another "+what, false)
		try("another "+what+", again", true)
		src, info = was, by
	}
	try("as at first", true)
	other := openDevice(t, d)
	if got := compiled(t, cache, other, src); !got.Cached {
		t.Errorf("another device: %+v", got)
	}
	for _, file := range entries(t, dir) {
		must(t, os.Truncate(file, 100))
	}
	try("entries were cut off", false)
	try("made anew", true)
	off := compile.Cache{Dir: dir, Size: -1}
	before := len(entries(t, dir))
	src.Text = "saxpy index"
	for range 2 {
		if got := compiled(t, off, dev, src); got.Cached || got.CacheErr != nil {
			t.Errorf("without a cache: %+v", got)
		}
	}
	if n := len(entries(t, dir)); n != before {
		t.Errorf("without a cache %d entries become %d", before, n)
	}
	info.Transient = true
	for range 2 {
		try("code of this process alone", false)
	}
}

// TestCompileLink tests B188 and B189: linked sources make one module, whose code is found on disk
// only if none of the sources has changed.
func TestCompileLink(t *testing.T) {
	d, cache := newCompiling(t, 1), newCache(t)
	dev := openDevice(t, d)
	src := func() compile.Source {
		return compile.Source{Name: "a.cu", Text: "saxpy", LinkOptions: []string{"-x"},
			Link: []compile.Source{{Name: "b.cu", Text: "index", Headers: map[string]string{"x.h": "x"}, Options: []string{"-a"}}, {Text: "words"}}}
	}
	if _, _, err := cache.Compile(dev, src()); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "C links no sources") {
		t.Errorf("%v", err)
	}
	d.links = true
	try := func(what string, s compile.Source, cached bool) {
		t.Helper()
		x, got, err := cache.Compile(dev, s)
		must(t, err)
		defer x.Close()
		if got.Cached != cached || got.CacheErr != nil || got.Compiler != "C 1, L"+d.newer {
			t.Errorf("%s: %+v", what, got)
		}
		if _, err := x.Kernel("index"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	try("at first", src(), false)
	try("again", src(), true)
	for what, change := range map[string]func(s *compile.Source){
		"name":              func(s *compile.Source) { s.Link[0].Name = "c.cu" },
		"text":              func(s *compile.Source) { s.Link[0].Text = "index words" },
		"header":            func(s *compile.Source) { s.Link[0].Headers = map[string]string{"x.h": "y"} },
		"option":            func(s *compile.Source) { s.Link[0].Options = []string{"-b"} },
		"revision":          func(s *compile.Source) { s.Link[0].Revision = "2" },
		"expression":        func(s *compile.Source) { s.Link[0].Names = []string{"s<2>"} },
		"order":             func(s *compile.Source) { s.Link[0], s.Link[1] = s.Link[1], s.Link[0] },
		"fewer":             func(s *compile.Source) { s.Link = s.Link[:1] },
		"option for linker": func(s *compile.Source) { s.LinkOptions = nil },
		"linker":            func(s *compile.Source) { d.newer = "2" },
	} {
		s := src()
		change(&s)
		try("another "+what, s, false)
		try("another "+what+", again", s, true)
		d.newer = ""
	}
	try("as at first", src(), true)

	s := src()
	s.Revision, s.Link[1].Text = "1", "words\n#include <no.h>"
	x, got, err := cache.Compile(dev, s)
	must(t, err)
	if got.CacheErr == nil {
		t.Errorf("one that may read files: %+v", got)
	}
	s.Link[1].Revision = "1"
	try("one that may read files, with a revision", s, false)
	try("one that may read files, with a revision, again", s, true)

	for _, s := range []compile.Source{
		{Text: "saxpy", LinkOptions: []string{"-x"}},
		{Text: "saxpy", Link: []compile.Source{{Text: "\x00"}}},
		{Text: "saxpy", Link: []compile.Source{{}}, LinkOptions: []string{"\x00"}},
		{Text: "saxpy", Link: []compile.Source{{Link: []compile.Source{{}}}}},
		{Text: "saxpy", Link: []compile.Source{{LinkOptions: []string{"-x"}}}},
	} {
		if _, _, err := cache.Compile(dev, s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	must(t, x.Close())
}

// TestCompileCacheFolder tests B189: the zero Cache uses a folder of the user. If a folder cannot
// be used, compiling still works.
func TestCompileCacheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("LocalAppData", home)
	d, src := newCompiling(t, 1), compile.Source{Text: "saxpy"}
	dev, cache := openDevice(t, d), compile.Cache{}
	compiled(t, cache, dev, src)
	if got := compiled(t, cache, dev, src); !got.Cached {
		t.Errorf("%+v", got)
	}
	user, err := os.UserCacheDir()
	must(t, err)
	if n := len(entries(t, filepath.Join(user, "puregpu"))); n != 1 {
		t.Errorf("%d entries in the user's folder", n)
	}
	file := filepath.Join(home, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []compile.Cache{{Dir: file}, {Dir: filepath.Join(file, "below")}, {Size: 1}} {
		for range 2 {
			if got := compiled(t, c, openDevice(t, d), src); got.Cached || got.CacheErr == nil {
				t.Errorf("%+v: %+v", c, got)
			}
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("LocalAppData", "")
	if _, err := os.UserCacheDir(); err != nil {
		if got := compiled(t, cache, dev, src); got.Cached || got.CacheErr == nil {
			t.Errorf("without a home: %+v", got)
		}
	}
}

// TestCompileForeignFolder tests B195: a folder that other users can write to is not used. Code is
// compiled each time, and the reason is logged once for each device.
func TestCompileForeignFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mode says nothing about other users there")
	}
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	dir := filepath.Join(t.TempDir(), "cache")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chmod(dir, 0o777))
	d, src := newCompiling(t, 1), compile.Source{Text: "saxpy"}
	dev, cache := openDevice(t, d), compile.Cache{Dir: dir}
	for range 3 {
		if got := compiled(t, cache, dev, src); got.Cached || got.CacheErr == nil || !strings.Contains(got.CacheErr.Error(), dir) {
			t.Errorf("%+v", got)
		}
	}
	if n := strings.Count(log.String(), "compiled code is not kept"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, &log)
	}
	must(t, os.Chmod(dir, 0o700))
	compiled(t, cache, dev, src)
	if got := compiled(t, cache, dev, src); !got.Cached || got.CacheErr != nil {
		t.Errorf("in a folder of the user's own: %+v", got)
	}
}

// TestCompileFiles tests B189: code that may depend on files is kept only if the source has a
// revision.
func TestCompileFiles(t *testing.T) {
	d, cache := newCompiling(t, 1), newCache(t)
	dev := openDevice(t, d)
	headers := map[string]string{"h.h": "", "sub/g.h": "#include \"h.h\"", "bad.h": "#include <cstdint>"}
	for i, c := range []struct {
		src  compile.Source
		kept bool
	}{
		{compile.Source{Text: "\n#include \"h.h\"\n # include <sub/g.h>\n#define include"}, true},
		{compile.Source{Text: "\n#include \"H.h\"\n"}, false},
		{compile.Source{Text: "\n#include<h.hpp>"}, false},
		{compile.Source{Text: "\n#/* */include MACRO"}, false},
		{compile.Source{Text: "\n#/* /* */include <no.h>"}, false},
		{compile.Source{Text: "\n#/* */include <h.h>"}, true},
		{compile.Source{Text: "\n#/* */include_next <no.h>"}, false},
		{compile.Source{Text: "\n__device__ void f(/* out */ int *a, /* in */ embedding b); /* */ importance c; /* */ include_nexts d;"}, true},
		{compile.Source{Text: "\n#\\\ninclude <no.h>"}, false},
		{compile.Source{Text: "\n#inc\\\nlude <no.h>"}, false},
		{compile.Source{Text: "\n#inc\\ \r\nlude <no.h>"}, false},
		{compile.Source{Text: "\n#inc??/\nlude <no.h>"}, false},
		{compile.Source{Text: "\n#inc\\\rlude <no.h>"}, false},
		{compile.Source{Text: "\n#inc\\\n\rlude <no.h>"}, false},
		{compile.Source{Text: "\n#\\\rinclude <no.h>"}, false},
		{compile.Source{Text: "\n#if __has_\\\ninclude(<no.h>)"}, false},
		{compile.Source{Text: "\n#include \"h\\\n.h\""}, true},
		{compile.Source{Text: "\n#if __has_include(<no.h>)"}, false},
		{compile.Source{Text: "\n#if __has_include(\"h.h\")"}, true},
		{compile.Source{Text: "\n#embed \"data\""}, false},
		{compile.Source{Text: "\n#include_next <h.h>"}, true},
		{compile.Source{Text: "\n%:include <no.h>"}, false},
		{compile.Source{Text: "\n#include <h.h> // include \"no.h\", import nothing\nint include, included; __device__ int import(int);"}, true},
		{compile.Source{Text: "\n#include <h.h>\n#import <no.h>"}, false},
		{compile.Source{Text: "\n#include \"h.h"}, false},
		{compile.Source{Headers: map[string]string{"a.h": "#include <b.h>"}}, false},
		{compile.Source{Headers: map[string]string{"a.h": "#include <b.h>", "b.h": ""}}, true},
		{compile.Source{Options: []string{"-DINCLUDE=1", "--std=c++17", "-arch=sm_90a", "--use_fast_math"}}, true},
		{compile.Source{Options: []string{"-I", "/usr/include"}}, false},
		{compile.Source{Options: []string{"-I/usr/include"}}, false},
		{compile.Source{Options: []string{"--include-path=/usr/include"}}, false},
		{compile.Source{Options: []string{"-include", "x.h"}}, false},
		{compile.Source{Options: []string{"--pre-include=x.h"}}, false},
		{compile.Source{Options: []string{"-isystem/usr/include"}}, false},
		{compile.Source{Options: []string{"--pch"}}, false},
		{compile.Source{Options: []string{"@file"}}, false},
	} {
		c.src.Text = fmt.Sprintf("saxpy k%d %s", i, c.src.Text)
		if c.src.Headers == nil && i > 0 {
			c.src.Headers = map[string]string{"h.h": headers["h.h"], "sub/g.h": headers["sub/g.h"]}
		} else if i == 0 {
			c.src.Headers = map[string]string{"h.h": headers["h.h"], "sub/g.h": headers["sub/g.h"]}
		}
		compiled(t, cache, dev, c.src)
		got := compiled(t, cache, dev, c.src)
		if got.Cached != c.kept || (got.CacheErr == nil) != c.kept {
			t.Errorf("%q with %q: %+v", c.src.Text, c.src.Options, got)
		}
		c.src.Revision = "1"
		compiled(t, cache, dev, c.src)
		if got := compiled(t, cache, dev, c.src); !got.Cached || got.CacheErr != nil {
			t.Errorf("%q with %q and a revision: %+v", c.src.Text, c.src.Options, got)
		}
	}
}

// TestCompileErrors tests B188: the error has the compiler's messages, and nothing is kept on disk.
func TestCompileErrors(t *testing.T) {
	d, cache := newCompiling(t, 1), newCache(t)
	dev, dir := openDevice(t, d), cache.Dir
	for range 2 {
		_, _, err := cache.Compile(dev, compile.Source{Text: "wrong"})
		e, ok := errors.AsType[*driver.CompileError](err)
		if !ok || e.Source != "source" || len(e.Messages) != 1 || !strings.HasSuffix(err.Error(), "C 1 for t: source(1): error: wrong") {
			t.Errorf("%v", err)
		}
	}
	if d.made.Load() != 2 || len(entries(t, dir)) != 0 {
		t.Errorf("%d were compiled, %q is kept", d.made.Load(), entries(t, dir))
	}
	for _, src := range []compile.Source{{Name: "a\x00"}, {Text: "\x00"}, {Options: []string{"\x00"}}, {Names: []string{"a", "\x00"}},
		{Headers: map[string]string{"": "x"}}, {Headers: map[string]string{"a\x00": "x"}}, {Headers: map[string]string{"a": "\x00"}}} {
		if _, _, err := cache.Compile(dev, src); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", src, err)
		}
	}
	if _, _, err := cache.Compile(dev, compile.Source{Text: "="}); err == nil || !strings.Contains(err.Error(), "code of source") {
		t.Errorf("code that cannot be loaded: %v", err)
	}
	must(t, dev.Close())
	if _, _, err := cache.Compile(dev, compile.Source{Text: "saxpy"}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("on a closed device: %v", err)
	}
}

// TestCompileHoldsNothing tests B188: while the compiler runs, the device works and may be closed.
func TestCompileHoldsNothing(t *testing.T) {
	d := newCompiling(t, 1)
	d.begun, d.goOn = make(chan struct{}), make(chan struct{})
	dev := openDevice(t, d)
	const n = 20 // more calls than a device runs at once on bound threads
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { _, _, errs[i] = compile.Cache{Size: -1}.Compile(dev, compile.Source{Text: "saxpy"}) })
	}
	for range n {
		<-d.begun
	}
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	must(t, err)
	s, err := gpu.NewSemaphore(0)
	must(t, err)
	must(t, dev.Queue(0).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, s.Wait(ctx, 1))
	must(t, dev.Close())
	close(d.goOn)
	all.Wait()
	for _, err := range errs {
		if !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// TestCompileNothing tests B143: compiling for a nil or zero device returns ErrArgument for any
// source.
func TestCompileNothing(t *testing.T) {
	sources := []compile.Source{{}, {Text: "nothing", Names: []string{"nothing"}}, {Options: []string{""}}, {Text: "nothing", Link: make([]compile.Source, 1)},
		{Headers: map[string]string{"": ""}, LinkOptions: []string{"nothing"}, Revision: "nothing"}}
	for _, src := range sources {
		for _, dev := range []*gpu.Device{nil, new(gpu.Device)} {
			x, info, err := compile.Compile(dev, src)
			if x != nil || info != (compile.Info{}) || !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%+v: %v", src, err)
			}
			all, infos, err := compile.CompileAll([]*gpu.Device{dev, dev}, src)
			if all != nil || infos != nil || !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%+v, twice: %v", src, err)
			}
		}
	}
	if all, infos, err := compile.CompileAll(nil, compile.Source{}); len(all) != 0 || len(infos) != 0 || err != nil {
		t.Errorf("for no devices: %v, %v, %v", all, infos, err)
	}
	dev := openDevice(t, newSim(t, 1))
	for _, src := range sources {
		_, _, err := compile.Cache{Size: -1}.Compile(dev, src)
		if _, refused := errors.AsType[*driver.CompileError](err); err != nil && !refused && !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", src, err)
		}
	}
}

// TestCompileTrace checks that a tracer gets a record for each run of the compiler, with the name
// of the source, and no record for code that is found on disk.
func TestCompileTrace(t *testing.T) {
	d, cache := newCompiling(t, 1), newCache(t)
	tracer, err := trace.NewTracer(trace.TracerOptions{})
	must(t, err)
	dev, err := gpu.Open(d, 0, gpu.Options{Tracer: tracer})
	must(t, err)
	t.Cleanup(func() { dev.Close() })
	for range 2 {
		compiled(t, cache, dev, compile.Source{Name: "a.cu", Text: "saxpy"})
	}
	if _, _, err := cache.Compile(dev, compile.Source{Name: "b.cu", Text: "wrong"}); err == nil {
		t.Error("a wrong source is compiled")
	}
	var all []string
	for records := make([]trace.Record, 100); ; {
		n := tracer.Take(records)
		for _, r := range records[:n] {
			if r.Kind == trace.KindCompile {
				all = append(all, fmt.Sprint(r.Label, " ", r.Device == dev, " ", r.Done >= r.Submitted, r.Err != nil))
			}
		}
		if n == 0 {
			break
		}
	}
	if want := []string{"a.cu true true false", "b.cu true true true"}; !slices.Equal(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
}

// TestCompileAll tests B188: CompileAll compiles a source once for all devices that take the same
// code.
func TestCompileAll(t *testing.T) {
	d, cache := newCompiling(t, 4), newCache(t)
	d.info = func(device int) driver.CompilerInfo {
		return driver.CompilerInfo{Name: "C", Target: fmt.Sprint("t", device%2)}
	}
	g, err := gpu.OpenGroup(d, gpu.Options{})
	must(t, err)
	t.Cleanup(func() { g.Close() })
	for want, cached := range []bool{false, true} {
		all, infos, err := cache.CompileAll(g.Devices(), compile.Source{Text: "saxpy", Names: []string{"s<1>"}})
		must(t, err)
		for i, x := range all {
			if _, err := x.Kernel("s<1>"); err != nil {
				t.Errorf("device %d: %v", i, err)
			}
			if got := infos[i]; got.Target != fmt.Sprint("t", i%2) || got.Cached != cached {
				t.Errorf("device %d, the %d. time: %+v", i, want+1, got)
			}
		}
		if n := d.made.Load(); n != 2 {
			t.Errorf("%d compilations for two kinds of devices", n)
		}
	}
	if all, _, err := cache.CompileAll(g.Devices(), compile.Source{Text: "wrong"}); all != nil || strings.Count(err.Error(), "refused")+strings.Count(err.Error(), "error: wrong") != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// BenchmarkCompile compiles a source whose code is on disk.
func BenchmarkCompile(b *testing.B) {
	d, cache := newCompiling(b, 1), newCache(b)
	dev := openDevice(b, d)
	for _, size := range []int{1 << 10, 100 << 10} {
		src := compile.Source{Text: "saxpy", Headers: map[string]string{"h.h": strings.Repeat("#define X (1 + 2) // and so on\n", size/31)}}
		b.Run(fmt.Sprintf("source of %d KiB", size>>10), func(b *testing.B) {
			for b.Loop() {
				x, _, err := cache.Compile(dev, src)
				if err != nil {
					b.Fatal(err)
				}
				x.Close()
			}
		})
	}
	if n := d.made.Load(); n != 2 {
		b.Errorf("%d compilations", n)
	}
}
