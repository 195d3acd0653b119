package gpu_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// compiling is a driver with a compiler whose code the simulated devices load.
type compiling struct {
	driver.Driver
	info  func(device int) driver.CompilerInfo
	made  atomic.Int32  // sources that were compiled
	begun chan struct{} // if it is not nil, Compile sends here, and waits for goOn
	goOn  chan struct{}
	links bool   // sources can be linked
	newer string // linker's version
}

func newCompiling(t testing.TB, devices int) *compiling {
	t.Helper()
	return &compiling{Driver: newSim(t, simdriver.Config{Devices: devices}), info: func(int) driver.CompilerInfo {
		return driver.CompilerInfo{Name: "C", Version: "1", Build: "b", Target: "t"}
	}}
}

func (c *compiling) Open(i int) (driver.Device, error) {
	d, err := c.Driver.Open(i)
	if err != nil {
		return nil, err
	}
	return compilingDevice{d, c}, nil
}

// compilingDevice has no more than a device must, and a compiler.
type compilingDevice struct {
	driver.Device
	of *compiling
}

func (d compilingDevice) Caps() driver.Caps {
	return driver.Caps{RerecordEvents: true, KernelParams: true, Compile: true}
}

func (d compilingDevice) Compiler() (driver.Compiler, error) {
	c := compilerOf{d.of, d.Device.Info().Index}
	if d.of.links {
		return linkingOf{c}, nil
	}
	return c, nil
}

// linkingOf links as well.
type linkingOf struct{ compilerOf }

func (c linkingOf) Linker() (driver.Compiler, error) { return linkerOf{c.compilerOf}, nil }

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
	*compiling
	device int
}

func (c compilerOf) Info() driver.CompilerInfo { return c.info(c.device) }

// Compile takes a text with the names of kernels for a source, the first of which each expression denotes.
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

// compiled compiles, checks that kernels are found, and returns how it was done.
func compiled(t *testing.T, dev *gpu.Device, src gpu.Source) gpu.CompileInfo {
	t.Helper()
	x, err := dev.Compile(src)
	must(t, err)
	defer x.Close()
	for _, name := range append([]string{"saxpy"}, src.Names...) {
		if k, err := x.Kernel(name); err != nil || k.Name() != name {
			t.Errorf("kernel %s: %v", name, err)
		}
	}
	return x.CompileInfo()
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	return found
}

