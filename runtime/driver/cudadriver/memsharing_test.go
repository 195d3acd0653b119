//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestMemSharing allocates shareable memory, exports it, and imports it as another process does. It
// checks that everything is released in the right order.
func TestMemSharing(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.Calls()
	m, err := d.Alloc(driver.ShareableMem, 100)
	ok(t, err)
	if m.Kind != driver.ShareableMem || m.Size != 100 || m.Ptr == 0 || m.Host != nil {
		t.Errorf("%+v", m)
	}
	f.Want("cuMemCreate(2097152, 1 1, 1 0, 1, 0)", "cuMemAddressReserve(2097152, 0, 0, 0)", "cuMemMap(2097152, 0, 0x40000, 0)", "cuMemRelease(0x40000)",
		"cuMemSetAccess(2097152, 1 0 3, 1)")
	file, err := d.ExportShareable(m)
	ok(t, err)
	defer file.Close()
	f.Want("cuMemRetainAllocationHandle()", "cuMemExportToShareableHandle(0x40000, 1, 0)", "cuMemRelease(0x40000)")
	o, err := d.ImportShareable(file, 100)
	ok(t, err)
	if o.Kind != driver.ShareableMem || o.Size != 100 || o.Ptr == 0 || o.Ptr == m.Ptr || o.Host != nil {
		t.Errorf("%+v", o)
	}
	if _, err := file.Stat(); err != nil {
		t.Errorf("the file is not the caller's any more: %v", err)
	}
	f.Want("cuMemImportFromShareableHandle(1)", "cuMemAddressReserve(2097152, 0, 0, 0)", "cuMemMap(2097152, 0, 0x40000, 0)", "cuMemRelease(0x40000)",
		"cuMemSetAccess(2097152, 1 0 3, 1)")
	ok(t, d.Fill(stream0, m.Ptr, 7, 1, 100))
	ok(t, d.Free(m)) // the import keeps the physical memory alive
	f.Want("cuMemsetD8Async(0x7, 100, 0x5000)", "cuMemUnmap(2097152)", "cuMemAddressFree(2097152)")
	got := make([]byte, 100)
	ok(t, d.Download(stream0, unsafe.Pointer(&got[0]), o.Ptr, 100))
	if slices.ContainsFunc(got, func(b byte) bool { return b != 7 }) {
		t.Errorf("%v", got)
	}
	ok(t, d.Free(o))
	again, err := d.ImportShareable(file, 2<<20) // the descriptor alone keeps the physical memory alive
	ok(t, err)
	ok(t, d.Download(stream0, unsafe.Pointer(&got[0]), again.Ptr, 100))
	ok(t, d.Free(again))
	if got[99] != 7 || f.Live() != 0 {
		t.Errorf("%v, and %d objects are left", got, f.Live())
	}
}

