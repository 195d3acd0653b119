package simdriver_test

import (
	"errors"
	"math/bits"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

const virtualPage = 2 << 20

// A virtualDevice is a device with virtual memory.
type virtualDevice interface {
	driver.Device
	driver.VirtualMem
	driver.MemInfo
}

func virtual(v driver.Device) virtualDevice { return v.(virtualDevice) }

// TestVirtualMem maps pages at two places, accesses them, and unmaps them.
func TestVirtualMem(t *testing.T) {
	if runtime.GOOS != "linux" || bits.UintSize < 64 {
		t.Skip("pages cannot be mapped twice on this platform")
	}
	d, all := open(t, simdriver.Config{Devices: 2, Memory: 4 * virtualPage, Deterministic: true})
	v, w := virtual(all[0]), all[1]
	p, err := v.ReserveAddresses(64 << 30) // more addresses than the device has memory
	check(t, err)
	q, err := v.ReserveAddresses(2 * virtualPage)
	check(t, err)
	var pages [4]driver.Pages
	for i := range pages {
		pages[i], err = v.NewPages(virtualPage)
		check(t, err)
	}
	if _, err := v.NewPages(virtualPage); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("a page too many: %v", err)
	}
	if _, err := v.Alloc(driver.DeviceMem, 1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("a byte too many: %v", err)
	}
	check(t, v.MapPages(p, pages[0], virtualPage))
	check(t, v.MapPages(p+virtualPage, pages[1], virtualPage))
	check(t, v.MapPages(q, pages[1], virtualPage))
	check(t, v.AccessPages(p, 2*virtualPage, []driver.Device{v, w}))
	check(t, v.AccessPages(q, virtualPage, []driver.Device{v}))
	s, err := v.NewStream()
	check(t, err)
	check(t, v.Fill(s, p+virtualPage-2, 7, 1, 4)) // crosses from one page to the next
	got := make([]byte, 2)
	check(t, v.Download(s, unsafe.Pointer(&got[0]), q, 2))
	d.Run()
	if got[0] != 7 || got[1] != 7 {
		t.Errorf("the shared page has %v", got)
	}
	check(t, v.UnmapPages(p+virtualPage, virtualPage))
	check(t, v.FreePages(pages[1]))
	if c := d.Counters().Devices[0]; c.Reservations != 2 || c.Pages != 3 || c.PageBytes != 3*virtualPage || c.Allocations != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := v.NewPages(virtualPage); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("memory that is still mapped was free: %v", err)
	}
	check(t, v.UnmapPages(q, virtualPage))
	again, err := v.NewPages(virtualPage)
	check(t, err)
	check(t, v.MapPages(q, again, virtualPage))
	check(t, v.AccessPages(q, virtualPage, []driver.Device{v}))
	check(t, v.Download(s, unsafe.Pointer(&got[0]), q, 2))
	d.Run()
	if got[0] != 0 {
		t.Errorf("new pages have %v", got)
	}
	for name, err := range map[string]error{
		"mapped already":        v.MapPages(p, pages[2], virtualPage),
		"another size":          v.MapPages(p+2*virtualPage, pages[2], 2*virtualPage),
		"freed pages":           v.MapPages(p+2*virtualPage, pages[1], virtualPage),
		"not aligned":           v.MapPages(p+2*virtualPage+4096, pages[2], virtualPage),
		"nothing there":         v.UnmapPages(p+virtualPage, virtualPage),
		"access to nothing":     v.AccessPages(p, 2*virtualPage, []driver.Device{v}),
		"addresses with pages":  v.FreeAddresses(q, 2*virtualPage),
		"part of the addresses": v.FreeAddresses(p, virtualPage),
		"freed twice":           v.FreePages(pages[1]),
		"Free":                  v.Free(driver.Mem{Ptr: p, Size: 64 << 30}),
		"no pages":              errOf(v.NewPages(4096)),
		"no addresses":          errOf(v.ReserveAddresses(0)),
	} {
		if e, is := errors.AsType[*driver.Error](err); !is || e.Lost || e.OOM {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, v.UnmapPages(p, virtualPage))
	check(t, v.UnmapPages(q, virtualPage))
	for _, h := range []driver.Pages{pages[0], pages[2], pages[3], again} {
		check(t, v.FreePages(h))
	}
	check(t, v.FreeAddresses(p, 64<<30))
	check(t, v.FreeAddresses(q, 2*virtualPage))
	check(t, v.DestroyStream(s))
	if free, total, err := v.MemInfo(); err != nil || free != total {
		t.Errorf("%d of %d bytes are free: %v", free, total, err)
	}
	if leaks := d.Leaks(); len(leaks) != 2 { // only the two open devices
		t.Errorf("%q", leaks)
	}
	if p2, err := v.ReserveAddresses(64 << 30); err != nil || p2 == p {
		t.Errorf("new addresses %#x, %v", uint64(p2), err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestVirtualMemAccess makes operations touch addresses where no pages are mapped, and pages
// without access.
func TestVirtualMemAccess(t *testing.T) {
	for name, c := range map[string]struct {
		touch func(v, w driver.Device, p driver.Ptr) (driver.Device, driver.Ptr)
		says  string
	}{
		"no pages":           {func(v, w driver.Device, p driver.Ptr) (driver.Device, driver.Ptr) { return v, p + virtualPage }, "no pages are mapped"},
		"into no pages":      {func(v, w driver.Device, p driver.Ptr) (driver.Device, driver.Ptr) { return v, p + virtualPage - 8 }, "no pages are mapped"},
		"no access":          {func(v, w driver.Device, p driver.Ptr) (driver.Device, driver.Ptr) { return w, p }, "this device has no access"},
		"beyond the address": {func(v, w driver.Device, p driver.Ptr) (driver.Device, driver.Ptr) { return v, p + 2*virtualPage - 8 }, "only 8 bytes remain"},
	} {
		t.Run(name, func(t *testing.T) {
			d, all := open(t, simdriver.Config{Devices: 2, Deterministic: true})
			v, w := virtual(all[0]), all[1]
			p, err := v.ReserveAddresses(2 * virtualPage)
			check(t, err)
			h, err := v.NewPages(virtualPage)
			check(t, err)
			check(t, v.MapPages(p, h, virtualPage))
			check(t, v.AccessPages(p, virtualPage, []driver.Device{v}))
			dev, at := c.touch(v, w, p)
			s, err := dev.NewStream()
			check(t, err)
			check(t, dev.Fill(s, at, 1, 4, 4))
			d.Run()
			e, err := dev.NewEvent()
			if access, is := errors.AsType[*simdriver.AccessError](err); !is || !strings.Contains(access.Error(), c.says) {
				t.Errorf("event %v: %v", e, err)
			}
		})
	}
}

// TestVirtualMemShared gives two devices access to the same pages, one after the other. It checks
// that AccessPages refuses a part of the range of one MapPages, as cuMemSetAccess does.
func TestVirtualMemShared(t *testing.T) {
	d, all := open(t, simdriver.Config{Devices: 2, Deterministic: true})
	v, w := virtual(all[0]), all[1]
	p, err := v.ReserveAddresses(3 * virtualPage)
	check(t, err)
	for at, n := range map[driver.Ptr]uint64{p: 2, p + 2*virtualPage: 1} {
		h, err := v.NewPages(n * virtualPage)
		check(t, err)
		check(t, v.MapPages(at, h, n*virtualPage))
	}
	for at, n := range map[driver.Ptr]uint64{p: 1, p + virtualPage: 2} {
		refused(t, v.AccessPages(at, n*virtualPage, []driver.Device{v}), simdriver.ErrInvalidValue, "2 pages mapped at page 0")
	}
	check(t, v.AccessPages(p, 3*virtualPage, []driver.Device{v}))
	check(t, v.AccessPages(p, 2*virtualPage, []driver.Device{w}))
	for _, dev := range all {
		check(t, dev.Fill(stream(t, dev), p, 1, 1, 2*virtualPage))
	}
	d.Run()
	for _, dev := range all {
		check(t, dev.Bind())
	}
}
