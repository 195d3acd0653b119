package simdriver

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Device i's addresses are the 2⁴⁸ from rangeOfDevices + i·2⁴⁸ on. No host address is there: on none of Go's platforms
// has a user's address bit 62 set and bit 63 clear.
const (
	rangeOfDevices driver.Ptr = 1 << 62
	rangeBits                 = 48

	alignment = 512      // of what Alloc returns
	guard     = 64 << 10 // bytes at least that belong to nobody, between allocations
	graves    = 1024     // how many freed allocations are remembered, to say so
	graveyard = 16 << 20 // how much freed host memory is kept, so that it is not allocated anew
)

// An allocation is memory that devices can reach.
type allocation struct {
	kind       driver.MemKind
	base       driver.Ptr
	size       uint64
	dev        *device
	host       unsafe.Pointer // nil: the host has no address for it
	registered bool           // it is the program's
	readOnly   bool           // and not for devices to write to
	segment    *segment       // not nil: it is a pool's, to divide
	origin     *allocation    // not nil: it is another process's memory, opened
	opens      int            // how often; under the space's mu
	withdrawn  atomic.Bool    // it was exported, and freed before its process ended
	shared     *sharedMem     // not nil: others may have it by a descriptor; under the Machine's mu

	mu   sync.Mutex
	data atomic.Pointer[byte] // the first byte; nil until it is first touched
}

// bytes returns the memory.
func (a *allocation) bytes() []byte {
	p := a.data.Load()
	if p == nil {
		p = a.touch()
	}
	return unsafe.Slice(p, a.size)
}

// touch makes the memory. It may be freed meanwhile, on a device that is lost: then it is the caller's alone.
func (a *allocation) touch() *byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.data.Load()
	if p == nil {
		words := make([]uint64, (a.size+7)/8) // words, for their alignment
		p = (*byte)(unsafe.Pointer(unsafe.SliceData(words)))
		a.data.Store(p)
	}
	return p
}

// A space is a range of addresses with allocations in it.
type space struct {
	mu    sync.RWMutex
	live  []*allocation // by base
	freed []*allocation // oldest first
	used  uint64        // bytes
}

// search returns the index in live of the last allocation that begins at or before p, or -1.
func (s *space) search(p driver.Ptr) int {
	i, ok := slices.BinarySearchFunc(s.live, p, func(a *allocation, p driver.Ptr) int { return cmp.Compare(a.base, p) })
	if ok {
		return i
	}
	return i - 1
}

// find returns the allocation that p is in, or nil.
func (s *space) find(p driver.Ptr) *allocation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i := s.search(p); i >= 0 && uint64(p-s.live[i].base) < s.live[i].size {
		return s.live[i]
	}
	return nil
}

// insert adds an allocation. The caller holds mu.
func (s *space) insert(a *allocation) {
	s.live = slices.Insert(s.live, s.search(a.base)+1, a)
}

// explain says in e what the access has missed.
func (s *space) explain(e *AccessError) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, a := range slices.Backward(s.freed) {
		if e.Addr >= a.base && uint64(e.Addr-a.base) < a.size {
			e.Base, e.Length, e.Freed, e.Opened = a.base, a.size, true, a.origin != nil
			return
		}
	}
	i := s.search(e.Addr)
	if i+1 < len(s.live) {
		next := s.live[i+1].base - e.Addr
		if i < 0 || e.Addr-s.live[i].base >= driver.Ptr(s.live[i].size)+next {
			i++ // it is nearer to that one
		}
	}
	if i >= 0 {
		e.Base, e.Length = s.live[i].base, s.live[i].size
		if g := s.live[i].segment; g != nil {
			g.explain(e)
		}
	}
}

