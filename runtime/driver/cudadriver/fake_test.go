//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/drivertest"
	"github.com/puregpu/puregpu/symbols"
)

// A fake is a CUDA driver built from testdata/driver.c.
type fake struct {
	*drivertest.Fake
	t testing.TB
}

// Handles that testdata/driver.c returns.
const (
	stream0  = 0x5000
	event0   = 0xe000
	module0  = 0x3000
	context0 = 0xc0
	pool0    = 0x9000 // the default pool of device 0
	pool1    = 0x9020 // the first pool that NewPool makes
	graph0   = 0x10000
	exec0    = 0x20000
	node0    = 0x30000 // in graph0
)

// ofPools matches the functions that a fake driver with NOPOOLS does not have.
var ofPools = regexp.MustCompile(`MemPool|^cuMem(Alloc|AllocFromPool|Free)Async$`)

// newFake builds a driver of the given CUDA release, for one test only.
func newFake(t testing.TB, release dl.Version, defines ...string) *fake {
	t.Helper()
	tab, err := symbols.Load("cuda")
	ok(t, err)
	lib := testlib.Fake{
		File: "libcuda.so.1", Source: "../../runtime/driver/cudadriver/testdata/driver.c",
		Defines: append([]string{fmt.Sprint("VERSION=", int(release))}, defines...),
		Symbols: []string{},
	}
	for _, fn := range tab.Funcs {
		if dl.Version(1000*fn.Since.Major+10*fn.Since.Minor) <= release && !strings.HasPrefix(fn.Symbol, "cuGetProcAddress") &&
			!(slices.Contains(defines, "NOPOOLS") && ofPools.MatchString(fn.Symbol)) &&
			!(slices.Contains(defines, "NOVIRTUAL") && fn.Symbol == "cuMemMap") {
			lib.Symbols = append(lib.Symbols, fn.Symbol)
		}
	}
	return &fake{drivertest.Build(t, lib, dl.Symbol{Name: "fake_retained", Sig: "w"}, dl.Symbol{Name: "fake_stack"}, dl.Symbol{Name: "fake_failed", Sig: "ww"}), t}
}

// failed returns the calls that have failed since the previous call of failed.
func (f *fake) failed() []string {
	if all := f.Lines(5); all[0] != "" {
		return all
	}
	return nil
}

func (f *fake) retained(dev int) int { return int(int32(f.Number(3, uintptr(dev)))) }
func (f *fake) stack() uint64        { return f.Number(4) }

// driver opens the driver.
func (f *fake) driver() *Driver {
	f.t.Helper()
	d, err := f.Open(false)
	ok(f.t, err)
	return d.(*Driver)
}

// device opens device 0 and binds it to the test's thread, which stays locked until the test ends.
func (f *fake) device() *device { return f.Bound(f.driver()).(*device) }

// The methods that drivertest.Library adds to drivertest.Fake. Open and Device ignore their
// parameter, because a CUDA driver has pools without a request. Clean does nothing, because CUDA
// keeps no last error on a thread.

func (f *fake) Open(bool) (driver.Driver, error) { return suite.Open(f.Path, "", "") }
func (f *fake) Device(bool) drivertest.Device    { return f.device() }
func (f *fake) Clean(string)                     {}

func (f *fake) Left(what string, dev int) {
	f.t.Helper()
	if f.Live() != 0 || f.retained(dev) != 0 {
		f.t.Fatalf("%s: %d objects and %d references are left", what, f.Live(), f.retained(dev))
	}
}

// function loads a kernel of the fake driver.
func function(t testing.TB, d driver.Device, kernel string) (driver.Function, driver.FuncInfo) {
	t.Helper()
	return suite.Function(t, d, kernel)
}
