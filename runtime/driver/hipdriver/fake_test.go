//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/symbols"
)

// A fake is a HIP runtime of testdata/driver.c with the handles that it gives to tests.
type fake struct {
	t    testing.TB
	path string
	ctl  dl.Library
}

// What testdata/driver.c has for handles.
const (
	stream0 = 0x5000
	stream1 = 0x5001
	event0  = 0xe000
	module0 = 0x3000
	graph0  = 0x6000
	node0   = 0x9000
	exec0   = 0x7000
	pool0   = 0xb000 // the default pool of device 0
	pool1   = 0xb020 // the first that is made
)

// Releases of HIP.
const (
	hip52 = 5_02_00000
	hip57 = 5_07_31921
	hip61 = 6_01_40091
	hip62 = 6_02_41133
	hip64 = 6_04_43484
	hip70 = 7_00_51831
	hip71 = 7_01_00000
)

var fakeSpec = dl.Spec{
	Name: "fake's handles", Package: "fake",
	Sets:    []dl.Set{{Name: "core"}},
	Symbols: []dl.Symbol{{Name: "fake_set", Sig: "ww"}, {Name: "fake_trace", Sig: "ww"}, {Name: "fake_live"}, {Name: "fake_device"}, {Name: "fake_last"}, {Name: "fake_image"}},
}

// newFake builds a runtime of a release, without some of its functions.
func newFake(t testing.TB, release dl.Version, without ...string) *fake {
	return newFakeOf(t, release, nil, without...)
}

func newFakeOf(t testing.TB, release dl.Version, defines []string, without ...string) *fake {
	t.Helper()
	tab, err := symbols.Load("hip")
	if err != nil {
		t.Fatal(err)
	}
	lib := testlib.Fake{
		File: "libamdhip64.so", Source: "../../runtime/driver/hipdriver/testdata/driver.c",
		Defines: append([]string{fmt.Sprint("VERSION=", int(release))}, defines...),
		Symbols: []string{},
	}
	for _, s := range without {
		lib.Defines = append(lib.Defines, "WITHOUT_"+s)
	}
	for _, f := range tab.Funcs {
		if dl.Version(10_000_000*f.Since.Major+100_000*f.Since.Minor) <= release && !slices.Contains(without, f.Symbol) {
			lib.Symbols = append(lib.Symbols, f.Symbol)
		}
	}
	f := &fake{t: t, path: lib.Build(t)}
	if err := f.ctl.Open(&fakeSpec, nil, dl.Options{Path: f.path}); err != nil {
		t.Fatal(err)
	}
	return f
}

// set makes a function return a code from now on, 0 for what it would return. The other settings are those of driver.c.
func (f *fake) set(name string, value int) {
	f.t.Helper()
	c, err := dl.CString(name)
	if err == nil {
		var full uintptr
		if full, err = f.ctl.Slow(0, uintptr(unsafe.Pointer(c)), uintptr(value)); err == nil && int32(full) != 0 {
			err = fmt.Errorf("no room for setting %s", name)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// calls returns the calls since it was last called.
func (f *fake) calls() []string {
	f.t.Helper()
	text := make([]byte, 1<<16)
	n, err := f.ctl.Slow(1, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text[:int32(n)]), "\n"), "\n")
}

// number calls one of the functions that return a number.
func (f *fake) number(i int) int {
	f.t.Helper()
	n, err := f.ctl.Slow(i)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(int32(n))
}

func (f *fake) live() int    { return f.number(2) }
func (f *fake) current() int { return f.number(3) } // device of the calling thread
func (f *fake) last() int    { return f.number(4) } // error that is remembered for it
func (f *fake) image() int   { return f.number(5) }

// want compares the calls since the last time, those on device 0 if they do not say.
func (f *fake) want(want ...string) {
	f.t.Helper()
	got := f.calls()
	for i, c := range got {
		got[i] = strings.TrimSuffix(c, " on 0")
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("calls:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// driver opens the driver.
func (f *fake) driver(opts ...Option) *Driver {
	f.t.Helper()
	d, err := Open(hip.Options{Path: f.path}, opts...)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// device opens device 0 and binds it to the test's thread, which it locks until the test ends.
func (f *fake) device(opts ...Option) *device {
	f.t.Helper()
	runtime.LockOSThread()
	d, err := f.driver(opts...).Open(0)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := d.Bind(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		d.Close()
		runtime.UnlockOSThread()
	})
	f.calls()
	return d.(*device)
}

// function loads a kernel of the fake's.
func function(t testing.TB, d driver.Device, kernel string) (driver.Function, driver.FuncInfo) {
	t.Helper()
	m, err := d.Load(codeObject())
	if err != nil {
		t.Fatal(err)
	}
	f, info, err := d.Function(m, kernel)
	if err != nil {
		t.Fatal(err)
	}
	return f, info
}
