package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A Growing is a reserved range of addresses with physical pages mapped at its start. Its buffer
// has the address of the range, which never changes.
//
// The field size is how much the program may use. The calls that submit or record a range check
// the field size. The field reach is checked when work is issued (Holding.Ptr). Grow raises both
// fields after the pages have been mapped. No work uses new pages before that, so mapping disturbs
// nothing in flight.
//
// Shrink lowers only size, at once, and marks the pages behind the new size as gone. A goroutine
// (trim.run) then waits for the points given to Shrink. The goroutine lowers reach, and after that
// reads the uses of the buffer. A submission adds its mark to the uses, and after that checks
// reach. So either the submission fails with ErrRange, or the goroutine sees the submission's mark.
// The Free of pool memory works the same way. When the streams have passed the marks, the reclaimer
// unmaps the pages. No stream waits for the unmapping. Until the pages are unmapped, a Grow takes
// them back without a native call.
//
// A Growing has no reference to its Buffer, so the garbage collector can find a dropped Buffer.
type Growing struct {
	dev    *Device
	ptr    driver.Ptr
	max    uint64
	page   uint64          // bytes of a page
	users  []*Device       // the devices with access; the buffer's device comes first
	ctx    context.Context // canceled when the memory is freed, or left to the driver
	cancel context.CancelFunc

	size   atomic.Uint64 // changed with growMu and mu locked, and by free
	reach  atomic.Uint64 // bytes that issued work may use, at least size; changed with mu locked
	unmaps atomic.Int32  // number of running trims that may have read the uses
	uses   engine.Uses

	// growMu is locked during a call of Grow, Share or Shrink, also while Grow or Share blocks on
	// the driver. While Share waits for pages to be unmapped, it unlocks growMu. growMu is locked
	// before mu.
	growMu sync.Mutex

	mu    sync.Mutex // protects the following; held while pages are unmapped
	pages []page     // by address; pages that Shrink has removed (page.gone is not 0) come last
	trims uint64     // how many trims there have been; they are numbered from 1
	// waits has the trims that wait for points, by number. A new trim also waits for the points of
	// all trims in waits. The reason: the pages of the new trim may include pages that an earlier
	// Shrink has removed and a Grow has taken back. Work may use these pages until each point of
	// the earlier Shrink is reached or has failed.
	waits map[uint64]*trim
	freed bool
	stuck error // why pages that Shrink has removed will never be unmapped, or nil
	// awaitUnmapped makes this channel, and tell closes it.
	unmapped chan struct{}
}

// A page is a page of addresses of a Growing, with physical memory mapped there.
type page struct {
	of   *physical
	gone uint64 // number of the first trim that may unmap the page; 0 if the page is not removed
}

// A physical is one page of a device's physical memory. It is freed when no Growing maps it any
// more.
type physical struct {
	dev    *Device
	handle driver.Pages
	size   uint64
	maps   atomic.Int32 // how many pages of Growings map it
}

// Reserve reserves max bytes of addresses, rounded up to pages. The parameter page is the size of a
// page; 0 means the driver's granularity. The devices in peers get access to the memory.
func (d *Device) Reserve(max, page uint64, peers []*Device) (*Buffer, error) {
	const op = "reserve addresses"
	if err := d.ready(op); err != nil {
		return nil, err
	}
	v := d.Faces.VirtualMem
	if v == nil {
		return nil, fmt.Errorf("gpu: %s on %s: its driver maps no physical memory at reserved addresses: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
	}
	granule := v.PageSize()
	if page == 0 {
		page = granule
	}
	switch {
	case max == 0:
		return nil, errs.Argument(op, "0 bytes")
	case page%granule != 0:
		return nil, errs.Argument(op, "pages of %d bytes are not a multiple of the granularity of %d", page, granule)
	}
	max = roundUp(max, page)
	if err := CanBe(max); err != nil {
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, err)
	}
	m := &Growing{dev: d, max: max, page: page, users: []*Device{d}, waits: make(map[uint64]*trim)}
	for _, p := range peers {
		switch {
		case p == nil || p.Engine == nil || p.Engine.Driver != d.Engine.Driver:
			return nil, errs.Argument(op, "a peer is no device, or is of another driver")
		case p.Failed() != nil:
			return nil, p.Failed()
		case !m.allows(p):
			m.users = append(m.users, p)
		}
	}
	m.ctx, m.cancel = context.WithCancel(d.kept)
	b := newBuffer(d, m.max)
	b.setRare(&rare{growing: m})
	err := d.Engine.Do(func() (err error) {
		if m.ptr, err = v.ReserveAddresses(m.max); err == nil {
			b.mem.Ptr, b.from = m.ptr, mapped
			d.buffers.add(b)
		}
		return err
	})
	if err != nil {
		m.cancel()
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s: %d bytes on %s: %w", op, m.max, d.Engine.Info.Name, err)
	}
	return b, nil
}

