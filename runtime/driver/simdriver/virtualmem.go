package simdriver

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.VirtualMem = (*device)(nil)

// virtualPage is the size of a page in bytes: CUDA's usual granularity of physical memory.
const virtualPage = 2 << 20

// A reservation is a range of addresses at which pages are mapped. Kernels see the whole range as
// one piece of host memory. So pages that are mapped twice have two host addresses.
type reservation struct {
	mu       sync.RWMutex // protects the following field
	mappings []*mapping   // for each page of the range, its mapping, or nil
}

// A mapping is pages that are mapped in a reservation.
type mapping struct {
	pages   *pages
	first   int   // page of the reservation at which the mapping begins
	devices []int // indexes of the devices with access
}

// pages is physical memory of one NewPages. The memory exists while it has a handle or a mapping.
type pages struct {
	dev     *device
	size    uint64
	memory  pageMemory
	holders int // number of mappings, plus 1 while there is a handle; protected by the device's virtualMem.mu
}

// virtualMemory holds the physical memory of a device, and host addresses for reservations.
type virtualMemory struct {
	mu    sync.Mutex // protects the following fields
	store pageStore
	// hosts has the host addresses of reservations that were freed, by size. Operations of a lost
	// device that are still executing may touch these addresses, so the addresses stay valid until
	// the garbage collector frees the device. hosts is nil until the first reservation.
	hosts map[uint64][]unsafe.Pointer
}

// hostRange returns host addresses for a reservation. The caller holds mu.
func (m *virtualMemory) hostRange(v *device, size uint64) (unsafe.Pointer, error) {
	if m.hosts == nil {
		m.hosts = make(map[uint64][]unsafe.Pointer)
		runtime.AddCleanup(v, func(hosts map[uint64][]unsafe.Pointer) {
			for size, all := range hosts {
				for _, p := range all {
					freeHost(p, size)
				}
			}
		}, m.hosts)
	}
	if all := m.hosts[size]; len(all) > 0 {
		m.hosts[size] = all[:len(all)-1]
		return all[len(all)-1], nil
	}
	return reserveHost(size)
}

// virtual begins a call about virtual memory.
func (v *device) virtual(c code) error { return v.enterIf(c, true, v.d.caps.VirtualMem) }

// endVirtual begins a call that frees something of virtual memory; see v.end.
func (v *device) endVirtual(c code) (err error, ok bool) {
	if err, ok = v.end(c); ok && !v.d.caps.VirtualMem {
		return v.cannot(c), false
	}
	return err, ok
}

// PageSize returns 2 MiB.
func (v *device) PageSize() uint64 { return virtualPage }

// inPages returns an error if size is not a positive multiple of the page size.
func inPages(size uint64) error {
	if size == 0 || size%virtualPage != 0 {
		return fmt.Errorf("%d bytes: %w: not a multiple of %d", size, ErrInvalidValue, virtualPage)
	}
	return nil
}

// ReserveAddresses reserves addresses.
func (v *device) ReserveAddresses(size uint64) (driver.Ptr, error) {
	if err := v.virtual(codeReserveAddresses); err != nil {
		return 0, err
	}
	if err := inPages(size); err != nil {
		return 0, fail(codeReserveAddresses, err)
	}
	if size > maxMemory {
		return 0, failf(codeReserveAddresses, "%d bytes of addresses: %w", size, driver.ErrOutOfMemory)
	}
	v.virtualMem.mu.Lock()
	host, err := v.virtualMem.hostRange(v, size)
	v.virtualMem.mu.Unlock()
	if err != nil {
		return 0, failf(codeReserveAddresses, "%d bytes of addresses: %w: %w", size, driver.ErrOutOfMemory, err)
	}
	a := &allocation{kind: driver.DeviceMem, size: size, dev: v, virtual: &reservation{mappings: make([]*mapping, size/virtualPage)}}
	a.data.Store((*byte)(host))
	v.space.mu.Lock()
	err = v.space.place(a)
	v.space.mu.Unlock()
	if err != nil {
		v.keepHost(a)
		return 0, fail(codeReserveAddresses, err)
	}
	return a.base, nil
}

// keepHost keeps the host addresses of a freed reservation for a later one.
func (v *device) keepHost(a *allocation) {
	m := &v.virtualMem
	m.mu.Lock()
	m.hosts[a.size] = append(m.hosts[a.size], unsafe.Pointer(a.data.Load()))
	m.mu.Unlock()
}

// reserved finds the reservation that contains a range of whole pages, and the index of the first
// page.
func (v *device) reserved(p driver.Ptr, size uint64) (a *allocation, first int, err error) {
	if err := inPages(size); err != nil {
		return nil, 0, err
	}
	a = v.space.find(p)
	if a == nil || a.virtual == nil || size > a.size-uint64(p-a.base) || uint64(p-a.base)%virtualPage != 0 {
		return nil, 0, fmt.Errorf("%d bytes at %#x: %w: these are no pages of a reservation of device %d", size, uint64(p), ErrInvalidValue, v.index)
	}
	return a, int(uint64(p-a.base) / virtualPage), nil
}