// TestCompileCache: B189 what was compiled is found on disk if nothing of it is different.
func TestCompileCache(t *testing.T) {
	d, dir := newCompiling(t, 1), filepath.Join(t.TempDir(), "cache")
	dev := openDevice(t, d, 0, gpu.Options{CacheDir: dir})
	info := driver.CompilerInfo{Name: "C", Version: "1", Build: "b", Target: "t"}
	d.info = func(int) driver.CompilerInfo { return info }
	src := gpu.Source{Name: "a.cu", Text: "saxpy", Headers: map[string]string{"x.h": "x", "y.h": "y"}, Options: []string{"-a", "-b"}, Names: []string{"s<1>"}}
	try := func(what string, cached bool) {
		t.Helper()
		before := d.made.Load()
		got := compiled(t, dev, src)
		want := gpu.CompileInfo{Compiler: strings.TrimSpace(info.Name + " " + info.Version), Target: info.Target, Log: "warning: " + src.Name + "\n", Cached: cached}
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
	other := openDevice(t, d, 0, gpu.Options{CacheDir: dir})
	if got := compiled(t, other, src); !got.Cached {
		t.Errorf("another device: %+v", got)
	}
	for _, file := range entries(t, dir) {
		must(t, os.Truncate(file, 100))
	}
	try("entries were cut off", false)
	try("made anew", true)
	off := openDevice(t, d, 0, gpu.Options{CacheDir: dir, CacheSize: -1})
	before := len(entries(t, dir))
	src.Text = "saxpy index"
	for range 2 {
		if got := compiled(t, off, src); got.Cached || got.CacheErr != nil {
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

// TestCompileLink: B188 sources that are linked are one program, and B189 another one if anything of one of them is different.
func TestCompileLink(t *testing.T) {
	d := newCompiling(t, 1)
	dev := openDevice(t, d, 0, gpu.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	src := func() gpu.Source {
		return gpu.Source{Name: "a.cu", Text: "saxpy", LinkOptions: []string{"-x"},
			Link: []gpu.Source{{Name: "b.cu", Text: "index", Headers: map[string]string{"x.h": "x"}, Options: []string{"-a"}}, {Text: "words"}}}
	}
	if _, err := dev.Compile(src()); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "C links no sources") {
		t.Errorf("%v", err)
	}
	d.links = true
	try := func(what string, s gpu.Source, cached bool) {
		t.Helper()
		x, err := dev.Compile(s)
		must(t, err)
		defer x.Close()
		if got := x.CompileInfo(); got.Cached != cached || got.CacheErr != nil || got.Compiler != "C 1, L"+d.newer {
			t.Errorf("%s: %+v", what, got)
		}
		if _, err := x.Kernel("index"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	try("at first", src(), false)
	try("again", src(), true)
	for what, change := range map[string]func(s *gpu.Source){
		"name":              func(s *gpu.Source) { s.Link[0].Name = "c.cu" },
		"text":              func(s *gpu.Source) { s.Link[0].Text = "index words" },
		"header":            func(s *gpu.Source) { s.Link[0].Headers = map[string]string{"x.h": "y"} },
		"option":            func(s *gpu.Source) { s.Link[0].Options = []string{"-b"} },
		"revision":          func(s *gpu.Source) { s.Link[0].Revision = "2" },
		"expression":        func(s *gpu.Source) { s.Link[0].Names = []string{"s<2>"} },
		"order":             func(s *gpu.Source) { s.Link[0], s.Link[1] = s.Link[1], s.Link[0] },
		"fewer":             func(s *gpu.Source) { s.Link = s.Link[:1] },
		"option for linker": func(s *gpu.Source) { s.LinkOptions = nil },
		"linker":            func(s *gpu.Source) { d.newer = "2" },
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
	x, err := dev.Compile(s)
	must(t, err)
	if got := x.CompileInfo(); got.CacheErr == nil {
		t.Errorf("one that may read files: %+v", got)
	}
	s.Link[1].Revision = "1"
	try("one that may read files, with a revision", s, false)
	try("one that may read files, with a revision, again", s, true)

	for _, s := range []gpu.Source{
		{Text: "saxpy", LinkOptions: []string{"-x"}},
		{Text: "saxpy", Link: []gpu.Source{{Text: "\x00"}}},
		{Text: "saxpy", Link: []gpu.Source{{}}, LinkOptions: []string{"\x00"}},
		{Text: "saxpy", Link: []gpu.Source{{Link: []gpu.Source{{}}}}},
		{Text: "saxpy", Link: []gpu.Source{{LinkOptions: []string{"-x"}}}},
	} {
		if _, err := dev.Compile(s); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	must(t, x.Close())
}

// TestCompileCacheFolder: B189 the folder is the user's by itself, and one that cannot be had is no failure.
func TestCompileCacheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("LocalAppData", home)
	d, src := newCompiling(t, 1), gpu.Source{Text: "saxpy"}
	dev := openDevice(t, d, 0, gpu.Options{})
	compiled(t, dev, src)
	if got := compiled(t, dev, src); !got.Cached {
		t.Errorf("%+v", got)
	}
	user, err := os.UserCacheDir()
	must(t, err)
	if n := len(entries(t, filepath.Join(user, "puregpu"))); n != 1 {
		t.Errorf("%d entries in the user's folder", n)
	}
	file := filepath.Join(home, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, o := range []gpu.Options{{CacheDir: file}, {CacheDir: filepath.Join(file, "below")}, {CacheSize: 1}} {
		for range 2 {
			if got := compiled(t, openDevice(t, d, 0, o), src); got.Cached || got.CacheErr == nil {
				t.Errorf("%+v: %+v", o, got)
			}
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("LocalAppData", "")
	if _, err := os.UserCacheDir(); err != nil {
		if got := compiled(t, dev, src); got.Cached || got.CacheErr == nil {
			t.Errorf("without a home: %+v", got)
		}
	}
}

// TestCompileForeignFolder: B195 a folder that others can write to is not used. Code is compiled, and the reason is logged once a device.
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
	d, src := newCompiling(t, 1), gpu.Source{Text: "saxpy"}
	dev := openDevice(t, d, 0, gpu.Options{CacheDir: dir})
	for range 3 {
		if got := compiled(t, dev, src); got.Cached || got.CacheErr == nil || !strings.Contains(got.CacheErr.Error(), dir) {
			t.Errorf("%+v", got)
		}
	}
	if n := strings.Count(log.String(), "compiled code is not kept"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, &log)
	}
	must(t, os.Chmod(dir, 0o700))
	compiled(t, dev, src)
	if got := compiled(t, dev, src); !got.Cached || got.CacheErr != nil {
		t.Errorf("in a folder of the user's own: %+v", got)
	}
}

// TestCompileFiles: B189 code that may depend on files is kept with a revision only.
func TestCompileFiles(t *testing.T) {
	d := newCompiling(t, 1)
	dev := openDevice(t, d, 0, gpu.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	headers := map[string]string{"h.h": "", "sub/g.h": "#include \"h.h\"", "bad.h": "#include <cstdint>"}
	for i, c := range []struct {
		src  gpu.Source
		kept bool
	}{
		{gpu.Source{Text: "\n#include \"h.h\"\n # include <sub/g.h>\n#define include"}, true},
		{gpu.Source{Text: "\n#include \"H.h\"\n"}, false},
		{gpu.Source{Text: "\n#include<h.hpp>"}, false},
		{gpu.Source{Text: "\n#/* */include MACRO"}, false},
		{gpu.Source{Text: "\n#\\\ninclude <no.h>"}, false},
		{gpu.Source{Text: "\n#if __has_include(<no.h>)"}, false},
		{gpu.Source{Text: "\n#if __has_include(\"h.h\")"}, true},
		{gpu.Source{Text: "\n#embed \"data\""}, false},
		{gpu.Source{Text: "\n#include_next <h.h>"}, true},
		{gpu.Source{Text: "\n%:include <no.h>"}, false},
		{gpu.Source{Text: "\n#include <h.h> // include \"no.h\", import nothing\nint include, included; __device__ int import(int);"}, true},
		{gpu.Source{Text: "\n#include <h.h>\n#import <no.h>"}, false},
		{gpu.Source{Text: "\n#include \"h.h"}, false},
		{gpu.Source{Headers: map[string]string{"a.h": "#include <b.h>"}}, false},
		{gpu.Source{Headers: map[string]string{"a.h": "#include <b.h>", "b.h": ""}}, true},
		{gpu.Source{Options: []string{"-DINCLUDE=1", "--std=c++17", "-arch=sm_90a", "--use_fast_math"}}, true},
		{gpu.Source{Options: []string{"-I", "/usr/include"}}, false},
		{gpu.Source{Options: []string{"-I/usr/include"}}, false},
		{gpu.Source{Options: []string{"--include-path=/usr/include"}}, false},
		{gpu.Source{Options: []string{"-include", "x.h"}}, false},
		{gpu.Source{Options: []string{"--pre-include=x.h"}}, false},
		{gpu.Source{Options: []string{"-isystem/usr/include"}}, false},
		{gpu.Source{Options: []string{"--pch"}}, false},
		{gpu.Source{Options: []string{"@file"}}, false},
	} {
		c.src.Text = fmt.Sprintf("saxpy k%d %s", i, c.src.Text)
		if c.src.Headers == nil && i > 0 {
			c.src.Headers = map[string]string{"h.h": headers["h.h"], "sub/g.h": headers["sub/g.h"]}
		} else if i == 0 {
			c.src.Headers = map[string]string{"h.h": headers["h.h"], "sub/g.h": headers["sub/g.h"]}
		}
		compiled(t, dev, c.src)
		got := compiled(t, dev, c.src)
		if got.Cached != c.kept || (got.CacheErr == nil) != c.kept {
			t.Errorf("%q with %q: %+v", c.src.Text, c.src.Options, got)
		}
		c.src.Revision = "1"
		compiled(t, dev, c.src)
		if got := compiled(t, dev, c.src); !got.Cached || got.CacheErr != nil {
			t.Errorf("%q with %q and a revision: %+v", c.src.Text, c.src.Options, got)
		}
	}
}

// TestCompileErrors: B188 what the compiler says is in the error, and nothing of it is kept.
func TestCompileErrors(t *testing.T) {
	d, dir := newCompiling(t, 1), filepath.Join(t.TempDir(), "cache")
	dev := openDevice(t, d, 0, gpu.Options{CacheDir: dir})
	for range 2 {
		_, err := dev.Compile(gpu.Source{Text: "wrong"})
		e, ok := errors.AsType[*driver.CompileError](err)
		if !ok || e.Source != "source" || len(e.Messages) != 1 || !strings.HasSuffix(err.Error(), "C 1 for t: source(1): error: wrong") {
			t.Errorf("%v", err)
		}
	}
	if d.made.Load() != 2 || len(entries(t, dir)) != 0 {
		t.Errorf("%d were compiled, %q is kept", d.made.Load(), entries(t, dir))
	}
	for _, src := range []gpu.Source{{Name: "a\x00"}, {Text: "\x00"}, {Options: []string{"\x00"}}, {Names: []string{"a", "\x00"}},
		{Headers: map[string]string{"": "x"}}, {Headers: map[string]string{"a\x00": "x"}}, {Headers: map[string]string{"a": "\x00"}}} {
		if _, err := dev.Compile(src); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%+v: %v", src, err)
		}
	}
	if _, err := dev.Compile(gpu.Source{Text: "="}); err == nil || !strings.Contains(err.Error(), "code of source") {
		t.Errorf("code that cannot be loaded: %v", err)
	}
	if got := (*gpu.Executable)(nil).CompileInfo(); got != (gpu.CompileInfo{}) {
		t.Errorf("%+v", got)
	}
	x, err := dev.Load(simdriver.Image("saxpy"))
	must(t, err)
	if got := x.CompileInfo(); got != (gpu.CompileInfo{}) {
		t.Errorf("%+v", got)
	}
	must(t, dev.Close())
	if _, err := dev.Compile(gpu.Source{Text: "saxpy"}); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("on a closed device: %v", err)
	}
}

// TestCompileHoldsNothing: B188 while a program is compiled the device is used, and may be closed.
func TestCompileHoldsNothing(t *testing.T) {
	d := newCompiling(t, 1)
	d.begun, d.goOn = make(chan struct{}), make(chan struct{})
	dev := openDevice(t, d, 0, gpu.Options{CacheSize: -1})
	const n = 20 // more than may be in the driver at a time
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { _, errs[i] = dev.Compile(gpu.Source{Text: "saxpy"}) })
	}
	for range n {
		<-d.begun
	}
	b := allocate(t, dev, 64)
	s := semaphores(t, 1)[0]
	must(t, dev.Queue(0).Fill(gpu.Order{Signal: pts(s, 1)}, b.All(), []byte{1}))
	must(t, s.Wait(soon(t), 1))
	must(t, dev.Close())
	close(d.goOn)
	all.Wait()
	for _, err := range errs {
		if !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// TestGroupCompile: B188 a group compiles once for all devices of a kind.
func TestGroupCompile(t *testing.T) {
	d := newCompiling(t, 4)
	d.info = func(device int) driver.CompilerInfo {
		return driver.CompilerInfo{Name: "C", Target: fmt.Sprint("t", device%2)}
	}
	g, err := gpu.OpenGroup(d, gpu.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	must(t, err)
	t.Cleanup(func() { g.Close() })
	for want, cached := range []bool{false, true} {
		all, err := g.Compile(gpu.Source{Text: "saxpy", Names: []string{"s<1>"}})
		must(t, err)
		for i, x := range all {
			if _, err := x.Kernel("s<1>"); err != nil {
				t.Errorf("device %d: %v", i, err)
			}
			if got := x.CompileInfo(); got.Target != fmt.Sprint("t", i%2) || got.Cached != cached {
				t.Errorf("device %d, the %d. time: %+v", i, want+1, got)
			}
		}
		if n := d.made.Load(); n != 2 {
			t.Errorf("%d compilations for two kinds of devices", n)
		}
	}
	if all, err := g.Compile(gpu.Source{Text: "wrong"}); all != nil || strings.Count(err.Error(), "refused")+strings.Count(err.Error(), "error: wrong") != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// BenchmarkCompile compiles what is on the disk.
func BenchmarkCompile(b *testing.B) {
	d := newCompiling(b, 1)
	dev := openDevice(b, d, 0, gpu.Options{CacheDir: filepath.Join(b.TempDir(), "cache")})
	for _, size := range []int{1 << 10, 100 << 10} {
		src := gpu.Source{Text: "saxpy", Headers: map[string]string{"h.h": strings.Repeat("#define X (1 + 2) // and so on\n", size/31)}}
		b.Run(fmt.Sprintf("source of %d KiB", size>>10), func(b *testing.B) {
			for b.Loop() {
				x, err := dev.Compile(src)
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