// remove takes away the allocation that begins at p, if it is the device's and of that kind. It says why not.
func (s *space) remove(p driver.Ptr, v *device, kind driver.MemKind, registered bool) (*allocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.search(p)
	if i < 0 || s.live[i].base != p || s.live[i].registered != registered || s.live[i].segment != nil || s.live[i].origin != nil && kind != driver.ShareableMem {
		return nil, s.whyNot(p, i)
	}
	a := s.live[i]
	if a.dev != v {
		return nil, fmt.Errorf("memory at %#x: %w: it belongs to device %d, not %d", uint64(p), ErrInvalidValue, a.dev.index, v.index)
	}
	if a.kind != kind {
		return nil, fmt.Errorf("memory at %#x: %w: it is of kind %d, not %d", uint64(p), ErrInvalidValue, a.kind, kind)
	}
	s.take(i)
	return a, nil
}

// take takes the allocation at an index of live away. The caller holds mu.
func (s *space) take(i int) {
	a := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	if !a.registered {
		if a.origin == nil {
			s.used -= a.size
		}
		s.freed = append(s.freed, a)
	}
}

// withdraw takes a segment of a pool away, unless it is gone already.
func (s *space) withdraw(a *allocation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.search(a.base)
	if i < 0 || s.live[i] != a {
		return false
	}
	s.take(i)
	return true
}

// whyNot says why there is nothing to free at p; i is what search returned. The caller holds mu.
func (s *space) whyNot(p driver.Ptr, i int) error {
	for _, a := range slices.Backward(s.freed) {
		if a.base == p {
			return fmt.Errorf("memory at %#x: %w: it was freed before", uint64(p), ErrInvalidValue)
		}
	}
	if i >= 0 && uint64(p-s.live[i].base) < s.live[i].size {
		a := s.live[i]
		if a.segment != nil {
			return fmt.Errorf("memory at %#x: %w: it is a pool's: free it with FreeAsync", uint64(p), ErrInvalidValue)
		}
		if a.origin != nil && a.kind != driver.ShareableMem {
			return fmt.Errorf("memory at %#x: %w: it is another process's: close it with CloseMem", uint64(p), ErrInvalidValue)
		}
		if a.registered {
			return fmt.Errorf("memory at %#x: %w: it is registered, not allocated: unregister it", uint64(p), ErrInvalidValue)
		}
		return fmt.Errorf("memory at %#x: %w: the allocation begins at %#x", uint64(p), ErrInvalidValue, uint64(a.base))
	}
	return fmt.Errorf("memory at %#x: %w: nothing was allocated there", uint64(p), ErrInvalidValue)
}

// each calls f for each of the device's allocations, without those of pools.
func (s *space) each(v *device, f func(*allocation)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, a := range s.live {
		if a.dev == v && a.segment == nil {
			f(a)
		}
	}
}

// clear frees all of the device's allocations.
func (s *space) clear(v *device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(a *allocation) bool {
		if a.dev == v && !a.registered && a.origin == nil {
			s.used -= a.size
		}
		return a.dev == v
	})
}

// A deviceSpace is a device's own memory.
type deviceSpace struct {
	space
	next driver.Ptr // not given out yet; addresses are never used again
	end  driver.Ptr
}

// init makes it that of the device with an index.
func (s *deviceSpace) init(index int) {
	s.next = rangeOfDevices + driver.Ptr(index)<<rangeBits + guard
	s.end = rangeOfDevices + driver.Ptr(index+1)<<rangeBits
}

// alloc allocates memory of a kind for v, at most limit bytes in all; g is nil or what it is for.
func (s *deviceSpace) alloc(v *device, kind driver.MemKind, size, limit uint64, g *segment) (*allocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > limit-min(s.used, limit) {
		return nil, fmt.Errorf("%d bytes, while %d of device %d's %d are allocated: %w", size, s.used, v.index, limit, driver.ErrOutOfMemory)
	}
	a := &allocation{kind: kind, size: size, dev: v, segment: g}
	if err := s.place(a); err != nil {
		return nil, err
	}
	s.used += size
	return a, nil
}