// roundUp rounds a size up to a multiple of unit. If that overflows, the result is more than any
// device has.
func roundUp(size, unit uint64) uint64 {
	if rest := size % unit; rest > 0 {
		if size > size+(unit-rest) {
			return 1 << 63
		}
		return size + unit - rest
	}
	return size
}

// Growing returns the pages of growing memory, or nil if the buffer is not growing memory.
func (b *Buffer) Growing() *Growing {
	if b.rare == nil {
		return nil
	}
	return b.rare.growing
}

// Size returns how many bytes work may use.
func (m *Growing) Size() uint64 { return m.size.Load() }

// Max returns how many bytes are reserved.
func (m *Growing) Max() uint64 { return m.max }

// Page returns the size of a page in bytes.
func (m *Growing) Page() uint64 { return m.page }

// allows reports whether a device has access to the memory.
func (m *Growing) allows(d *Device) bool { return slices.ContainsFunc(m.users, d.same) }

// has returns an error unless pages are mapped for the first size bytes. These pages stay mapped
// for work whose mark was added to the uses before the call of has.
func (m *Growing) has(size uint64) error {
	if reach := m.reach.Load(); size > reach {
		return fmt.Errorf("the first %d bytes of growing memory, of which %d are mapped: Shrink has unmapped the others, and nothing orders it after this: %w", size, reach, errs.ErrRange)
	}
	return nil
}

// at returns the address of a page.
func (m *Growing) at(i int) driver.Ptr { return m.ptr + driver.Ptr(uint64(i)*m.page) }

// grows begins a call of the program that changes growing memory. The result leave ends that call.
func (b *Buffer) grows(op string) (m *Growing, leave func(), err error) {
	if err := b.dev.Failed(); err != nil {
		return nil, nil, err
	}
	if err := b.Hold(); err != nil {
		return nil, nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	m = b.rare.growing
	m.growMu.Lock()
	return m, func() {
		m.growMu.Unlock()
		b.Release()
	}, nil
}

// growingMemory is the label of growing and shrinking in traces.
const growingMemory = "growing memory"

// Grow maps pages of growing memory until size bytes are mapped.
func (b *Buffer) Grow(size uint64) error {
	const op = "grow"
	m, leave, err := b.grows(op)
	if err != nil {
		return err
	}
	defer leave()
	if size > m.max {
		return fmt.Errorf("gpu: %s to %d bytes: %d are reserved, and %d are mapped: %w", op, size, m.max, m.Size(), errs.ErrRange)
	}
	n := int(roundUp(size, m.page) / m.page)
	have := m.takeBack(n)
	if n <= have {
		return nil
	}
	defer m.giveAway()
	d, began := m.dev, time.Now()
	more := uint64(n-have) * m.page
	err = d.collecting(driver.DeviceMem, more, func() error {
		return d.Engine.Do(func() error { return m.add(have, n, d.newPhysical) })
	})
	observe.Tell(d.Observer, observe.Grow, began, growingMemory, more, err)
	if err != nil {
		d.Engine.Check(err)
		return fmt.Errorf("gpu: %s to %d bytes of growing memory, of which %d are mapped, on %s: %w", op, size, m.Size(), d.Engine.Info.Name, err)
	}
	return nil
}

// takeBack keeps trims from unmapping any of the first n pages, also those that Shrink has removed.
// It returns how many pages are mapped. If at least n pages are mapped and the size is smaller than
// n pages, takeBack raises the size to n pages. If fewer than n pages are mapped, takeBack does not
// change the size, and no trim unmaps a page before giveAway is called.
func (m *Growing) takeBack(n int) (have int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range min(n, len(m.pages)) {
		m.pages[i].gone = 0
	}
	if size := uint64(n) * m.page; n <= len(m.pages) && size > m.Size() {
		m.reach.Store(max(m.reach.Load(), size))
		m.size.Store(size)
		m.tell()
	}
	return len(m.pages)
}

// giveAway undoes takeBack if the size has not grown: it removes the pages behind the size again.
func (m *Growing) giveAway() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size := m.Size(); size < uint64(len(m.pages))*m.page {
		m.cut(size, nil)
	}
}

