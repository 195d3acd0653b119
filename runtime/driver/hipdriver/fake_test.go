//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
	"github.com/puregpu/puregpu/symbols"
)

// A fake is a HIP runtime built from testdata/driver.c.
type fake struct {
	*drivertest.Fake
	t testing.TB
}

// Handles that testdata/driver.c returns.
const (
	stream0 = 0x5000
	stream1 = 0x5001
	event0  = 0xe000
	module0 = 0x3000
	graph0  = 0x6000
	node0   = 0x9000
	exec0   = 0x7000
	pool0   = 0xb000 // the default pool of device 0
	pool1   = 0xb020 // the first pool that NewPool makes
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

// newFake builds a HIP runtime of a release. The runtime lacks the functions named in without.
func newFake(t testing.TB, release dl.Version, without ...string) *fake {
	return newFakeOf(t, release, nil, without...)
}

func newFakeOf(t testing.TB, release dl.Version, defines []string, without ...string) *fake {
	t.Helper()
	tab, err := symbols.Load("hip")
	ok(t, err)
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
	f := drivertest.Build(t, lib, dl.Symbol{Name: "fake_device"}, dl.Symbol{Name: "fake_last"}, dl.Symbol{Name: "fake_image"})
	f.Trim = " on 0" // Want omits " on 0" from calls on device 0
	return &fake{f, t}
}

func (f *fake) current() int { return int(int32(f.Number(3))) } // the calling thread's device
func (f *fake) last() int    { return int(int32(f.Number(4))) } // the calling thread's last error
func (f *fake) image() int   { return int(int32(f.Number(5))) }

// driver opens the driver.
func (f *fake) driver(opts ...Option) *Driver {
	f.t.Helper()
	d, err := Open(hip.Options{Path: f.Path}, opts...)
	ok(f.t, err)
	return d
}

// device opens device 0 and binds it to the test's thread, which stays locked until the test ends.
func (f *fake) device(opts ...Option) *device { return f.Bound(f.driver(opts...)).(*device) }

// These methods are for the suite.

func (f *fake) Open(pools bool) (driver.Driver, error) {
	if pools {
		return f.driver(WithPools()), nil
	}
	return suite.Open(f.Path, "", "")
}

func (f *fake) Device(pools bool) drivertest.Device {
	if pools {
		return f.device(WithPools())
	}
	return f.device()
}

func (f *fake) Clean(what string) {
	f.t.Helper()
	if n := f.last(); n != 0 {
		f.t.Errorf("%s: the thread's last error is %d", what, n)
	}
}

func (f *fake) Left(what string, _ int) { f.Clean(what) }

// function loads a kernel of the fake library.
func function(t testing.TB, d driver.Device, kernel string) (driver.Function, driver.FuncInfo) {
	t.Helper()
	return suite.Function(t, d, kernel)
}