// place gives an allocation addresses. The caller holds mu.
func (s *deviceSpace) place(a *allocation) error {
	if a.size > uint64(s.end-s.next)-2*guard {
		return fmt.Errorf("device %d has used up its addresses: %w", a.dev.index, driver.ErrOutOfMemory)
	}
	a.base = s.next
	s.next += driver.Ptr((a.size+guard+alignment-1)/alignment) * alignment
	s.live = append(s.live, a) // its base is the highest
	return nil
}

// release frees the allocation that begins at p.
func (s *deviceSpace) release(p driver.Ptr, v *device, kind driver.MemKind) error {
	a, err := s.remove(p, v, kind, false)
	if err == nil {
		v.d.machine.freed(a)
		s.bury(a)
	}
	return err
}

// bury lets go of what has been taken away.
func (s *deviceSpace) bury(a *allocation) {
	a.data.Store(nil) // what the garbage collector may have; who is at it has the slice
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.freed) > graves {
		s.freed = append(s.freed[:0], s.freed[len(s.freed)-graves/2:]...)
	}
}

// A hostSpace is the host's memory, as far as devices can reach it.
type hostSpace struct {
	space
	limit uint64
	kept  uint64 // bytes in freed
}

// alloc allocates memory of a kind for v; g is nil or what it is for.
func (s *hostSpace) alloc(v *device, kind driver.MemKind, size uint64, g *segment) (*allocation, error) {
	s.mu.Lock()
	if size > s.limit-min(s.used, s.limit) {
		used := s.used
		s.mu.Unlock()
		return nil, fmt.Errorf("%d bytes of host memory, while %d of %d are allocated: %w", size, used, s.limit, driver.ErrOutOfMemory)
	}
	s.used += size
	s.mu.Unlock()

	words := make([]uint64, (size+alignment)/8+1)
	p := unsafe.Pointer(unsafe.SliceData(words))
	p = unsafe.Add(p, -uintptr(p)%alignment)
	a := &allocation{kind: kind, base: driver.Ptr(uintptr(p)), size: size, dev: v, host: p, segment: g}
	a.data.Store((*byte)(p))
	s.mu.Lock()
	s.insert(a)
	s.mu.Unlock()
	return a, nil
}

// release frees the allocation that begins at p.
func (s *hostSpace) release(p driver.Ptr, v *device, kind driver.MemKind) error {
	a, err := s.remove(p, v, kind, false)
	if err == nil {
		s.bury(a)
	}
	return err
}

// bury lets go of what has been taken away, by and by.
func (s *hostSpace) bury(a *allocation) {
	// What is remembered as freed is kept: once the garbage collector has it, the address may be anything's.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept += a.size
	n := 0
	for n < len(s.freed) && (s.kept > graveyard || len(s.freed)-n > graves) {
		s.kept -= s.freed[n].size
		n++
	}
	s.freed = slices.Delete(s.freed, 0, n)
}

// register adds memory of the program's own.
func (s *hostSpace) register(v *device, p unsafe.Pointer, size uint64, readOnly bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &allocation{kind: driver.HostMem, base: driver.Ptr(uintptr(p)), size: size, dev: v, host: p, registered: true, readOnly: readOnly}
	i := s.search(a.base)
	for _, near := range s.live[max(i, 0):min(i+2, len(s.live))] {
		if a.base < near.base+driver.Ptr(near.size) && near.base < a.base+driver.Ptr(size) {
			return fmt.Errorf("%d bytes at %#x: %w: %d bytes at %#x are pinned already", size, uint64(a.base), ErrInvalidValue, near.size, uint64(near.base))
		}
	}
	a.data.Store((*byte)(p))
	s.insert(a)
	return nil
}

// knows reports whether p is in an allocation, or in one that was freed and not used again.
func (s *hostSpace) knows(p driver.Ptr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i := s.search(p); i >= 0 && uint64(p-s.live[i].base) < s.live[i].size {
		return true
	}
	for _, a := range s.freed {
		if p >= a.base && uint64(p-a.base) < a.size {
			return true
		}
	}
	return false
}
