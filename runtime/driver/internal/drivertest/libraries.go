//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// CompileTest describes a compiler's library and its fake's results.
type CompileTest struct {
	Info driver.CompilerInfo // the compiler's Info, but with only a prefix of its Build
	Env  string              // variable with the path of the library
	File string
	Fake func(t *testing.T) string // builds the fake, makes the driver find it, and returns its path
	Bare func(t *testing.T) string // like Fake, but for testCompileErrors
	Ext  string                    // file extension of sources

	Headers    map[string]string
	Options    []string
	Image, Log string
	Own        []string // options with which the source sets the architecture
	Debug      string   // an option that turns debugging on

	BareVersion string // version of the compiler that Bare builds
	Failed      string // prefix of the errors of compilation
	Errors      []CompileError
	Check       func(t *testing.T, name string, e *driver.CompileError) // if not nil, an additional check of each error
}

// A CompileError is a source that fails to compile.
type CompileError struct {
	Name     string
	Source   driver.Source
	Kind     error
	Text     string // the error's text begins with CompileTest.Failed and this
	Messages int
}

func testCompile(t *testing.T, a *API) {
	f, path := a.Fake(t, a.Release), a.Compile.Fake(t)
	c, err := f.Device(false).Compiler()
	OK(t, err)
	f.Calls()
	i, want := c.Info(), a.Compile.Info
	if !strings.HasPrefix(i.Build, want.Build) {
		t.Errorf("build %q", i.Build)
	}
	if i.Build = want.Build; i != want {
		t.Errorf("%+v, want %+v", i, want)
	}
	name := "k" + a.Compile.Ext
	src := &driver.Source{Name: name, Text: "int odd;", Headers: maps.Clone(a.Compile.Headers), Options: a.Compile.Options, Names: []string{"f<int>", "&table"}}
	code, err := c.Compile(src)
	OK(t, err)
	if string(code.Image) != a.Compile.Image {
		t.Errorf("%q\nwant %q", code.Image, a.Compile.Image)
	}
	if !maps.Equal(src.Headers, a.Compile.Headers) {
		t.Error("the caller's headers were changed")
	}
	if len(code.Names) != 2 || code.Names["f<int>"] != "_Z_f<int>" || code.Names["&table"] != "_Z_&table" {
		t.Errorf("names %v", code.Names)
	}
	if code.Log != a.Compile.Log {
		t.Errorf("log %q", code.Log)
	}
	for _, own := range a.Compile.Own {
		src.Options = []string{a.Compile.Debug, own}
		code, err := c.Compile(src)
		OK(t, err)
		if text := string(code.Image); strings.Contains(text, want.Target+"\n") || !strings.Contains(text, "option "+a.Compile.Debug+"\noption "+own+"\n") {
			t.Errorf("%s: %q", own, text)
		}
	}
	f.Want("") // compiling makes no call of the device's library
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("%d-%d%s", i, j, a.Compile.Ext)
				code, err := c.Compile(&driver.Source{Name: name, Text: "x"})
				if err != nil || !strings.Contains(string(code.Image), "name "+name+"\n") {
					t.Errorf("%s: %q, %v", name, code.Image, err)
				}
			}
		})
	}
	all.Wait()
	if n := Programs(t, path); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

func testCompileErrors(t *testing.T, a *API) {
	f, path := a.Fake(t, a.Release), a.Compile.Bare(t)
	c, err := f.Device(false).Compiler()
	OK(t, err)
	if i := c.Info(); i.Version != a.Compile.BareVersion {
		t.Errorf("%+v", i)
	}
	name := "k" + a.Compile.Ext
	for _, x := range append([]CompileError{
		{"a NUL", driver.Source{Text: "\x00"}, dl.ErrNUL, name + ": ", 0},
		{"a NUL in an option", driver.Source{Options: []string{"a\x00"}}, dl.ErrNUL, name + ": ", 0},
		{"a NUL in a header", driver.Source{Headers: map[string]string{"a": "a\x00"}}, dl.ErrNUL, name + ": ", 0},
	}, a.Compile.Errors...) {
		x.Source.Name = name
		_, err := c.Compile(&x.Source)
		e, is := errors.AsType[*driver.CompileError](err)
		if !is || !errors.Is(err, x.Kind) || !strings.HasPrefix(err.Error(), a.Compile.Failed+x.Text) || len(e.Messages) != x.Messages {
			t.Errorf("%s: %v", x.Name, err)
		} else if a.Compile.Check != nil {
			a.Compile.Check(t, x.Name, e)
		}
	}
	if n := Programs(t, path); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

// testNoCompiler checks that, without the compiler's library, compiling returns ErrUnsupported and
// modules can still be loaded.
func testNoCompiler(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	t.Setenv(a.Compile.Env, filepath.Join(t.TempDir(), a.Compile.File))
	dev, err := gpu.Open(open(t, f, false), 0, gpu.Options{})
	OK(t, err)
	defer dev.Close()
	for range 2 {
		_, _, err = compile.Cache{Size: -1}.Compile(dev, compile.Source{Text: "x"})
		e, is := errors.AsType[*driver.Error](err)
		if !is || e.Op != "compile" || !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) ||
			!strings.Contains(err.Error(), a.Compile.Env) || !strings.Contains(err.Error(), "install") {
			t.Errorf("%v", err)
		}
	}
	x, err := dev.Load(a.Image)
	OK(t, err)
	OK(t, x.Close())
}