// FreeAddresses frees a reservation.
func (v *device) FreeAddresses(p driver.Ptr, size uint64) error {
	err, ok := v.endVirtual(codeFreeAddresses)
	if !ok {
		return err
	}
	a, first, bad := v.reserved(p, size)
	if bad == nil && (first != 0 || size != a.size) {
		bad = fmt.Errorf("%d bytes at %#x: %w: the reservation has %d at %#x", size, uint64(p), ErrInvalidValue, a.size, uint64(a.base))
	}
	if bad != nil {
		return fail(codeFreeAddresses, bad)
	}
	a.virtual.mu.RLock()
	n := 0
	for _, m := range a.virtual.mappings {
		if m != nil {
			n++
		}
	}
	a.virtual.mu.RUnlock()
	switch {
	case n > 0:
		return failf(codeFreeAddresses, "%d bytes at %#x: %w: %d pages are mapped there", size, uint64(p), ErrBusy, n)
	case !v.space.withdraw(a):
		return failf(codeFreeAddresses, "%d bytes at %#x: %w: they were freed already", size, uint64(p), ErrInvalidValue)
	}
	v.keepHost(a)
	v.space.bury(a)
	return err
}

// NewPages allocates physical memory. Unlike a GPU's, it is zero.
func (v *device) NewPages(size uint64) (driver.Pages, error) {
	if err := v.virtual(codeNewPages); err != nil {
		return 0, err
	}
	if err := inPages(size); err != nil {
		return 0, fail(codeNewPages, err)
	}
	if err := v.space.claim(v, size, v.d.memory); err != nil {
		return 0, fail(codeNewPages, err)
	}
	v.virtualMem.mu.Lock()
	memory, err := v.virtualMem.store.alloc(size)
	v.virtualMem.mu.Unlock()
	if err != nil {
		v.space.give(size)
		return 0, failf(codeNewPages, "%d bytes: %w", size, err)
	}
	p := &pages{dev: v, size: size, memory: memory, holders: 1}
	h := v.d.virtualPages.add(p)
	if h == 0 {
		p.drop()
		return 0, fail(codeNewPages, errTooMany)
	}
	return driver.Pages(h), nil
}

// pagesOf finds pages of the device by handle.
func (v *device) pagesOf(h driver.Pages) (*pages, error) {
	p := v.d.virtualPages.get(uintptr(h))
	if p == nil || p.dev != v {
		return nil, fmt.Errorf("pages %#x: %w: device %d has no such pages, or they were freed", uint64(h), ErrInvalidHandle, v.index)
	}
	return p, nil
}

// drop records that the pages have no handle any more.
func (p *pages) drop() {
	p.dev.virtualMem.mu.Lock()
	p.leave()
	p.dev.virtualMem.mu.Unlock()
}

// leave removes one holder of the pages, and with the last holder frees the memory. The caller
// holds virtualMem.mu.
func (p *pages) leave() {
	if p.holders--; p.holders == 0 {
		p.dev.virtualMem.store.free(p.memory, p.size)
		p.dev.space.give(p.size)
	}
}

// FreePages frees the handle of pages. Mapped pages stay mapped.
func (v *device) FreePages(h driver.Pages) error {
	err, ok := v.endVirtual(codeFreePages)
	if !ok {
		return err
	}
	p, bad := v.pagesOf(h)
	if bad != nil || v.d.virtualPages.remove(uintptr(h)) == nil {
		return failf(codeFreePages, "pages %#x: %w: device %d has no such pages, or they were freed", uint64(h), ErrInvalidHandle, v.index)
	}
	p.drop()
	return err
}

// MapPages maps pages.
func (v *device) MapPages(at driver.Ptr, h driver.Pages, size uint64) error {
	if err := v.virtual(codeMapPages); err != nil {
		return err
	}
	a, first, err := v.reserved(at, size)
	if err != nil {
		return fail(codeMapPages, err)
	}
	p, err := v.pagesOf(h)
	switch {
	case err != nil:
		return fail(codeMapPages, err)
	case size != p.size:
		return failf(codeMapPages, "%d bytes: %w: the pages have %d, and are mapped as a whole", size, ErrInvalidValue, p.size)
	}
	a.virtual.mu.Lock()
	defer a.virtual.mu.Unlock()
	there := a.virtual.mappings[first : first+int(size/virtualPage)]
	for i, m := range there {
		if m != nil {
			return failf(codeMapPages, "%d bytes at %#x: %w: page %d of the reservation is mapped already", size, uint64(at), ErrInvalidValue, first+i)
		}
	}
	v.virtualMem.mu.Lock()
	defer v.virtualMem.mu.Unlock()
	if err := v.virtualMem.store.place(a.at(first), p.memory, size); err != nil {
		return failf(codeMapPages, "%d bytes at %#x: %w", size, uint64(at), err)
	}
	p.holders++
	m := &mapping{pages: p, first: first}
	for i := range there {
		there[i] = m
	}
	return nil
}

