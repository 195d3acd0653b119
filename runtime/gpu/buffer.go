package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A MemKind is a kind of memory.
type MemKind = driver.MemKind

// Kinds of memory.
const (
	DeviceMem  = driver.DeviceMem  // the device's own memory
	HostMem    = driver.HostMem    // pinned host memory, accessible to all devices of the driver
	ManagedMem = driver.ManagedMem // memory with one address for the host and devices
	CommMem    = driver.CommMem    // DeviceMem fit for [Channel.Register]; needs communicators

	// WriteCombinedMem is like HostMem, but for data that the host writes sequentially and
	// completely and hardly ever reads. Devices may read it faster. The host reads it very slowly.
	WriteCombinedMem = driver.WriteCombinedMem

	// ShareableMem is the device's own memory that processes share by a file: see
	// [Buffer.ExportFile]. Only this device's kernels, fills and values may use it, even if other
	// devices have access to the device's memory. Copies from and to any device work. It is
	// allocated in whole pages, mostly of 2 MiB. CUDA on Linux and the simulated GPU support it
	// ([driver.Caps].MemSharing).
	ShareableMem = driver.ShareableMem
)

// Alignment is the alignment of all allocated memory that is not empty. Addresses are multiples of
// it.
const Alignment = 256

// deviceMemory is the memory state of a device.
type deviceMemory struct {
	buffers  bufferStats
	pools    pools
	current  atomic.Pointer[Pool]
	sweeping atomic.Bool // another sweep of closed pools is scheduled
	frees    parkedFrees
}

// A Buffer is memory. Its memory is freed when the buffer has been closed and no submission uses it
// any more. If a queue allocated it, it is freed when a queue has deallocated it.
type Buffer struct {
	dev  *Device
	mem  driver.Mem
	refs atomic.Int32 // one for each submission, besides the caller's; -1 when all are gone
	// The state of memory from a pool. mem has its address unless state is pending or failed. It is
	// pending for a binding.
	state  atomic.Int32
	closed atomic.Bool
	from   origin
	pool   *Pool       // the pool that the memory is from
	home   *Queue      // the queue that allocated it from the pool
	uses   engine.Uses // uses of memory from a pool
	rare   *rare       // fields that few buffers need, kept apart because many buffers are made

	before, after *Buffer // in the device's list
}

// rare has the fields of imported memory and of placeholders for memory.
type rare struct {
	slot    *slotInfo   // the binding of a command buffer that the buffer stands for
	scratch *slotInfo   // the scratch memory of a command buffer that the buffer stands for
	host    []byte      // keeps the memory alive
	exe     *Executable // the executable whose variable the buffer is
	freed   func()      // called when the memory is no longer used
	awaited atomic.Bool // closed; the device is polled until the memory is unused
	read    bool        // it is read-only

	opened driver.Mem    // the other process's memory that the buffer is a part of
	shared *ImportedPool // the pool that opened is from
}

// An origin says where memory comes from, and so how it is released.
type origin uint8

const (
	borrowed   origin = iota // owned by other code
	allocated                // the runtime frees it
	registered               // the runtime unregisters it
	pooled                   // it goes back to its pool
	opened                   // another process's memory, which the runtime closes
)

// Has reports whether the device supports a kind of memory. If not, Alloc returns
// [driver.ErrUnsupported]. For CommMem it reports whether the driver supports communicators. Only
// Alloc finds out whether their library is installed.
func (d *Device) Has(kind MemKind) bool {
	switch kind {
	case DeviceMem, HostMem, WriteCombinedMem:
		return d.native.Native != nil
	case ManagedMem:
		return d.native.Caps.Managed
	case CommMem:
		return d.native.Caps.Comms
	case ShareableMem:
		return d.faces.memSharing != nil
	}
	return false
}

// Alloc allocates a buffer of a kind of memory. It blocks while the driver does. A size of zero is
// legal. If the device has no memory left, Alloc first frees closed buffers that are no longer
// used, which may take the driver up to a second, and tries again. If that fails, the error is
// [driver.ErrOutOfMemory].
func (d *Device) Alloc(kind MemKind, size uint64) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if kind < DeviceMem || kind > ShareableMem {
		return nil, argument("allocate", "there is no kind of memory %d", int(kind))
	}
	b := newBuffer(d, size)
	if size == 0 {
		b.mem.Kind = kind
		d.buffers.add(b)
		return b, nil
	}
	began := time.Now()
	err := canBe(size)
	if err == nil {
		err = d.collecting(kind, size, func() error { return d.native.Do(func() error { return b.allocate(kind) }) })
	}
	d.happened(observe.Alloc, began, "", size, err)
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: allocate %d bytes on %s: %w", size, d.native.Info.Name, err)
	}
	return b, nil
}

