//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// The first handles that the fakes of all APIs return.
const (
	Stream0 = 0x5000
	Event0  = 0xe000
	Module0 = 0x3000
)

// A Fake is a C library that imitates an API.
type Fake struct {
	Path string // path of the library's file
	Trim string // text that Want removes from the end of calls

	t   testing.TB
	ctl dl.Library
}

// Build compiles a fake and opens its test functions: fake_set, fake_trace, fake_live, and the
// functions in more.
func Build(t testing.TB, lib testlib.Fake, more ...dl.Symbol) *Fake {
	t.Helper()
	spec := dl.Spec{
		Name: "fake's handles", Package: "fake",
		Sets:    []dl.Set{{Name: "core"}},
		Symbols: append([]dl.Symbol{{Name: "fake_set", Sig: "ww"}, {Name: "fake_trace", Sig: "ww"}, {Name: "fake_live"}}, more...),
	}
	f := &Fake{Path: lib.Build(t), t: t}
	OK(t, f.ctl.Open(&spec, nil, dl.Options{Path: f.Path}))
	return f
}

// Programs returns the number of programs that a fake compiler has made and not destroyed.
func Programs(t testing.TB, path string) int {
	t.Helper()
	var ctl dl.Library
	OK(t, ctl.Open(&dl.Spec{Name: "fake's handles", Package: "fake", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "fake_live"}}}, nil, dl.Options{Path: path}))
	n, err := ctl.Slow(0)
	OK(t, err)
	return int(int32(n))
}

// Set makes the function with this name return the number value from now on, or work normally again
// if value is 0. The fake's source has settings with other names too.
func (f *Fake) Set(name string, value int) {
	f.t.Helper()
	c, err := dl.CString(name)
	OK(f.t, err)
	full, err := f.ctl.Slow(0, uintptr(unsafe.Pointer(c)), uintptr(value))
	if OK(f.t, err); int32(full) != 0 {
		f.t.Fatalf("no room for setting %s", name)
	}
}

// File returns the library's file.
func (f *Fake) File() string { return f.Path }

// Calls returns the calls since the last use of Calls or Want. If there were no calls, Calls
// returns one empty string.
func (f *Fake) Calls() []string { return f.Lines(1) }

// Lines calls a test function that returns lines of text.
func (f *Fake) Lines(handle int) []string {
	f.t.Helper()
	text := make([]byte, 1<<16)
	n, err := f.ctl.Slow(handle, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	OK(f.t, err)
	return strings.Split(strings.TrimSuffix(string(text[:int32(n)]), "\n"), "\n")
}

// Number calls a test function that returns a number.
func (f *Fake) Number(handle int, args ...uintptr) uint64 {
	f.t.Helper()
	n, err := f.ctl.Slow(handle, args...)
	OK(f.t, err)
	return uint64(n)
}

// Live returns the number of objects that were made and not destroyed.
func (f *Fake) Live() int { return int(int32(f.Number(2))) }

// Want fails the test unless the calls since the last use of Calls or Want are those in want. It
// first removes f.Trim from the end of each call.
func (f *Fake) Want(want ...string) {
	f.t.Helper()
	got := f.Calls()
	for i, c := range got {
		got[i] = strings.TrimSuffix(c, f.Trim)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("calls:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// Bound opens device 0 and binds it to the test's thread, which stays locked until the test ends.
// Bound also forgets the calls so far.
func (f *Fake) Bound(d driver.Driver) driver.Device {
	f.t.Helper()
	runtime.LockOSThread()
	dev, err := d.Open(0)
	OK(f.t, err)
	OK(f.t, dev.Bind())
	f.t.Cleanup(func() {
		dev.Close()
		runtime.UnlockOSThread()
	})
	f.Calls()
	return dev
}

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
