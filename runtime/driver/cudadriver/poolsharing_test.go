//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestPoolSharing(t *testing.T) {
	f := newFake(t, 13000)
	d := f.device()
	f.Calls()
	p, err := d.NewPool(driver.PoolDesc{Shareable: true})
	ok(t, err)
	file, err := d.ExportPool(p)
	ok(t, err)
	defer file.Close()
	imported, err := d.ImportPool(file)
	ok(t, err)
	if _, err := file.Stat(); err != nil {
		t.Errorf("the file is not the caller's any more: %v", err)
	}
	f.Want("cuMemPoolCreate(1, 1, 1 0, (nil), 0, 0)", "cuMemPoolExportToShareableHandle(0x9020, 1, 0)", "cuMemPoolImportFromShareableHandle(1, 0)",
		"cuMemPoolSetAccess(0x9070, 1 0 3, 1)")
	h, err := d.ExportPoolMem(driver.Mem{Ptr: 0x1234, Size: 64})
	ok(t, err)
	m, err := d.OpenPoolMem(imported, h)
	ok(t, err)
	if m.Ptr != 0x1234 || m.Size != 0 || m.Kind != driver.DeviceMem || m.Host != nil {
		t.Errorf("%+v", m)
	}
	f.Want("cuMemPoolExportPointer()", "cuMemPoolImportPointer(0x9070, pool memory)")
	ok(t, d.DestroyPool(imported))
	ok(t, d.DestroyPool(p))
	f.Calls()

	if _, err := d.NewPool(driver.PoolDesc{Kind: driver.HostMem, Shareable: true}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a shareable pool of host memory: %v", err)
	}
	closed, err := os.CreateTemp(t.TempDir(), "")
	ok(t, err)
	ok(t, closed.Close())
	if _, err := d.ImportPool(closed); err == nil || !strings.Contains(err.Error(), closed.Name()) {
		t.Errorf("a closed file: %v", err)
	}
	for what, call := range map[string]func() error{
		"cuMemPoolExportToShareableHandle":   func() error { _, err := d.ExportPool(p); return err },
		"cuMemPoolImportFromShareableHandle": func() error { _, err := d.ImportPool(file); return err },
		"cuMemPoolSetAccess":                 func() error { _, err := d.ImportPool(file); return err },
		"cuMemPoolExportPointer":             func() error { _, err := d.ExportPoolMem(m); return err },
		"cuMemPoolImportPointer":             func() error { _, err := d.OpenPoolMem(imported, h); return err },
		"cuMemFree_v2":                       func() error { return d.ClosePoolMem(m) },
	} {
		f.Set(what, int(cuda.ErrorInvalidValue))
		var e *driver.Error
		if err := call(); !errors.As(err, &e) || !errors.Is(err, cuda.ErrorInvalidValue) {
			t.Errorf("%s: %v", what, err)
		}
		f.Set(what, 0)
	}
}

// TestNoPoolSharing tests a device that cannot share pools by descriptors.
func TestNoPoolSharing(t *testing.T) {
	f := newFake(t, 13000)
	f.Set("attr 119", 1) // no handle types
	d := f.device()
	if d.Caps().PoolSharing {
		t.Error("it shares")
	}
	_, pool := d.NewPool(driver.PoolDesc{Shareable: true})
	_, export := d.ExportPool(1)
	_, open := d.ImportPool(os.Stdin)
	_, exportMem := d.ExportPoolMem(driver.Mem{})
	_, openMem := d.OpenPoolMem(1, driver.MemHandle{})
	for what, err := range map[string]error{"new pool": pool, "export pool": export, "import pool": open, "export pool memory": exportMem,
		"open pool memory": openMem, "close pool memory": d.ClosePoolMem(driver.Mem{})} {
		if e, ok := err.(*driver.Error); !ok || e.Op != what || !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