// allocate allocates the memory from the driver. It runs on a bound thread.
func (b *Buffer) allocate(kind MemKind) error {
	m, err := b.dev.native.Native.Alloc(kind, b.mem.Size)
	if err == nil {
		b.mem, b.from = m, allocated
		b.dev.buffers.add(b)
	}
	return err
}

// canBe returns an error if no device can have that much memory. Drivers round sizes up, and the
// size must not overflow then.
func canBe(size uint64) error {
	if size > math.MaxInt64 {
		return fmt.Errorf("%d bytes: %w", size, driver.ErrOutOfMemory)
	}
	return nil
}

func newBuffer(d *Device, size uint64) *Buffer {
	b := &Buffer{dev: d}
	b.mem.Size = size
	return b
}

// Import makes a buffer from device memory that other code owns. The owner must keep the memory as
// long as the buffer is used. When it is no longer used, freed is called, unless it is nil, on a
// goroutine of its own.
func (d *Device) Import(ptr driver.Ptr, size uint64, freed func()) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if size > 0 && (ptr == 0 || uint64(ptr)+size-1 < uint64(ptr)) {
		return nil, argument("import", "there are no %d bytes at %#x", size, uint64(ptr))
	}
	b := newBuffer(d, size)
	b.mem.Ptr, b.rare = ptr, &rare{freed: freed}
	d.buffers.add(b)
	return b, nil
}

// ImportHost makes a buffer from the program's own memory and pins it for all devices of the
// driver, so that transfers need no extra copy. It blocks while the driver pins the memory. The
// memory must stay allocated, at the same address, until the buffer is no longer used. Then freed
// is called, unless it is nil, on a goroutine of its own. The same memory may be imported again
// when its buffer has been closed and the work that uses it is done. The driver may take up to a
// second to unpin it first. If the device cannot pin memory, the error is [driver.ErrUnsupported].
func (d *Device) ImportHost(mem []byte, freed func()) (*Buffer, error) {
	return d.importHost(mem, freed, false)
}

// ImportHostReadOnly is [Device.ImportHost] for memory that is only read. Operations that would
// write to it are refused. Kernels are not checked, and must not write to it. Most NVIDIA devices
// accept memory that the program itself cannot write, such as a file that is mapped for reading.
func (d *Device) ImportHostReadOnly(mem []byte, freed func()) (*Buffer, error) {
	return d.importHost(mem, freed, true)
}

func (d *Device) importHost(mem []byte, freed func(), read bool) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	b := newBuffer(d, uint64(len(mem)))
	b.mem.Kind, b.rare = driver.HostMem, &rare{host: mem, freed: freed, read: read}
	if len(mem) == 0 {
		d.buffers.add(b)
		return b, nil
	}
	if !d.native.Caps.HostRegister {
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %w", len(mem), d.native.Info.Name, driver.ErrUnsupported)
	}
	b.mem.Host = unsafe.Pointer(unsafe.SliceData(mem))
	pin := func() error {
		return d.native.Do(func() (err error) {
			b.mem.Ptr, err = d.register(b.mem.Host, b.mem.Size, read)
			if err == nil {
				b.from = registered
				d.buffers.add(b)
			}
			return err
		})
	}
	_, closed := d.buffers.pinned(b)
	err := pin()
	if err != nil && closed && !errors.Is(err, driver.ErrLost) {
		d.unpin(b)
		err = pin()
	}
	if err != nil {
		d.native.Check(err)
		var why string
		switch is, closed := d.buffers.pinned(b); {
		case closed:
			why = "a closed buffer has this memory, and work still uses it: wait until the function freed of that import is called: "
		case is:
			why = "a buffer has this memory that is not closed: use it, or close it first: "
		}
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %s%w", len(mem), d.native.Info.Name, why, err)
	}
	return b, nil
}

// unpinWithin is how long an import waits until a closed buffer with the same memory is unused.
// Completed work may have no event behind it, and an event that is recorded now takes the device a
// moment.
const unpinWithin = 20 * time.Millisecond

// unpin unpins closed buffers that share pages with of, if they are no longer used.
func (d *Device) unpin(of *Buffer) {
	ctx, cancel := context.WithTimeout(context.Background(), unpinWithin)
	defer cancel()
	wake.Until(ctx, func() bool {
		d.native.Collect(true)
		_, closed := d.buffers.pinned(of)
		return !closed || d.failed() != nil
	})
}