// add maps pages until n pages are mapped, and raises the size. The parameter have is the number of
// pages mapped before. The function next returns the physical memory for a page, and has counted
// the new mapping in physical.maps. If something fails, add undoes everything. add runs on a bound
// thread.
func (m *Growing) add(have, n int, next func(size uint64) (*physical, error)) (err error) {
	v := m.dev.Faces.VirtualMem
	var fresh []page
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(have, fresh))
		}
	}()
	for i := have; i < n; i++ {
		p, err := next(m.page)
		if err != nil {
			return err
		}
		if err := v.MapPages(m.at(i), p.handle, m.page); err != nil {
			return errors.Join(err, p.unmap())
		}
		fresh = append(fresh, page{of: p})
	}
	if err := m.giveAccess(have, n); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pages = append(m.pages, fresh...)
	m.reach.Store(uint64(n) * m.page)
	m.size.Store(uint64(n) * m.page)
	m.tell()
	return nil
}

// giveAccess gives the devices access to new pages. The parameter have is the number of the first
// new page. The number of the last new page is n-1. Peers that are closed or lost get no access. A
// peer is not closed during the call of the driver.
func (m *Growing) giveAccess(have, n int) error {
	all := []driver.Device{m.dev.Engine.Native}
	for _, u := range m.users[1:] {
		if u.Failed() == nil && u.Engine.Stay() == nil {
			defer u.Engine.Leave()
			all = append(all, u.Engine.Native)
		}
	}
	return m.dev.Faces.VirtualMem.AccessPages(m.at(have), uint64(n-have)*m.page, all)
}

// remove unmaps consecutive pages. The parameter first is the number of the first page. remove runs
// on a bound thread.
func (m *Growing) remove(first int, pages []page) error {
	var all []error
	// Unmap the last page first, to leave no gap in front of pages that are still mapped.
	for i, p := range slices.Backward(pages) {
		all = append(all, m.dev.Faces.VirtualMem.UnmapPages(m.at(first+i), m.page), p.of.unmap())
	}
	return errors.Join(all...)
}

// newPhysical allocates a page, and counts one mapping of the page. newPhysical runs on a bound
// thread.
func (d *Device) newPhysical(size uint64) (*physical, error) {
	h, err := d.Faces.VirtualMem.NewPages(size)
	if err != nil {
		return nil, err
	}
	p := &physical{dev: d, handle: h, size: size}
	p.maps.Store(1)
	d.buffers.countPages(size)
	return p, nil
}

// unmap counts one mapping of the page less, and frees the page if no mapping is left. The caller
// has unmapped the page's address. unmap runs on a bound thread.
func (p *physical) unmap() error {
	if p.maps.Add(-1) > 0 {
		return nil
	}
	p.dev.buffers.uncountPages(p.size)
	return p.dev.Faces.VirtualMem.FreePages(p.handle)
}