// TestMemSharingMistakes passes wrong memory and wrong files, and makes each native call fail.
// Nothing leaks, except a handle whose release fails.
func TestMemSharingMistakes(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	m, err := d.Alloc(driver.ShareableMem, 4<<20)
	ok(t, err)
	file, err := d.ExportShareable(m)
	ok(t, err)
	defer file.Close()
	other, err := os.CreateTemp(t.TempDir(), "")
	ok(t, err)
	closed, err := os.CreateTemp(t.TempDir(), "")
	ok(t, err)
	ok(t, closed.Close())
	live := f.Live()
	only := func(_ any, err error) error { return err }
	imports := func() error { return only(d.ImportShareable(file, 100)) }
	allocs := func() error { return only(d.Alloc(driver.ShareableMem, 100)) }
	exports := func() error { return only(d.ExportShareable(m)) }
	for what, err := range map[string]error{
		"more than there is": only(d.ImportShareable(file, 4<<20+1)),
		"another file":       only(d.ImportShareable(other, 100)),
		"a closed file":      only(d.ImportShareable(closed, 100)),
		"other memory":       only(d.ExportShareable(driver.Mem{Kind: driver.DeviceMem, Ptr: m.Ptr})),
		"no memory":          only(d.ExportShareable(driver.Mem{Kind: driver.ShareableMem, Ptr: 8})),
		"to free nothing":    d.Free(driver.Mem{Kind: driver.ShareableMem, Ptr: 8, Size: 100}),
	} {
		if _, is := errors.AsType[*driver.Error](err); !is {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := only(d.ImportShareable(closed, 100)); !strings.Contains(err.Error(), closed.Name()) {
		t.Errorf("a closed file: %v", err)
	}
	if f.Live() != live {
		t.Errorf("%d objects are left", f.Live()-live)
	}
	for _, c := range []struct {
		op, fn string
		call   func() error
	}{
		{"alloc", "cuMemCreate", allocs},
		{"alloc", "cuMemAddressReserve", allocs},
		{"alloc", "cuMemMap", allocs},
		{"alloc", "cuMemSetAccess", allocs},
		{"import shareable memory", "cuMemImportFromShareableHandle", imports},
		{"import shareable memory", "cuMemAddressReserve", imports},
		{"import shareable memory", "cuMemMap", imports},
		{"import shareable memory", "cuMemSetAccess", imports},
		{"export shareable memory", "cuMemRetainAllocationHandle", exports},
		{"export shareable memory", "cuMemExportToShareableHandle", exports},
		{"free", "cuMemUnmap", func() error { return d.Free(m) }},
	} {
		for _, code := range []cuda.Result{cuda.ErrorInvalidValue, cuda.ErrorOutOfMemory, cuda.ErrorIllegalAddress} {
			f.Set(c.fn, int(code))
			e, is := errors.AsType[*driver.Error](c.call())
			if !is || e.Op != c.op || !errors.Is(e, code) || e.OOM != (code == cuda.ErrorOutOfMemory) || e.Lost != (code == cuda.ErrorIllegalAddress) {
				t.Errorf("%s, %s: %v", c.op, c.fn, e)
			}
			f.Set(c.fn, 0)
			if f.Live() != live {
				t.Fatalf("%s, %s: %d objects are left", c.op, c.fn, f.Live()-live)
			}
		}
	}
	// If a release fails, the error is returned, and the remaining releases still run.
	for _, call := range []func() error{allocs, imports, exports} {
		f.Set("cuMemRelease", int(cuda.ErrorInvalidValue))
		if err := call(); !errors.Is(err, cuda.ErrorInvalidValue) {
			t.Errorf("a leaked handle: %v", err)
		}
		f.Set("cuMemRelease", 0)
		if live++; f.Live() != live {
			t.Fatalf("%d objects more than the handle are left", f.Live()-live)
		}
	}
	ok(t, d.Free(m))
}

// TestNoMemSharing tests devices without shareable memory, a driver that is too old for the RDMA
// attribute, and a device whose granularity cannot be read.
func TestNoMemSharing(t *testing.T) {
	for _, attr := range []string{"attr 102", "attr 103", "granularity"} {
		f := newFake(t, 13000)
		f.Set(attr, 1) // makes the attribute read 0
		d := f.device()
		if d.Caps().MemSharing {
			t.Errorf("%s is 0, but the device shares memory", attr)
		}
		_, alloc := d.Alloc(driver.ShareableMem, 100)
		_, export := d.ExportShareable(driver.Mem{Kind: driver.ShareableMem})
		_, open := d.ImportShareable(os.Stdin, 100)
		free := d.Free(driver.Mem{Kind: driver.ShareableMem})
		for what, err := range map[string]error{"alloc": alloc, "export shareable memory": export, "import shareable memory": open, "free": free} {
			if e, ok := err.(*driver.Error); !ok || e.Op != what || !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	f := newFake(t, 11020) // too old for the RDMA attribute
	d := f.device()
	f.Calls()
	m, err := d.Alloc(driver.ShareableMem, 2<<20)
	ok(t, err)
	if calls := f.Calls(); calls[0] != fmt.Sprintf("cuMemCreate(%d, 1 1, 1 0, 0, 0)", 2<<20) {
		t.Errorf("%v", calls)
	}
	ok(t, d.Free(m))

	f = newFake(t, 13000)
	f.Set("cuMemGetAllocationGranularity", int(cuda.ErrorUnknown))
	if _, err := f.driver().Open(0); !errors.Is(err, cuda.ErrorUnknown) {
		t.Errorf("a device without a granularity: %v", err)
	}
}

// TestSharingVirtual shares memory with a Python process. Both use the fake driver.
func TestSharingVirtual(t *testing.T) {
	f := newFake(t, 13000)
	sharesVirtual(t, f.driver(), f.Path, 5<<20, 3)
	virtualKilled(t, f.driver(), f.Path)
	if f.Live() != 0 {
		t.Errorf("%d objects are left", f.Live())
	}
}