// pinned reports whether a buffer of the device shares pages with of, and whether such a buffer is
// closed.
func (s *bufferStats) pinned(of *Buffer) (is, closed bool) {
	page := uintptr(os.Getpagesize())
	pages := func(b *Buffer) (from, to uintptr) {
		from = uintptr(b.mem.Host)
		return from / page, (from + uintptr(b.mem.Size) + page - 1) / page
	}
	from, to := pages(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	overlaps := func(b *Buffer) bool {
		begin, end := pages(b)
		return b.from == registered && begin < to && from < end
	}
	for b := s.list; b != nil; b = b.after {
		if overlaps(b) {
			is, closed = true, closed || b.closed.Load()
		}
	}
	if b := s.unpinning; b != nil && overlaps(b) {
		return true, true
	}
	return is, closed
}

// register pins memory of the program, for reading only if read is set. If a page of the memory is
// also pinned for writing, it cannot be pinned for reading only; then it is pinned as other memory
// is. register runs on a bound thread.
func (d *Device) register(host unsafe.Pointer, size uint64, read bool) (driver.Ptr, error) {
	if !read || !d.native.Caps.ReadOnlyRegister {
		return d.native.Native.Register(host, size)
	}
	ptr, err := d.native.Native.(driver.ReadOnlyRegistrar).RegisterReadOnly(host, size)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		if p, e := d.native.Native.Register(host, size); e == nil {
			return p, nil
		}
	}
	return ptr, err
}

// Device returns the device on which the buffer was made, or nil for a nil or zero buffer.
func (b *Buffer) Device() *Device {
	if b == nil {
		return nil
	}
	return b.dev
}

// Kind returns the kind of memory.
func (b *Buffer) Kind() MemKind {
	if b == nil {
		return 0
	}
	return b.mem.Kind
}

// Size returns the size in bytes.
func (b *Buffer) Size() uint64 {
	if b == nil {
		return 0
	}
	return b.mem.Size
}

// Ptr returns the address on the device, which is valid until the buffer is freed. It is 0 for a
// closed buffer, for pool memory that is not allocated yet or has been deallocated, and for a
// placeholder in a command buffer.
func (b *Buffer) Ptr() driver.Ptr {
	if b == nil || b.closed.Load() || b.late() && b.state.Load() != isLive {
		return 0
	}
	return b.mem.Ptr
}

// Bytes returns the memory as the host sees it. It is nil if the host cannot access the memory or
// the buffer has been closed. The slice is valid until the buffer is freed. Use semaphores to know
// when its contents are valid.
func (b *Buffer) Bytes() []byte {
	if b == nil || b.closed.Load() || b.late() && b.state.Load() != isLive || b.mem.Host == nil {
		return nil
	}
	return unsafe.Slice((*byte)(b.mem.Host), b.mem.Size)
}

// late reports whether the address becomes known only when the operation that uses it is issued.
func (b *Buffer) late() bool { return b.from == pooled || b.recordedIn() != nil }

// recordedIn returns the command buffer in which the buffer stands for a binding or for scratch
// memory, or nil.
func (b *Buffer) recordedIn() *CommandBuffer {
	switch r := b.rare; {
	case r == nil:
		return nil
	case r.slot != nil:
		return r.slot.of
	case r.scratch != nil:
		return r.scratch.of
	}
	return nil
}

// slot returns the binding of a command buffer that the buffer stands for, or nil.
func (b *Buffer) slot() *slotInfo {
	if b.rare == nil {
		return nil
	}
	return b.rare.slot
}

// All returns the whole buffer as a Range for operations. For a nil buffer it is the zero Range,
// which operations refuse.
func (b *Buffer) All() Range { return Range{b, 0, b.Size()} }

// Range returns a part of the buffer; offset and size are in bytes. The operation that uses the
// range checks that it lies inside the buffer.
func (b *Buffer) Range(offset, size uint64) Range { return Range{b, offset, size} }

// Close releases the buffer, and returns nil. Submissions in flight may still use it. New
// submissions fail with [ErrClosed]. Do not close a buffer that a host call has yet to use. Closing
// again does nothing.
func (b *Buffer) Close() error {
	if !b.exists() || !b.closed.CompareAndSwap(false, true) {
		return nil
	}
	if b.lent() { // the owner waits until the memory is no longer used
		b.rare.awaited.Store(true)
		b.dev.native.Short.Add(1)
		b.dev.native.AskAll()
	} else if b.from == pooled && b.pool.closed.Load() {
		b.dev.native.AskAll()
	}
	b.release()
	return nil
}