// Share maps size bytes of other growing memory, from offset on, behind the end of this memory. If
// pages that Shrink has removed from this memory are still mapped, Share first waits until those
// pages are unmapped. If awaitUnmapped returns an error, Share returns it.
func (b *Buffer) Share(ctx context.Context, from *Buffer, offset, size uint64) error {
	const op = "share pages"
	if from == nil || from.Growing() == nil {
		return errs.Argument(op, "not of growing memory")
	}
	m, leave, err := b.grows(op)
	if err != nil {
		return err
	}
	defer leave()
	d, of := m.dev, from.rare.growing
	switch {
	case of.dev != d:
		return errs.Argument(op, "of growing memory of another device")
	case of.page != m.page:
		return errs.Argument(op, "pages of %d bytes, in memory with pages of %d", of.page, m.page)
	case offset%m.page != 0 || size%m.page != 0:
		return errs.Argument(op, "%d bytes at %d are no whole pages of %d bytes", size, offset, m.page)
	case size == 0:
		return nil
	}
	if err := m.room(op, size); err != nil {
		return err
	}
	if err := from.Hold(); err != nil {
		return fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer from.Release()
	if err := m.awaitUnmapped(ctx); err != nil {
		return fmt.Errorf("gpu: %s: work still uses pages that Shrink has removed behind %d bytes: %w", op, m.Size(), err)
	}
	if err := m.room(op, size); err != nil { // meanwhile a Grow may have raised the size
		return err
	}
	have := int(m.Size() / m.page)
	err = d.Engine.Do(func() error { return m.addShared(have, of, offset, size) })
	if err != nil {
		d.Engine.Check(err)
		return fmt.Errorf("gpu: %s: %d bytes at %d of %s, on %s: %w", op, size, offset, from.mention(), d.Engine.Info.Name, err)
	}
	return nil
}

// room returns an error if the reserved addresses have no room for size more bytes.
func (m *Growing) room(op string, size uint64) error {
	if size > m.max-m.Size() {
		return fmt.Errorf("gpu: %s: %d bytes behind %d of growing memory that reserves %d: %w", op, size, m.Size(), m.max, errs.ErrRange)
	}
	return nil
}

// addShared maps size bytes of another Growing, from offset on, behind the mapped pages. The
// parameter have is the number of mapped pages. addShared runs on a bound thread.
func (m *Growing) addShared(have int, of *Growing, offset, size uint64) error {
	of.mu.Lock()
	if all := of.Size(); offset > all || size > all-offset {
		of.mu.Unlock()
		return errs.ErrRange
	}
	var shared []*physical
	for _, p := range of.pages[offset/m.page : (offset+size)/m.page] {
		p.of.maps.Add(1)
		shared = append(shared, p.of)
	}
	of.mu.Unlock()
	err := m.add(have, have+len(shared), func(uint64) (p *physical, _ error) {
		p, shared = shared[0], shared[1:]
		return p, nil
	})
	for _, p := range shared { // after an error, the pages left in shared are not mapped
		err = errors.Join(err, p.unmap())
	}
	return err
}

// awaitUnmapped blocks until no pages that Shrink has removed are left. It returns an error if
// these pages will never be unmapped, or the memory is freed, or the context ends. The caller holds
// growMu. While awaitUnmapped waits, it unlocks growMu: the work that uses the pages may end only
// after another call of Grow or Shrink.
func (m *Growing) awaitUnmapped(ctx context.Context) error {
	for {
		m.mu.Lock()
		if done := uint64(len(m.pages))*m.page == m.Size(); done || m.stuck != nil {
			m.mu.Unlock()
			if done {
				return nil
			}
			return m.stuck
		}
		if m.unmapped == nil {
			m.unmapped = make(chan struct{})
		}
		unmapped := m.unmapped
		m.mu.Unlock()
		m.growMu.Unlock()
		var err error
		select {
		case <-unmapped:
		case <-m.ctx.Done():
			err = cmp.Or(m.dev.Failed(), errBufferClosed)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		m.growMu.Lock()
		if err != nil {
			return err
		}
	}
}

// Shrink removes the pages of growing memory behind the first size bytes, rounded up to pages. The
// pages are unmapped later. First each point must be reached or fail. Then the streams must pass
// all work that uses the memory and has been issued by then. A Grow before the unmapping takes the
// pages back.
func (b *Buffer) Shrink(size uint64, after []sema.Point) error {
	const op = "shrink"
	for _, p := range after {
		if p.Semaphore == nil {
			return errs.Argument(op, "a point without a semaphore")
		}
	}
	m, leave, err := b.grows(op)
	if err != nil {
		return err
	}
	defer leave()
	m.mu.Lock()
	defer m.mu.Unlock()
	if size < m.Size() && roundUp(size, m.page) < m.Size() {
		m.cut(roundUp(size, m.page), after)
	}
	return nil
}

// cut sets how many bytes the program may use, and starts a trim of the pages behind them. The
// caller holds growMu and mu.
func (m *Growing) cut(size uint64, after []sema.Point) {
	m.trims++
	t := &trim{of: m, number: m.trims, points: slices.Clone(after)}
	for i := size / m.page; i < uint64(len(m.pages)) && m.pages[i].gone == 0; i++ {
		m.pages[i].gone = t.number
	}
	m.size.Store(size)
	for _, earlier := range m.waits {
		t.points = append(t.points, earlier.points...)
	}
	t.points = slices.DeleteFunc(t.points, sema.Point.Over)
	m.waits[t.number] = t
	t.delay = m.dev.delays.begin(t.isReady)
	go t.run()
}

// A trim unmaps pages that Shrink has removed, or that a failed Grow has removed again (giveAway).
type trim struct {
	of     *Growing
	number uint64
	points []sema.Point // the trim first waits for these points: those of its Shrink and of earlier trims
	// Then the trim waits for the work in uses, which is nil until each point is reached or has
	// failed.
	uses  atomic.Pointer[engine.Frontier]
	delay *delay // lasts until run returns; FreeUnused waits for it
}

// run waits for the points and the uses of the trim. Then it makes the reclaimer unmap the pages
// that Grow has not taken back. run gives up if the memory is freed or left to the driver, or if
// the device of one of the uses is lost.
func (t *trim) run() {
	m := t.of
	defer m.dev.delays.end(t.delay)
	for _, p := range t.points {
		if !over(m.ctx, p) {
			return
		}
	}
	m.unmaps.Add(1) // before the uses are read, so that Unuse returns true for a mark among them
	defer m.unmaps.Add(-1)
	m.mu.Lock()
	delete(m.waits, t.number)
	keep := m.kept(t.number)
	if m.freed || keep == len(m.pages) {
		m.mu.Unlock()
		return
	}
	m.reach.Store(min(m.reach.Load(), uint64(keep)*m.page))
	m.mu.Unlock()
	uses := m.uses.InFlight()
	t.uses.Store(&uses)
	if !uses.Await(m.ctx) {
		return
	}
	if lost := uses.Lost(); lost != nil { // nobody will know when the lost device stops using the pages
		m.mu.Lock()
		m.stuck = lost
		m.tell()
		m.mu.Unlock()
		return
	}
	m.dev.Engine.Reclaim(func() { m.dev.Engine.NotTaken(m.unmap(t.number)) })
}

// isReady reports whether nothing uses the pages any more, so that trim.run is about to return.
func (t *trim) isReady() bool {
	if uses := t.uses.Load(); uses != nil {
		return uses.Passed()
	}
	return !slices.ContainsFunc(t.points, func(p sema.Point) bool { return !p.Over() }) && t.of.uses.InFlight().Passed()
}

// over blocks until a point is reached or has failed. It returns false if the context ends first.
func over(ctx context.Context, p sema.Point) bool {
	done := make(chan struct{})
	cancel := p.Semaphore.OnReached(p.Value, func(error) { close(done) })
	select {
	case <-done:
		return true
	case <-ctx.Done():
		cancel()
		return false
	}
}

// kept returns how many pages are left when a trim and all earlier trims have unmapped their pages.
// The caller holds mu.
func (m *Growing) kept(trim uint64) int {
	n := len(m.pages)
	for n > 0 && m.pages[n-1].gone != 0 && m.pages[n-1].gone <= trim {
		n--
	}
	return n
}

// unmap unmaps the pages of a trim and of all earlier trims, except pages that Grow has taken back.
// unmap runs on a bound thread. If the driver refuses, nobody tries again: a later Grow gets the
// driver's error.
func (m *Growing) unmap(trim uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := m.kept(trim)
	if m.freed || keep == len(m.pages) {
		return nil
	}
	began, gone := time.Now(), m.pages[keep:]
	err := m.remove(keep, gone)
	observe.Tell(m.dev.Observer, observe.Shrink, began, growingMemory, uint64(len(gone))*m.page, err)
	clear(gone)
	m.pages = m.pages[:keep]
	m.tell()
	return err
}

// tell wakes the goroutines that are blocked in awaitUnmapped, which then check again. The caller
// holds mu.
func (m *Growing) tell() {
	if m.unmapped != nil {
		close(m.unmapped)
		m.unmapped = nil
	}
}

// free unmaps all pages and gives the addresses back. free runs on a bound thread, when nothing
// uses the buffer any more.
func (m *Growing) free() error {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.freed {
		return nil
	}
	m.freed = true
	err := m.remove(0, m.pages)
	m.pages = nil
	m.size.Store(0)
	m.reach.Store(0)
	return errors.Join(err, m.dev.Faces.VirtualMem.FreeAddresses(m.ptr, m.max))
}
