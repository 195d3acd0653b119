package simdriver

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ driver.IPCMem    = (*device)(nil)
	_ driver.IPCEvents = (*device)(nil)
)

// A Machine is a machine on which several drivers are processes. Each process can open the exports
// of the others. Devices with the same index are the same device. A zero Machine is ready for use.
//
// A Machine is strict. A device is lost if it uses memory that the exporting process has freed, or
// that was closed. An event that its process has destroyed is an invalid handle. A process ends
// when it closes its device, or when [Driver.Kill] kills it. Memory that other processes have
// opened then stays, with its contents. The process's pending work never executes, and a wait for
// that work never ends.
type Machine struct {
	mu       sync.Mutex
	exported uint64
	memory   map[driver.MemHandle]*allocation
	events   map[driver.EventHandle]*event
	shared   map[string]*sharedMem // by the name in its file; removed when no process has the memory
	pools    map[string]*pool      // by the name in the file of ExportPool
	pooled   map[driver.MemHandle]pooledMem
}

// handle makes a new handle. The caller holds mu.
func (m *Machine) handle(kind string) (h [64]byte) {
	m.exported++
	copy(h[:], "simulated "+kind)
	binary.LittleEndian.PutUint64(h[56:], m.exported)
	return h
}

// freed records that an allocation was freed. Other processes may have opened it.
func (m *Machine) freed(a *allocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose(a)
	for h, b := range m.memory {
		if a == b {
			delete(m.memory, h)
			a.withdrawn.Store(true)
		}
	}
	for h, x := range m.pooled {
		if x.in == a {
			delete(m.pooled, h)
			a.withdrawn.Store(true)
		}
	}
}

// destroyed records that an event was destroyed. Other processes may share it.
func (m *Machine) destroyed(e *event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users = slices.DeleteFunc(e.users, func(o *event) bool { return o == e })
	for h, o := range m.events {
		if o == e {
			delete(m.events, h)
			e.gone = true
		}
	}
}

// leave removes the exports of a device, because its process has ended.
func (m *Machine) leave(v *device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, a := range m.memory {
		if a.dev == v {
			delete(m.memory, h)
		}
	}
	v.space.each(v, m.lose)
	for h, e := range m.events {
		if e.dev == v {
			delete(m.events, h)
		}
	}
	for name, p := range m.pools {
		if p.dev == v {
			p.left.Store(true)
			delete(m.pools, name)
		}
	}
	for h, x := range m.pooled {
		if x.pool.dev == v {
			delete(m.pooled, h)
		}
	}
}

// Kill ends the driver's process, as a signal would. Each device that is not lost already is lost
// with ErrKilled, and the goroutines of all streams end. The devices must still be closed.
func (d *Driver) Kill() {
	for _, v := range d.devices {
		d.machine.leave(v)
		v.lose(ErrKilled)
	}
	d.streams.all(func(_ uintptr, s *stream) {
		s.stopped.Store(true)
		s.poke()
	})
}

// ExportMem returns a handle of an allocation for other processes.
func (v *device) ExportMem(m driver.Mem) (driver.MemHandle, error) {
	var none driver.MemHandle
	if err := v.enter(codeExportMem, true); err != nil {
		return none, err
	}
	if !v.d.caps.IPCMem {
		return none, v.cannot(codeExportMem)
	}
	a := v.space.find(m.Ptr)
	switch {
	case a == nil || a.base != m.Ptr:
		return none, failf(codeExportMem, "memory at %#x: %w: no allocation of device %d begins there", uint64(m.Ptr), ErrInvalidValue, v.index)
	case a.kind != driver.DeviceMem || a.segment != nil || a.virtual != nil || a.origin != nil:
		return none, failf(codeExportMem, "memory at %#x: %w: it was not allocated as device memory", uint64(m.Ptr), ErrInvalidValue)
	}
	s := v.d.machine
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, b := range s.memory {
		if a == b {
			return h, nil
		}
	}
	h := driver.MemHandle(s.handle("memory"))
	if s.memory == nil {
		s.memory = map[driver.MemHandle]*allocation{}
	}
	s.memory[h] = a
	return h, nil
}

// OpenMem opens memory of another process. Opening memory of another device needs Caps.Peers and a
// link between the devices.
func (v *device) OpenMem(h driver.MemHandle) (driver.Mem, error) {
	if err := v.enter(codeOpenMem, true); err != nil {
		return driver.Mem{}, err
	}
	if !v.d.caps.IPCMem {
		return driver.Mem{}, v.cannot(codeOpenMem)
	}
	s := v.d.machine
	s.mu.Lock()
	origin := s.memory[h]
	s.mu.Unlock()
	switch {
	case origin == nil:
		return driver.Mem{}, failf(codeOpenMem, "memory of another process: %w: it was not exported, it was freed, or its process has ended", ErrInvalidHandle)
	case origin.dev.d == v.d:
		return driver.Mem{}, failf(codeOpenMem, "%d bytes at %#x: %w", origin.size, uint64(origin.base), driver.ErrSameProcess)
	case !v.reaches(origin.dev):
		return driver.Mem{}, failf(codeOpenMem, "memory of device %d on device %d: the hardware has no link: %w", origin.dev.index, v.index, driver.ErrUnsupported)
	}
	a, err := v.space.open(v, origin)
	if err != nil {
		return driver.Mem{}, fail(codeOpenMem, err)
	}
	return driver.Mem{Kind: driver.DeviceMem, Ptr: a.base, Size: a.size}, nil
}

