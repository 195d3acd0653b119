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

// Device i has the 2⁴⁸ addresses from rangeOfDevices + i·2⁴⁸ on. They cannot be host addresses: on
// Go's platforms no address of a program has bit 62 set and bit 63 clear.
const (
	rangeOfDevices driver.Ptr = 1 << 62
	rangeBits                 = 48

	alignment = 512      // alignment of allocations, in bytes
	guard     = 64 << 10 // minimum gap between allocations of a device, in bytes
	graves    = 1024     // maximum number of freed allocations that are kept for error messages
	graveyard = 16 << 20 // maximum number of bytes of freed host memory that are kept from the garbage collector
)

// An allocation is memory that devices can reach.
type allocation struct {
	kind       driver.MemKind
	base       driver.Ptr
	size       uint64
	dev        *device
	host       unsafe.Pointer // host address; nil if there is none
	registered bool           // the memory is the program's, and was registered
	readOnly   bool           // devices must not write the memory
	segment    *segment       // the segment, if the memory is a pool's; else nil
	origin     *allocation    // the exported allocation, if this one was opened or imported; else nil
	opens      int            // calls that have opened this memory, minus calls that have closed it; protected by the space's mu
	withdrawn  atomic.Bool    // the memory was exported, and was freed before its process ended
	virtual    *reservation   // the reservation, if the allocation is reserved addresses; else nil
	shared     *sharedMem     // the export of this memory by ExportShareable, or nil; protected by Machine.mu

	mu   sync.Mutex
	data atomic.Pointer[byte] // pointer to the first byte; nil before the memory is first touched, and for freed device memory
}

// bytes returns the memory as a slice.
func (a *allocation) bytes() []byte {
	p := a.data.Load()
	if p == nil {
		p = a.touch()
	}
	return unsafe.Slice(p, a.size)
}

// touch allocates the bytes of an allocation at first use. The allocation may have been freed
// meanwhile, as may happen on a lost device. The bytes are new in that case too, and no other
// allocation has them.
func (a *allocation) touch() *byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.data.Load()
	if p == nil {
		words := make([]uint64, (a.size+7)/8) // words, so that the memory is aligned
		p = (*byte)(unsafe.Pointer(unsafe.SliceData(words)))
		a.data.Store(p)
	}
	return p
}

// A space holds allocations and their addresses.
type space struct {
	mu    sync.RWMutex
	live  []*allocation // sorted by base
	freed []*allocation // freed allocations that are kept for messages, oldest first
	used  uint64        // bytes of live allocations and pages
}

// search returns the index in s.live of the last allocation whose base is at most p, or -1.
func (s *space) search(p driver.Ptr) int {
	i, ok := slices.BinarySearchFunc(s.live, p, func(a *allocation, p driver.Ptr) int { return cmp.Compare(a.base, p) })
	if ok {
		return i
	}
	return i - 1
}

// find returns the allocation that contains p, or nil.
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

// explain sets the fields of e that describe the freed allocation at e.Addr, or else the nearest
// live allocation.
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
			i++ // the next one is nearer
		}
	}
	if i >= 0 {
		e.Base, e.Length = s.live[i].base, s.live[i].size
		if g := s.live[i].segment; g != nil {
			g.explain(e)
		}
	}
}

