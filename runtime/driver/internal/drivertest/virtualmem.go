//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// virtualCalls returns calls of the methods of driver.VirtualMem, by the Op of their errors. If the
// device has virtual memory, each call can succeed once.
func virtualCalls(d Device) map[string]func() error {
	size := d.PageSize()
	var at, free driver.Ptr // two reservations: at has two pages, the first one mapped, and free has one page
	var pages, more driver.Pages
	if d.Caps().VirtualMem {
		at, _ = d.ReserveAddresses(2 * size)
		free, _ = d.ReserveAddresses(size)
		pages, _ = d.NewPages(size)
		more, _ = d.NewPages(size)
		d.MapPages(at, pages, size)
	}
	return map[string]func() error{
		"reserve addresses": func() error { return only(d.ReserveAddresses(size)) },
		"free addresses":    func() error { return d.FreeAddresses(free, size) },
		"new pages":         func() error { return only(d.NewPages(size)) },
		"free pages":        func() error { return d.FreePages(more) },
		"map pages":         func() error { return d.MapPages(at+driver.Ptr(size), pages, size) },
		"access pages":      func() error { return d.AccessPages(at, size, []driver.Device{d}) },
		"unmap pages":       func() error { return d.UnmapPages(at, size) },
	}
}

// testVirtualMem checks that pages can be mapped at two places and unmapped, that their contents
// are right, and that no objects are left.
func testVirtualMem(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(false)
	if !d.Caps().VirtualMem {
		t.Fatal("the device has no virtual memory")
	}
	size, live := d.PageSize(), f.Live()
	if size == 0 || size%4096 != 0 {
		t.Fatalf("pages of %d bytes", size)
	}
	p, err := d.ReserveAddresses(4 * size)
	OK(t, err)
	q, err := d.ReserveAddresses(size)
	OK(t, err)
	var pages [2]driver.Pages
	for i := range pages {
		pages[i], err = d.NewPages(size)
		OK(t, err)
		OK(t, d.MapPages(p+driver.Ptr(size)*driver.Ptr(i), pages[i], size))
	}
	OK(t, d.MapPages(q, pages[1], size))
	OK(t, d.AccessPages(p, 2*size, []driver.Device{d, a.Neighbour(d)}))
	OK(t, d.AccessPages(p, 2*size, []driver.Device{a.Neighbour(d)})) // d keeps its access
	OK(t, d.AccessPages(q, size, []driver.Device{d}))
	OK(t, d.Fill(Stream0, p, 7, 1, 2*size))
	got := make([]byte, 2)
	OK(t, d.Download(Stream0, unsafe.Pointer(&got[0]), q+driver.Ptr(size)-2, 2))
	if got[0] != 7 || got[1] != 7 {
		t.Errorf("the shared page has %v", got)
	}
	OK(t, d.UnmapPages(p+driver.Ptr(size), size))
	OK(t, d.FreePages(pages[1])) // the mapping at q keeps the memory alive
	OK(t, d.Fill(Stream0, q, 9, 1, size))
	OK(t, d.Download(Stream0, unsafe.Pointer(&got[0]), p, 2))
	if got[0] != 7 {
		t.Errorf("the other page has %v", got)
	}
	for name, err := range map[string]error{
		"map pages":      d.MapPages(p, pages[0], size), // the address is mapped already
		"unmap pages":    d.UnmapPages(p+driver.Ptr(size), size),
		"access pages":   d.AccessPages(p, 2*size, []driver.Device{d}),
		"free addresses": d.FreeAddresses(p, 4*size),
		"free pages":     d.FreePages(1),
		"new pages":      only(d.NewPages(0)),
	} {
		if e, is := errors.AsType[*driver.Error](err); !is || e.Op != name || e.Lost || e.OOM {
			t.Errorf("%s: %v", name, err)
		}
	}
	OK(t, d.UnmapPages(p, size))
	OK(t, d.UnmapPages(q, size))
	OK(t, d.FreePages(pages[0]))
	OK(t, d.FreeAddresses(p, 4*size))
	OK(t, d.FreeAddresses(q, size))
	f.Clean("virtual memory")
	if f.Live() != live {
		t.Errorf("%d objects are left", f.Live()-live)
	}
	if err := d.AccessPages(q, size, []driver.Device{stranger{}}); err == nil {
		t.Error("a device of another driver gets access")
	}
}

// A stranger stands for a device of another driver.
type stranger struct{ driver.Device }

func only[T any](_ T, err error) error { return err }

// testVirtualMemErrors checks the error of each method of driver.VirtualMem when its native call
// fails, and that the method then succeeds.
func testVirtualMemErrors(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(false)
	calls := virtualCalls(d)
	for _, c := range []struct{ op, fn string }{
		{"reserve addresses", "MemAddressReserve"}, {"free addresses", "MemAddressFree"}, {"new pages", "MemCreate"}, {"free pages", "MemRelease"},
		{"map pages", "MemMap"}, {"access pages", "MemSetAccess"}, {"unmap pages", "MemUnmap"},
	} {
		for _, code := range []int{OutOfMemory, NotSupported} {
			f.Set(a.Prefix+c.fn, code)
			e, is := errors.AsType[*driver.Error](calls[c.op]())
			if !is || e.Op != c.op || !errors.Is(e, a.Result(code)) || e.OOM != (code == OutOfMemory) || e.Lost {
				t.Errorf("%s after %s: %v", c.op, c.fn, e)
			}
		}
		f.Set(a.Prefix+c.fn, 0)
	}
	f.Set(a.Prefix+"MemSetAccess", NoPeers)
	if err := calls["access pages"](); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("without a link: %v", err)
	}
	f.Set(a.Prefix+"MemSetAccess", 0)
	f.Clean("failed calls")
	for _, op := range []string{"access pages", "unmap pages", "map pages", "new pages", "reserve addresses", "free pages", "free addresses"} {
		if err := calls[op](); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// Virtual checks that the methods of driver.VirtualMem return ErrUnsupported on a device without
// virtual memory, and make no native call.
func (a *API) Virtual(t *testing.T, f Library, d Device) {
	t.Helper()
	f.Calls()
	if d.Caps().VirtualMem {
		t.Error("the device has virtual memory")
	}
	for op, call := range virtualCalls(d) {
		e, is := call().(*driver.Error)
		if !is || e.Op != op || !errors.Is(e, driver.ErrUnsupported) || !strings.Contains(e.Error(), "virtual memory") {
			t.Errorf("%s: %v", op, e)
		}
	}
	if calls := f.Calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, a.Prefix+"Mem") }) {
		t.Errorf("%v", calls)
	}
}
