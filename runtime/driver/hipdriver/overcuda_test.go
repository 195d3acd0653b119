//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

var cudaSpec = dl.Spec{
	Name: "fake CUDA's handles", Package: "fake",
	Sets:    []dl.Set{{Name: "core"}},
	Symbols: []dl.Symbol{{Name: "fake_hold", Sig: "ww"}, {Name: "fake_lose", Sig: "w"}, {Name: "fake_live"}},
}

// overCUDA builds the library of testdata/hipovercuda for a CUDA driver.
func overCUDA(t testing.TB, cuda string, defines ...string) *hip.Library {
	t.Helper()
	lib, err := hip.Open(hip.Options{Path: testlib.Fake{
		File: "libhipovercuda.so", Source: "../hipovercuda/hip_over_cuda.c", Symbols: []string{},
		Defines: append([]string{`LIBCUDA="` + cuda + `"`}, defines...),
	}.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// fakeCUDA builds the CUDA driver of testdata/cuda.c.
func fakeCUDA(t testing.TB) (path string, ctl *dl.Library) {
	t.Helper()
	path = testlib.Fake{File: "libcuda.so.1", Source: "../../runtime/driver/hipdriver/testdata/cuda.c", Symbols: []string{}}.Build(t)
	ctl = new(dl.Library)
	if err := ctl.Open(&cudaSpec, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	return path, ctl
}

// TestOverFakeCUDA does without a GPU what TestLibrary and TestLibraryConformance do with one.
func TestOverFakeCUDA(t *testing.T) {
	for name, defines := range map[string][]string{
		"strict":           nil,
		"from the stream":  {"STREAM_DEVICE"},
		"rows of bytes":    {"MEMSET_D2D32=4"},
		"rows of elements": {"MEMSET_D2D32=1", "STREAM_DEVICE"},
	} {
		t.Run(name, func(t *testing.T) {
			cuda, ctl := fakeCUDA(t)
			lib := overCUDA(t, cuda, defines...)
			live := func() int {
				n, err := ctl.Slow(2)
				if err != nil {
					t.Fatal(err)
				}
				return int(int32(n))
			}
			hold := func(device int, on uintptr) {
				if _, err := ctl.Slow(0, uintptr(device), on); err != nil {
					t.Error(err)
				}
			}
			stall := func(device int) (resume func()) {
				hold(device, 1)
				return func() { hold(device, 0) }
			}
			testLibrary(t, lib, stall)
			before := live()
			if !strings.HasPrefix(name, "rows") {
				t.Run("conformance", func(t *testing.T) { conform(t, lib, stall) })
			}
			// The library keeps the events with which it watches waits, and is done with all others.
			if n := live() - before; n > 64 {
				t.Errorf("%d objects are left", n)
			}
			drv, err := New(lib)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := drv.Open(1); err != nil || (d.(*device).unit != 0) != strings.HasPrefix(name, "rows") ||
				d.Caps().SubmitAnywhere != slices.Contains(defines, "STREAM_DEVICE") {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// TestOverLostCUDA loses the device below.
func TestOverLostCUDA(t *testing.T) {
	cuda, ctl := fakeCUDA(t)
	lib := overCUDA(t, cuda)
	drv, err := New(lib)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		open, err := drv.Open(0)
		if err == nil {
			err = open.Bind()
		}
		if err != nil {
			done <- err
			return
		}
		d := open.(*device)
		s, _ := d.NewStream()
		e, _ := d.NewEvent()
		for code, want := range map[int]hip.Result{700: hip.ErrorIllegalAddress, 715: hip.ErrorLaunchFailure, 719: hip.ErrorLaunchFailure} {
			ctl.Slow(1, uintptr(code))
			_, query := d.Query(e)
			for what, err := range map[string]error{"query": query, "record": d.Record(e, s), "launch": d.Launch(s, &driver.Launch{Function: 1})} {
				if !errors.Is(err, want) || !errors.Is(err, driver.ErrLost) {
					t.Errorf("CUDA says %d: %s: %v", code, what, err)
				}
			}
		}
		done <- open.Close()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOverNoCUDA has no CUDA driver, and then one that lacks functions.
func TestOverNoCUDA(t *testing.T) {
	empty := testlib.Fake{File: "libcuda.so.1", Symbols: []string{"cuInit"}}.Build(t)
	for _, cuda := range []string{filepath.Join(t.TempDir(), "libcuda.so.1"), empty} {
		lib := overCUDA(t, cuda)
		d, err := New(lib)
		if d != nil || !errors.Is(err, hip.ErrorNoDevice) || !strings.HasPrefix(err.Error(), "hip: init: the HIP runtime in "+lib.Path()+", version unknown, finds no AMD GPU: ") {
			t.Errorf("%v, %v", d, err)
		}
	}
}