// at returns the host address of a page of a reservation.
func (a *allocation) at(page int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(a.data.Load()), page*virtualPage)
}

// UnmapPages undoes one MapPages. It does not wait. Uses of the addresses then lose the device,
// until pages are mapped there again.
func (v *device) UnmapPages(at driver.Ptr, size uint64) error {
	err, ok := v.endVirtual(codeUnmapPages)
	if !ok {
		return err
	}
	a, first, bad := v.reserved(at, size)
	if bad != nil {
		return fail(codeUnmapPages, bad)
	}
	a.virtual.mu.Lock()
	defer a.virtual.mu.Unlock()
	m := a.virtual.mappings[first]
	if m == nil || m.first != first || m.pages.size != size {
		return failf(codeUnmapPages, "%d bytes at %#x: %w: no call has mapped just these", size, uint64(at), ErrInvalidValue)
	}
	if bad := a.unmap(m); bad != nil {
		return failf(codeUnmapPages, "%d bytes at %#x: %w", size, uint64(at), bad)
	}
	return err
}

// unmap removes a mapping. The caller holds a.virtual.mu.
func (a *allocation) unmap(m *mapping) error {
	v := a.dev
	v.virtualMem.mu.Lock()
	defer v.virtualMem.mu.Unlock()
	if err := v.virtualMem.store.clear(a.at(m.first), m.pages.memory, m.pages.size); err != nil {
		return err
	}
	clear(a.virtual.mappings[m.first : m.first+int(m.pages.size/virtualPage)])
	m.pages.leave()
	return nil
}

// AccessPages gives devices access to the pages that are mapped at a range of addresses.
func (v *device) AccessPages(at driver.Ptr, size uint64, devices []driver.Device) error {
	if err := v.virtual(codeAccessPages); err != nil {
		return err
	}
	a, first, err := v.reserved(at, size)
	if err != nil {
		return fail(codeAccessPages, err)
	}
	indexes := make([]int, len(devices))
	for i, other := range devices {
		w, err := v.peer(codeAccessPages, other)
		if err != nil {
			return err
		}
		if w != v && (!v.d.caps.Peers || w.link(v).Kind == driver.LinkNone) {
			return failf(codeAccessPages, "from device %d to device %d: the hardware has no link: %w", w.index, v.index, driver.ErrUnsupported)
		}
		indexes[i] = w.index
	}
	a.virtual.mu.Lock()
	defer a.virtual.mu.Unlock()
	var within []*mapping
	for i, end := first, first+int(size/virtualPage); i < end; {
		m := a.virtual.mappings[i]
		if m == nil {
			return failf(codeAccessPages, "%d bytes at %#x: %w: nothing is mapped at page %d of the reservation", size, uint64(at), ErrInvalidValue, i)
		}
		n := int(m.pages.size / virtualPage)
		if m.first < first || i+n > end {
			return failf(codeAccessPages, "%d bytes at %#x: %w: page %d of the reservation belongs to %d pages mapped at page %d: set the access of all of them",
				size, uint64(at), ErrInvalidValue, i, n, m.first)
		}
		within = append(within, m)
		i += n
	}
	for _, m := range within {
		for _, i := range indexes {
			if !slices.Contains(m.devices, i) {
				m.devices = append(m.devices, i)
			}
		}
	}
	return nil
}

// allows returns an error if the device must not access n bytes at p, an address in the
// reservation.
func (r *reservation) allows(v *device, a *allocation, p driver.Ptr, n uint64) *AccessError {
	from := uint64(p - a.base)
	if n > a.size-from {
		return v.d.miss(p, n)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := from / virtualPage; i <= (from+n-1)/virtualPage; i++ {
		m := r.mappings[i]
		if m == nil {
			return &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Unmapped: true}
		}
		if !slices.Contains(m.devices, v.index) {
			return &AccessError{Addr: p, Size: n, Base: a.base, Length: a.size, Barred: true, Unmapped: true}
		}
	}
	return nil
}

// clearVirtual frees the device's pages and mappings, when the device is closed. space.clear then
// frees the reservations.
func (v *device) clearVirtual() {
	var all []*allocation
	v.space.each(v, func(a *allocation) {
		if a.virtual != nil {
			all = append(all, a)
		}
	})
	for _, a := range all {
		a.virtual.mu.Lock()
		for _, m := range a.virtual.mappings {
			if m != nil && a.virtual.mappings[m.first] == m {
				a.unmap(m)
			}
		}
		a.virtual.mu.Unlock()
		v.keepHost(a)
	}
	v.d.virtualPages.all(func(h uintptr, p *pages) {
		if p.dev == v && v.d.virtualPages.remove(h) != nil {
			p.drop()
		}
	})
}