// testWithCompiler checks that an option with the library's file has precedence over the
// environment variable.
func testWithCompiler(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	a.Compile.Fake(t)
	absent := filepath.Join(t.TempDir(), a.Compile.File)
	drv, err := a.Open(f.File(), "", absent)
	OK(t, err)
	d, err := drv.Open(0)
	OK(t, err)
	if _, err := d.(driver.Compilers).Compiler(); !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), absent+" (Options.Path)") {
		t.Errorf("the compiler at %s: %v", absent, err)
	}
	OK(t, d.Close())
}

// Real is a source for the compiler that is installed on this machine. Compiling needs no GPU.
type Real struct {
	Source     compile.Source
	Target     string
	Warnings   []string          // parts that the log must contain
	Names      map[string]string // mangled names that the code must have, by C++ name
	Wrong      map[string]string // headers with mistakes
	At         []string          // where the messages place these mistakes
	Failure    error             // the error of a failed compilation
	BadOption  error             // the error of --no-such-option
	OptionText string            // the source that is compiled with that option
	Before     func()            // if not nil, called after the fake library is built
}

// RealCompiler checks that a source can be compiled with the compiler of this machine, that the
// result is cached and can be loaded into the fake, and that mistakes are reported.
func (a *API) RealCompiler(t *testing.T, r Real) {
	f := a.Fake(t, a.Release)
	if r.Before != nil {
		r.Before()
	}
	cache := compile.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	dev, err := gpu.Open(open(t, f, false), 0, gpu.Options{})
	OK(t, err)
	defer dev.Close()
	for i, cached := range []bool{false, true} {
		x, info, err := cache.Compile(dev, r.Source)
		OK(t, err)
		t.Logf("%+v", info)
		if info.Target != r.Target || info.Cached != cached || info.CacheErr != nil {
			t.Errorf("the %d. time: %+v", i+1, info)
		}
		for _, w := range r.Warnings {
			if !strings.Contains(info.Log, w) {
				t.Errorf("the log has no warning: %q", info.Log)
			}
		}
		f.Calls()
		for expression, want := range r.Names {
			if _, err := x.Kernel(expression); err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
			if calls := f.Calls(); !slices.ContainsFunc(calls, func(c string) bool {
				return strings.HasPrefix(c, a.Prefix+"ModuleGetFunction(") && strings.Contains(c, want)
			}) {
				t.Errorf("%s is not looked for as %s: %q", expression, want, calls)
			}
		}
		OK(t, x.Close())
	}
	wrong := r.Source
	wrong.Headers = r.Wrong
	_, _, err = cache.Compile(dev, wrong)
	e, is := errors.AsType[*driver.CompileError](err)
	if !is || !errors.Is(err, r.Failure) {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	var at []string
	for _, m := range e.Messages {
		if m.IsError() {
			at = append(at, fmt.Sprintf("%s:%d", m.File, m.Line))
		}
	}
	for _, place := range r.At {
		if !slices.Contains(at, place) {
			t.Errorf("errors at %v, and not at %s", at, place)
		}
	}
	if _, _, err := cache.Compile(dev, compile.Source{Text: r.OptionText, Options: []string{"--no-such-option"}}); !errors.Is(err, r.BadOption) || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("an option: %v", err)
	}
}

// CommTest describes the library of communicators.
type CommTest struct {
	Env  string // variable with the path of the library
	File string
	Fake func(t *testing.T) string // builds a fake that knows device 0, and returns its path
	Says string                    // text of the errors if the library is missing
}

// testNoComms checks that, without the library for communicators, calls that need it return
// ErrUnsupported. One such call is Alloc of CommMem. Alloc of DeviceMem still works.
func testNoComms(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	t.Setenv(a.Comm.Env, filepath.Join(t.TempDir(), a.Comm.File))
	d := f.Device(false)
	_, id := d.NewUniqueID()
	_, comm := d.NewComm(driver.CommDesc{Count: 1})
	_, alloc := d.Alloc(driver.CommMem, 64)
	for op, err := range map[string]error{"new unique id": id, "new comm": comm, "alloc": alloc, "free": d.Free(driver.Mem{Kind: driver.CommMem})} {
		e, ok := err.(*driver.Error)
		if !ok || e.Op != op || !errors.Is(err, dl.ErrNotFound) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), a.Comm.Says) {
			t.Errorf("%s: %v", op, err)
		}
	}
	m, err := d.Alloc(driver.DeviceMem, 64)
	OK(t, err)
	OK(t, d.Free(m))
}

// testWithComms checks that an option with the library's file has precedence over the environment
// variable.
func testWithComms(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	there, absent := a.Comm.Fake(t), filepath.Join(t.TempDir(), a.Comm.File)
	for option, env := range map[string]string{there: absent, absent: there} {
		t.Setenv(a.Comm.Env, env)
		drv, err := a.Open(f.File(), option, "")
		OK(t, err)
		d, err := drv.Open(0)
		OK(t, err)
		_, err = d.(driver.Comms).NewUniqueID()
		if option == there {
			OK(t, err)
		} else if !errors.Is(err, dl.ErrNotFound) || !strings.Contains(err.Error(), absent+" (Options.Path)") {
			t.Errorf("the library at %s: %v", absent, err)
		}
		OK(t, d.Close())
	}
}