// remove removes the allocation with base p and returns it. The allocation must have the given
// device and kind, and its field registered must equal the parameter. Segments of pools,
// reservations, and memory that OpenMem or OpenPoolMem has opened are refused.
func (s *space) remove(p driver.Ptr, v *device, kind driver.MemKind, registered bool) (*allocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.search(p)
	if i < 0 || s.live[i].base != p || s.live[i].registered != registered || s.live[i].segment != nil || s.live[i].virtual != nil || s.live[i].origin != nil && kind != driver.ShareableMem {
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

// take removes the allocation at index i of s.live, and adds it to s.freed unless it was
// registered. The caller holds mu.
func (s *space) take(i int) {
	a := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	if !a.registered {
		s.used -= a.counts()
		s.freed = append(s.freed, a)
	}
}

// counts returns the bytes of memory that the allocation takes. Registered and opened memory take
// none. A reservation takes none either: space.claim counts pages.
func (a *allocation) counts() uint64 {
	if a.registered || a.origin != nil || a.virtual != nil {
		return 0
	}
	return a.size
}

// claim counts memory for pages as used. It returns an error if more than limit bytes would then be
// in use.
func (s *space) claim(v *device, size, limit uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > limit-min(s.used, limit) {
		return fmt.Errorf("%d bytes, while %d of device %d's %d are allocated: %w", size, s.used, v.index, limit, driver.ErrOutOfMemory)
	}
	s.used += size
	return nil
}

// give undoes claim for size bytes.
func (s *space) give(size uint64) {
	s.mu.Lock()
	s.used -= size
	s.mu.Unlock()
}

// withdraw removes a reservation or a pool's segment. It returns false if the allocation was
// removed before.
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

// whyNot makes the error of freeing memory at p, where no allocation begins that the call can free.
// i is the result of s.search. The caller holds mu.
func (s *space) whyNot(p driver.Ptr, i int) error {
	for _, a := range slices.Backward(s.freed) {
		if a.base == p {
			return fmt.Errorf("memory at %#x: %w: it was freed already", uint64(p), ErrInvalidValue)
		}
	}
	if i >= 0 && uint64(p-s.live[i].base) < s.live[i].size {
		a := s.live[i]
		if a.virtual != nil {
			return fmt.Errorf("memory at %#x: %w: its addresses are reserved: call UnmapPages and FreeAddresses", uint64(p), ErrInvalidValue)
		}
		if a.segment != nil {
			return fmt.Errorf("memory at %#x: %w: it is in a pool: free it with FreeAsync", uint64(p), ErrInvalidValue)
		}
		if a.origin != nil && a.kind != driver.ShareableMem {
			return fmt.Errorf("memory at %#x: %w: it belongs to another process: close it with CloseMem", uint64(p), ErrInvalidValue)
		}
		if a.registered {
			return fmt.Errorf("memory at %#x: %w: it is registered, not allocated: call Unregister", uint64(p), ErrInvalidValue)
		}
		return fmt.Errorf("memory at %#x: %w: the allocation begins at %#x", uint64(p), ErrInvalidValue, uint64(a.base))
	}
	return fmt.Errorf("memory at %#x: %w: nothing was allocated there", uint64(p), ErrInvalidValue)
}

// each calls f for each of the device's allocations, except memory of pools.
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
		if a.dev == v {
			s.used -= a.counts()
		}
		return a.dev == v
	})
}

// A deviceSpace is the memory of a device.
type deviceSpace struct {
	space
	next driver.Ptr // base of the next allocation; addresses are never reused
	end  driver.Ptr
}

// init sets the address range of the device with an index.
func (s *deviceSpace) init(index int) {
	s.next = rangeOfDevices + driver.Ptr(index)<<rangeBits + guard
	s.end = rangeOfDevices + driver.Ptr(index+1)<<rangeBits
}

// alloc allocates memory of a kind for v. It returns an error if more than limit bytes would then
// be in use. g is the segment that the memory is for, or nil.
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

// place gives an allocation its addresses. The caller holds mu.
func (s *deviceSpace) place(a *allocation) error {
	if a.size > uint64(s.end-s.next)-2*guard {
		return fmt.Errorf("device %d has used up its addresses: %w", a.dev.index, driver.ErrOutOfMemory)
	}
	a.base = s.next
	s.next += driver.Ptr((a.size+guard+alignment-1)/alignment) * alignment
	s.live = append(s.live, a) // live stays sorted, because a has the highest base
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

// bury drops the bytes of a removed allocation, and the oldest allocations in s.freed if it has too
// many.
func (s *deviceSpace) bury(a *allocation) {
	if a.virtual == nil { // the host addresses of a reservation stay valid
		a.data.Store(nil) // a goroutine that still uses the memory keeps it alive
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.freed) > graves {
		s.freed = append(s.freed[:0], s.freed[len(s.freed)-graves/2:]...)
	}
}

// A hostSpace is the host memory that devices can reach.
type hostSpace struct {
	space
	limit uint64
	kept  uint64 // total size of the allocations in space.freed
}

// alloc allocates memory of a kind for v. g is the segment that the memory is for, or nil.
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

// bury keeps the memory of removed allocations, and drops the oldest when they exceed the limits
// graveyard and graves. While memory is kept, the garbage collector cannot use its address for
// something else.
func (s *hostSpace) bury(a *allocation) {
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

// register adds memory of the program.
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

// knows reports whether p is in a live allocation, or in a freed allocation that is still kept.
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