// open returns the allocation that stands for memory of another process, and counts in
// allocation.opens how often the memory is opened.
func (s *deviceSpace) open(v *device, origin *allocation) (*allocation, error) {
	first := origin.touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.live {
		if a.origin == origin {
			a.opens++
			return a, nil
		}
	}
	a := &allocation{kind: driver.DeviceMem, size: origin.size, dev: v, origin: origin, opens: 1}
	a.data.Store(first)
	return a, s.place(a)
}

// CloseMem undoes one OpenMem. It does not wait. When every OpenMem is undone, uses of the memory
// lose the device.
func (v *device) CloseMem(m driver.Mem) error {
	err, ok := v.end(codeCloseMem)
	if !ok {
		return err
	}
	if !v.d.caps.IPCMem {
		return v.cannot(codeCloseMem)
	}
	if bad := v.space.shut(m.Ptr); bad != nil {
		return fail(codeCloseMem, bad)
	}
	return err
}

// shut undoes one call of open.
func (s *deviceSpace) shut(p driver.Ptr) error {
	s.mu.Lock()
	i := s.search(p)
	if i < 0 || s.live[i].base != p || s.live[i].origin == nil {
		s.mu.Unlock()
		return fmt.Errorf("memory at %#x: %w: no memory of another process is open there", uint64(p), ErrInvalidValue)
	}
	a := s.live[i]
	a.opens--
	last := a.opens == 0
	if last {
		s.take(i)
	}
	s.mu.Unlock()
	if last {
		s.bury(a)
	}
	return nil
}

// NewIPCEvent makes an event that can be exported.
func (v *device) NewIPCEvent() (driver.Event, error) {
	if err := v.enter(codeNewIPCEvent, true); err != nil {
		return 0, err
	}
	if !v.d.caps.IPCEvents {
		return 0, v.cannot(codeNewIPCEvent)
	}
	e := &event{dev: v, position: new(position)}
	e.users = []*event{e}
	return v.newEvent(codeNewIPCEvent, e)
}

// ExportEvent returns a handle of an event for other processes.
func (v *device) ExportEvent(h driver.Event) (driver.EventHandle, error) {
	var none driver.EventHandle
	if err := v.enter(codeExportEvent, true); err != nil {
		return none, err
	}
	if !v.d.caps.IPCEvents {
		return none, v.cannot(codeExportEvent)
	}
	e, err := v.event(codeExportEvent, h)
	if err != nil {
		return none, err
	}
	e.mu.Lock()
	shared := e.users != nil
	e.mu.Unlock()
	s := v.d.machine
	s.mu.Lock()
	defer s.mu.Unlock()
	if !shared || e.opened {
		return none, failf(codeExportEvent, "event %#x: %w: it was not made by NewIPCEvent", uint64(h), ErrInvalidHandle)
	}
	for name, o := range s.events {
		if o == e {
			return name, nil
		}
	}
	name := driver.EventHandle(s.handle("event"))
	if s.events == nil {
		s.events = map[driver.EventHandle]*event{}
	}
	s.events[name] = e
	return name, nil
}

// OpenEvent opens another process's event.
func (v *device) OpenEvent(name driver.EventHandle) (driver.Event, error) {
	if err := v.enter(codeOpenEvent, true); err != nil {
		return 0, err
	}
	if !v.d.caps.IPCEvents {
		return 0, v.cannot(codeOpenEvent)
	}
	s := v.d.machine
	s.mu.Lock()
	defer s.mu.Unlock()
	origin := s.events[name]
	switch {
	case origin == nil:
		return 0, failf(codeOpenEvent, "an event of another process: %w: it was not exported, it was destroyed, or its process has ended", ErrInvalidHandle)
	case origin.dev.d == v.d:
		return 0, fail(codeOpenEvent, driver.ErrSameProcess)
	}
	e := &event{dev: v, opened: true, position: origin.position}
	e.mu.Lock()
	e.users = append(e.users, e)
	e.mu.Unlock()
	return v.newEvent(codeOpenEvent, e)
}

// usable returns an error if the event was opened, and the process that made it has destroyed it.
// The caller holds mu.
func (e *event) usable(h driver.Event) error {
	if e.gone {
		return fmt.Errorf("event %#x of device %d: %w: the process that made it has destroyed it", uint64(h), e.dev.index, ErrInvalidHandle)
	}
	return nil
}
