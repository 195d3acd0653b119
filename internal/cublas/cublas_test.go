//go:build linux && (amd64 || arm64) && !nogpu

package cublas

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestFake checks the arguments and results of all functions with a fake library in C, on the fast
// and the slow path.
func TestFake(t *testing.T) {
	path := testlib.Fake{File: "libcublas.so.12", Source: "../../internal/cublas/testdata/cublas.c", Symbols: []string{}}.Build(t)
	lib, err := Open(dl.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if v := lib.Version(); v != 12005 || !strings.Contains(lib.Explain(), "12.5") {
		t.Errorf("version %d:\n%s", v, lib.Explain())
	}
	var ctl dl.Library
	if err := ctl.Open(&dl.Spec{Name: "fake", Package: "fake", Sets: []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "fake_trace", Sig: "ww"}}}, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	want := func(want ...string) {
		t.Helper()
		text := make([]byte, 1<<12)
		n, err := ctl.Slow(0, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
		if got := strings.Split(strings.TrimSuffix(string(text[:n]), "\n"), "\n"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	place := func(f []float32) cuda.DevicePtr { // the fake reads host memory
		pin.Pin(&f[0])
		return cuda.DevicePtr(uintptr(unsafe.Pointer(&f[0])))
	}
	a, b, c := []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, make([]float32, 4)
	pa, pb, pc := place(a), place(b), place(c)
	for range 2 {
		m, err := lib.NewMultiplier(2, 0x1000, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []cuda.Stream{0x51, 0x51, 0x52} {
			clear(c)
			if err := m.Multiply(s, pc, pa, pb); err != nil || !slices.Equal(c, []float32{23, 34, 31, 46}) {
				t.Errorf("%v, %v", c, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		want("create", "stream 0x51", "workspace 0x1000, 64", "sgemm 2 2 2 in 0x51 with 0x1000", "sgemm 2 2 2 in 0x51 with 0x1000",
			"stream 0x52", "workspace 0x1000, 64", "sgemm 2 2 2 in 0x52 with 0x1000", "destroy")
		lib.HeapFrames()
	}
	// A product of one row and two columns. All arguments differ, so that swapping two would show.
	h, err := lib.Create()
	if err != nil {
		t.Fatal(err)
	}
	two, three := float32(2), float32(3)
	copy(c, []float32{1, 1, 1, 1})
	if err := lib.Sgemm(h, 1, 2, 2, &two, pa, 2, pb, 2, &three, pc, 3); err != nil || !slices.Equal(c, []float32{2*(1*5+3*6) + 3, 1, 1, 2*(1*7+3*8) + 3}) {
		t.Errorf("%v, %v", c, err)
	}
	for name, err := range map[string]error{
		"a workspace that is not aligned": lib.SetWorkspace(h, 8, 64),
		"a negative size":                 lib.Sgemm(h, -1, 1, 1, &two, pa, 1, pb, 1, &two, pc, 1),
	} {
		if !errors.Is(err, Status(7)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := lib.Destroy(0); !errors.Is(err, Status(1)) || err.Error() != "cublas: status 1" {
		t.Error(err)
	}
	if err := lib.Destroy(h); err != nil {
		t.Error(err)
	}
}

func TestAbsent(t *testing.T) {
	if lib, err := Open(dl.Options{Path: filepath.Join(t.TempDir(), "libcublas.so.12")}); lib != nil || !errors.Is(err, dl.ErrNotFound) {
		t.Errorf("%v, %v", lib, err)
	}
}

// TestAllocates checks that a call allocates nothing.
func TestAllocates(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	lib, err := Open(dl.Options{Path: testlib.Fake{File: "libcublas.so.12", Source: "../../internal/cublas/testdata/cublas.c", Symbols: []string{}}.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := lib.NewMultiplier(0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sink error
	if n := testing.AllocsPerRun(100, func() { sink = m.Multiply(1, 0, 0, 0) }); n != 0 || sink != nil {
		t.Errorf("%v allocations, %v", n, sink)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
