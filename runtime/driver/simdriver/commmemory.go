package simdriver

import (
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
)

// pageSize is the alignment of windows, counted from the start of an allocation.
const pageSize = 4096

// A commMemory is memory that is registered with a communicator.
type commMemory struct {
	rank      *rank
	id        driver.CommMemory
	base      driver.Ptr
	size      uint64
	window    *making // the call of NewWindow; nil if RegisterComm has registered the memory
	symmetric bool
	uses      int // number of unfinished operations that use the memory
}

// has reports whether all of an area is in the registered memory.
func (cm *commMemory) has(a *area) bool {
	offset := uint64(a.ptr - cm.base)
	return a.ptr >= cm.base && offset < cm.size && a.size <= cm.size-offset
}

// registered returns a registration that contains all of an area, or nil if there is none. It
// prefers a window.
func (r *rank) registered(a *area) *commMemory {
	var found *commMemory
	for _, cm := range r.memory {
		if cm.has(a) && (found == nil || cm.window != nil) {
			found = cm
		}
	}
	return found
}

// registering finds a rank that is ready, and checks that the memory can be registered with it.
func (v *device) registering(c code, h driver.Comm, p driver.Ptr, size uint64) (*rank, error) {
	r, err := v.rank(c, h)
	if err != nil {
		return nil, err
	}
	if err := r.usable(c); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%v: %d bytes at %#x", r, size, uint64(p))
	a := v.space.find(p)
	switch {
	case size == 0:
		return nil, failf(c, "%s: %w", what, ErrInvalidValue)
	case a == nil:
		return nil, failf(c, "%s: %w: device %d has no memory there", what, ErrInvalidValue, v.index)
	case a.kind != driver.CommMem:
		return nil, failf(c, "%s: %w: the memory was not made with CommMem", what, ErrInvalidValue)
	case size > a.size-uint64(p-a.base):
		return nil, failf(c, "%s: %w: the allocation of %d bytes at %#x ends earlier", what, ErrInvalidValue, a.size, uint64(a.base))
	}
	return r, nil
}

// register adds memory to the rank's registrations.
func (r *rank) register(c code, cm *commMemory) (driver.CommMemory, error) {
	cm.rank = r
	cm.id = driver.CommMemory(r.dev.d.comms.memory.add(cm))
	if cm.id == 0 {
		return 0, fail(c, errTooMany)
	}
	r.memory = append(r.memory, cm)
	return cm.id, nil
}

// RegisterComm registers memory with this rank.
func (v *device) RegisterComm(h driver.Comm, p driver.Ptr, size uint64) (driver.CommMemory, error) {
	if err := v.communicate(codeRegisterComm, true); err != nil {
		return 0, err
	}
	v.d.comms.mu.Lock()
	defer v.d.comms.mu.Unlock()
	r, err := v.registering(codeRegisterComm, h, p, size)
	if err != nil {
		return 0, err
	}
	return r.register(codeRegisterComm, &commMemory{base: p, size: size})
}

// NewWindow registers memory with all ranks. It returns when all ranks have called NewWindow.
func (v *device) NewWindow(h driver.Comm, p driver.Ptr, size uint64, symmetric bool) (driver.CommMemory, error) {
	if err := v.communicate(codeNewWindow, true); err != nil {
		return 0, err
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	r, err := v.registering(codeNewWindow, h, p, size)
	if err != nil {
		return 0, err
	}
	if a := v.space.find(p); a != nil && (p-a.base)%pageSize != 0 {
		return 0, failf(codeNewWindow, "%v: memory at %#x: %w: a window begins at a multiple of %d bytes of its allocation",
			r, uint64(p), ErrInvalidValue, pageSize)
	}
	g, err := r.meet(codeNewWindow, &making{code: codeNewWindow, size: size, symmetric: symmetric})
	if err != nil {
		return 0, err
	}
	return r.register(codeNewWindow, &commMemory{base: p, size: size, window: g, symmetric: symmetric})
}

// ReleaseCommMemory undoes RegisterComm or NewWindow. It does not wait.
func (v *device) ReleaseCommMemory(h driver.Comm, mh driver.CommMemory) error {
	err, ok := v.end(codeReleaseCommMemory)
	if !ok {
		return err
	}
	if !v.d.caps.Comms {
		return v.cannot(codeReleaseCommMemory)
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	r, bad := v.rank(codeReleaseCommMemory, h)
	if bad != nil {
		return bad
	}
	cm := cs.memory.get(uintptr(mh))
	switch {
	case r.out != nil && err == nil:
		return failf(codeReleaseCommMemory, "%v: %w", r, r.out)
	case r.suspended && err == nil:
		return failf(codeReleaseCommMemory, "%v: %w: call ResumeComm first", r, ErrSuspended)
	case cm == nil:
		return failf(codeReleaseCommMemory, "registration %#x: %w: no such registration, or it was released", uint64(mh), ErrInvalidHandle)
	case cm.rank != r:
		return failf(codeReleaseCommMemory, "registration %#x: %w: it belongs to %v, not %v", uint64(mh), ErrInvalidHandle, cm.rank, r)
	case cm.uses > 0 && err == nil:
		return failf(codeReleaseCommMemory, "%v: registration %#x: %d operations in flight use it: %w", r, uint64(mh), cm.uses, ErrBusy)
	}
	cs.memory.remove(uintptr(mh))
	r.memory = slices.DeleteFunc(r.memory, func(o *commMemory) bool { return o == cm })
	return err
}

// unregistered returns an error if part of an allocation is registered.
func (v *device) unregistered(m driver.Mem) (err error) {
	a := v.space.find(m.Ptr)
	if a == nil {
		return nil
	}
	cs := &v.d.comms
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.memory.all(func(_ uintptr, cm *commMemory) {
		if cm.base >= a.base && uint64(cm.base-a.base) < a.size {
			err = failf(codeFree, "%d bytes at %#x: %w: %v has registered %d of them; release the registration first",
				a.size, uint64(a.base), ErrBusy, cm.rank, cm.size)
		}
	})
	return err
}
