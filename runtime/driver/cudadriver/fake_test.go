//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/symbols"
)

// A fake is a CUDA driver of testdata/driver.c with the handles that it gives to tests.
type fake struct {
	t    testing.TB
	path string
	ctl  dl.Library
}

// What testdata/driver.c has for handles.
const (
	stream0  = 0x5000
	event0   = 0xe000
	module0  = 0x3000
	context0 = 0xc0
	pool0    = 0x9000 // of device 0
	pool1    = 0x9020 // the first that is made
	graph0   = 0x10000
	exec0    = 0x20000
	node0    = 0x30000 // of graph0
)

var fakeSpec = dl.Spec{
	Name: "fake's handles", Package: "fake",
	Sets:    []dl.Set{{Name: "core"}},
	Symbols: []dl.Symbol{{Name: "fake_set", Sig: "ww"}, {Name: "fake_trace", Sig: "ww"}, {Name: "fake_live"}, {Name: "fake_retained", Sig: "w"}, {Name: "fake_stack"}, {Name: "fake_failed", Sig: "ww"}},
}

// ofPools finds the functions that a fake lacks with NOPOOLS.
var ofPools = regexp.MustCompile(`MemPool|^cuMem(Alloc|AllocFromPool|Free)Async$`)

// newFake makes a driver of a release, which no other test has.
func newFake(t testing.TB, release dl.Version, defines ...string) *fake {
	t.Helper()
	tab, err := symbols.Load("cuda")
	if err != nil {
		t.Fatal(err)
	}
	lib := testlib.Fake{
		File: "libcuda.so.1", Source: "../../runtime/driver/cudadriver/testdata/driver.c",
		Defines: append([]string{fmt.Sprint("VERSION=", int(release))}, defines...),
		Symbols: []string{},
	}
	for _, fn := range tab.Funcs {
		if dl.Version(1000*fn.Since.Major+10*fn.Since.Minor) <= release && !strings.HasPrefix(fn.Symbol, "cuGetProcAddress") &&
			!(slices.Contains(defines, "NOPOOLS") && ofPools.MatchString(fn.Symbol)) {
			lib.Symbols = append(lib.Symbols, fn.Symbol)
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
func (f *fake) calls() []string { return f.lines(1) }

// failed returns the calls that returned an error since it was last called.
func (f *fake) failed() []string {
	if all := f.lines(5); all[0] != "" {
		return all
	}
	return nil
}

// lines calls one of the functions that return lines of text.
func (f *fake) lines(i int) []string {
	f.t.Helper()
	text := make([]byte, 1<<16)
	n, err := f.ctl.Slow(i, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text[:int32(n)]), "\n"), "\n")
}

// number calls one of the functions that return a number.
func (f *fake) number(i int, args ...uintptr) uint64 {
	f.t.Helper()
	n, err := f.ctl.Slow(i, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return uint64(n)
}

func (f *fake) live() int            { return int(int32(f.number(2))) }
func (f *fake) retained(dev int) int { return int(int32(f.number(3, uintptr(dev)))) }
func (f *fake) stack() uint64        { return f.number(4) }

// want compares the calls since the last time.
func (f *fake) want(want ...string) {
	f.t.Helper()
	if got := f.calls(); !slices.Equal(got, want) {
		f.t.Errorf("calls:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// driver opens the driver.
func (f *fake) driver() *Driver {
	f.t.Helper()
	d, err := Open(cuda.Options{Path: f.path})
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// device opens device 0 and binds it to the test's thread, which it locks until the test ends.
func (f *fake) device() *device {
	f.t.Helper()
	runtime.LockOSThread()
	d, err := f.driver().Open(0)
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
	m, err := d.Load([]byte(emptyPTX))
	if err != nil {
		t.Fatal(err)
	}
	f, info, err := d.Function(m, kernel)
	if err != nil {
		t.Fatal(err)
	}
	return f, info
}