// lent reports whether the owner of the memory wants to be notified when it is no longer used.
func (b *Buffer) lent() bool { return b.rare != nil && b.rare.freed != nil }

// exists reports whether b is a device's buffer, and neither nil nor a zero value.
func (b *Buffer) exists() bool { return b != nil && b.dev != nil }

// hold adds a reference for a submission.
func (b *Buffer) hold() error {
	if b.closed.Load() || !holdLive(&b.refs, 0) {
		return errBufferClosed
	}
	return nil
}

var errBufferClosed = fmt.Errorf("buffer: %w", ErrClosed)

// holdLive adds a reference, unless the count is below least, which means that the last reference
// is gone.
func holdLive(refs *atomic.Int32, least int32) bool {
	for {
		n := refs.Load()
		if n < least {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *Buffer) release() { b.releaseAll(1) }

// releaseAll drops n references.
func (b *Buffer) releaseAll(n int32) {
	if left := b.refs.Add(-n); left >= 0 {
		return
	}
	switch {
	case b.from == pooled && b.state.Load() != isLive: // deallocated, or never allocated
		b.dev.buffers.remove(b)
		return
	case b.from == borrowed:
		if b.dev.buffers.remove(b) {
			b.over()
		}
		return
	}
	b.dev.native.Reclaim(func() {
		s := &b.dev.buffers
		if s.removeToFree(b) {
			b.dev.native.NotTaken(b.free(0))
			s.freed(b)
		}
	})
}

// free releases the memory. A driver's pool frees it in the stream h, or in the stream that
// allocated it if h is 0. free runs on the reclaimer's thread, or on the device's thread when the
// device closes.
func (b *Buffer) free(h driver.Stream) (err error) {
	switch b.from {
	case allocated:
		err = b.dev.native.Native.Free(b.mem)
	case registered:
		err = b.dev.native.Native.Unregister(b.mem.Host)
	case pooled:
		err = b.pool.giveBack(b, h)
	case opened:
		err = b.closeMemory()
	}
	b.over()
	return err
}

// over notifies the owner that the memory is no longer used.
func (b *Buffer) over() {
	if b.rare == nil {
		return
	}
	if b.rare.exe != nil {
		b.rare.exe.release()
	}
	if b.rare.awaited.Load() {
		b.dev.native.Short.Add(-1)
	}
	if b.lent() {
		go b.rare.freed()
	}
}

// A Range is a part of a buffer, in bytes.
type Range struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// check returns the address of a range for an operation of a queue.
func (r Range) check(op string, q *Queue) (engine.Address, error) {
	if r.Buffer != nil && r.Buffer.recordedIn() != nil {
		return engine.Address{}, argument(op, "a binding of a command buffer, or a buffer of its Alloca, outside of it")
	}
	return r.checkOn(op, q.dev)
}

// checkTo is check for a range that the operation writes.
func (r Range) checkTo(op string, q *Queue) (engine.Address, error) {
	at, err := r.check(op, q)
	if err == nil {
		err = r.writable(op)
	}
	return at, err
}

// writable returns an error if the range, which has been checked, is read-only.
func (r Range) writable(op string) error {
	if r.Buffer.readOnly() {
		return argument(op, "the buffer was imported for reading only")
	}
	return nil
}

func (b *Buffer) readOnly() bool { return b.rare != nil && b.rare.read }

// checkOn is check for operations on a device, including those of command buffers.
func (r Range) checkOn(op string, d *Device) (engine.Address, error) {
	b := r.Buffer
	switch {
	case !b.exists():
		return engine.Address{}, argument(op, "no buffer")
	case d == nil:
		return engine.Address{}, errZero
	case b.dev != d && b.dev.native.Driver != d.native.Driver:
		return engine.Address{}, argument(op, "the buffer is of driver %s, the queue of %s", b.dev.native.Driver.Name(), d.native.Driver.Name())
	case r.Offset == outside && r.Size == outside:
		return engine.Address{}, fmt.Errorf("gpu: %s: elements that are not in the slice that they were taken from: the indices given to Slice are reversed, negative or too large: %w", op, ErrRange)
	case r.Offset > b.mem.Size || r.Size > b.mem.Size-r.Offset:
		return engine.Address{}, fmt.Errorf("gpu: %s: %d bytes at %d of a buffer of %d: %w", op, r.Size, r.Offset, b.mem.Size, ErrRange)
	case b.late():
		if b.hasGone() && b.dev.failed() == nil { // else the device's error comes
			return engine.Address{}, fmt.Errorf("gpu: %s: the memory has been deallocated: %w", op, ErrUnallocated)
		}
		return engine.Address{Ptr: driver.Ptr(r.Offset), Late: (*bufferUse)(b)}, nil
	}
	return engine.Address{Ptr: b.mem.Ptr + driver.Ptr(r.Offset)}, nil
}

// bufferStats lists a device's buffers.
type bufferStats struct {
	mu     sync.Mutex // protects the following; a leaf
	list   *Buffer
	n      int
	device ByteStats
	host   ByteStats
	peak   uint64 // of device and host together

	unpinning *Buffer // the buffer whose memory the reclaimer is unpinning, or nil

	slab *bufferSlab
	used int // buffers of the slab in use
}

// A bufferSlab is an array of buffers allocated at once, which costs less than single allocations.
// It has as many as fit into 16 KiB.
type bufferSlab [97]Buffer

// fresh returns a buffer that is expected to be short-lived. The caller holds mu.
func (s *bufferStats) fresh() *Buffer {
	if s.slab == nil || s.used == len(s.slab) {
		s.slab, s.used = new(bufferSlab), 0
	}
	s.used++
	return &s.slab[s.used-1]
}

// isHost reports whether a kind of memory is host memory.
func isHost(kind MemKind) bool { return kind == HostMem || kind == WriteCombinedMem }

// bytes returns the counter for a buffer's memory and the size to count. The size is 0 if the
// memory belongs to other code or to another buffer.
func (s *bufferStats) bytes(b *Buffer) (at *ByteStats, n uint64) {
	if b.from == allocated || b.from == pooled && b.pool.over == nil {
		n = b.mem.Size
	}
	if isHost(b.mem.Kind) {
		return &s.host, n
	}
	return &s.device, n
}

func (s *bufferStats) add(b *Buffer) {
	s.mu.Lock()
	s.link(b)
	s.mu.Unlock()
}

// link puts a buffer on the list. The caller holds mu.
func (s *bufferStats) link(b *Buffer) {
	b.after = s.list
	if s.list != nil {
		s.list.before = b
	}
	s.list = b
	s.n++
	at, n := s.bytes(b)
	at.Live += n
	at.Allocated += n
	at.Peak = max(at.Peak, at.Live)
	s.peak = max(s.peak, s.device.Live+s.host.Live)
}

// remove removes a buffer from the list. It reports false if the buffer is not on the list, because
// the list has been closed.
func (s *bufferStats) remove(b *Buffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unlist(b)
}

// removeToFree is remove for the reclaimer, which then frees the buffer and calls freed.
func (s *bufferStats) removeToFree(b *Buffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := s.unlist(b)
	if listed && b.from == registered {
		s.unpinning = b
	}
	return listed
}

func (s *bufferStats) freed(b *Buffer) {
	if b.from == registered {
		s.mu.Lock()
		s.unpinning = nil
		s.mu.Unlock()
	}
}

// unlist is remove for a caller that holds mu.
func (s *bufferStats) unlist(b *Buffer) bool {
	listed := b.before != nil || s.list == b
	if listed {
		s.unlink(b)
	}
	return listed
}

// unlink takes a buffer off the list. The caller holds mu.
func (s *bufferStats) unlink(b *Buffer) {
	if b.before != nil {
		b.before.after = b.after
	} else {
		s.list = b.after
	}
	if b.after != nil {
		b.after.before = b.before
	}
	b.before, b.after = nil, nil
	s.n--
	at, n := s.bytes(b)
	at.Live -= n
}

func (s *bufferStats) snapshot(to *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Buffers, to.Bytes, to.PeakBytes, to.Device, to.Host = s.n, s.device.Live+s.host.Live, s.peak, s.device, s.host
}

// haveNative reports whether any buffer has memory of a driver's pool.
func (s *bufferStats) haveNative() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := s.list; b != nil; b = b.after {
		if b.from == pooled && b.pool.blocks == nil {
			return true
		}
	}
	return false
}

// close frees the remaining buffers, or with pools only those from pools. It passes h to free. It
// runs on the device's thread.
func (s *bufferStats) close(pools bool, h driver.Stream) (errs []error) {
	var left *Buffer
	s.mu.Lock()
	for b, after := s.list, (*Buffer)(nil); b != nil; b = after {
		after = b.after
		if pools && b.from != pooled {
			continue
		}
		s.unlink(b)
		b.before, b.after, left = nil, left, b
	}
	s.mu.Unlock()
	for left != nil {
		b := left
		left, b.after = b.after, nil
		b.closed.Store(true)
		if err := b.free(h); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
