package memory

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// Alignment is the alignment of memory that a driver or a pool allocates: each address is a
// multiple of Alignment. Empty buffers have no address.
const Alignment = 256

// A Buffer is memory. The memory is released when the program has closed the buffer and nothing
// holds the buffer any more. Memory of a pool can be released earlier, by a Free.
type Buffer struct {
	dev *Device
	mem driver.Mem
	// The number of references besides the program's own, which Close drops. Submissions,
	// recordings, pools over the buffer and calls in progress have references. refs is -1 after the
	// last reference was dropped.
	refs atomic.Int32
	// The state of memory from a pool. Operations may use mem.Ptr only in the state isLive. A
	// placeholder is always isPending.
	state  atomic.Int32
	closed atomic.Bool
	from   origin
	pool   *Pool            // the pool that the memory is from, or nil
	home   *engine.Timeline // timeline of the queue that allocated the memory from the pool
	uses   engine.Uses      // uses of memory from a pool
	rare   *rare            // fields that few buffers need, or nil

	before, after *Buffer // neighbours in the device's list
}

// rare has fields that few buffers need: fields of imported and growing memory, of parts of other
// objects, of placeholders, and of buffers that the device reports if the program drops them.
type rare struct {
	place   Place       // the place of a placeholder in a recording
	host    []byte      // the program's memory, which this field keeps alive
	unused  func()      // called by the goroutine that finds the memory unused; must not block
	freed   func()      // called on a goroutine of its own when the memory is no longer used
	awaited atomic.Bool // the buffer is closed, and the device is polled until the memory is unused
	read    bool        // the memory is read-only
	watched *watched    // nil unless the device reports dropped buffers

	opened driver.Mem             // memory of another process; the buffer is a part of it
	close  func(driver.Mem) error // releases the memory in the field opened
	shared bool                   // the memory in the field opened is from a pool

	growing *Growing // the pages of growing memory
}

// A Place says what a placeholder stands for: a binding or a scratch buffer of a recording.
type Place struct {
	Recording any // nil: the buffer is no placeholder
	Index     int
	Scratch   bool // scratch memory; otherwise a binding
}

// An origin is the source of memory. It determines how the memory is released.
type origin uint8

const (
	borrowed   origin = iota // owned by other code or by another object, or empty: not freed
	allocated                // the runtime frees it
	registered               // the runtime unregisters it
	pooled                   // it goes back to its pool
	opened                   // another process's memory, which rare.close releases
	mapped                   // pages of a Growing, which the runtime unmaps
)

// Alloc allocates memory of a kind, and makes a buffer with it. It blocks while the driver does. If
// there is no memory, it also waits while unused memory is freed (see collecting).
func (d *Device) Alloc(kind driver.MemKind, size uint64) (*Buffer, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	if kind < driver.DeviceMem || kind > driver.ShareableMem {
		return nil, errs.Argument("allocate", "there is no kind of memory %d", int(kind))
	}
	b := newBuffer(d, size)
	if size == 0 {
		b.mem.Kind = kind
		d.buffers.add(b)
		return b, nil
	}
	began := time.Now()
	err := CanBe(size)
	if err == nil {
		err = d.collecting(kind, size, func() error { return d.Engine.Do(func() error { return b.allocate(kind) }) })
	}
	observe.Tell(d.Observer, observe.Alloc, began, "", size, err)
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: allocate %d bytes on %s: %w", size, d.Engine.Info.Name, err)
	}
	return b, nil
}

// allocate allocates the memory from the driver. It runs on a bound thread.
func (b *Buffer) allocate(kind driver.MemKind) error {
	m, err := b.dev.Engine.Native.Alloc(kind, b.mem.Size)
	if err == nil {
		b.mem, b.from = m, allocated
		b.dev.buffers.add(b)
	}
	return err
}

// CanBe returns an error if no device can have size bytes of memory. Drivers round sizes up, which
// must not overflow.
func CanBe(size uint64) error {
	if size > math.MaxInt64 {
		return fmt.Errorf("%d bytes: %w", size, driver.ErrOutOfMemory)
	}
	return nil
}

func newBuffer(d *Device, size uint64) *Buffer {
	b := &Buffer{dev: d}
	b.mem.Size = size
	if d.Leaks != nil {
		b.watch()
	}
	return b
}

// setRare sets the field rare of a new buffer. If watch has set rare before, setRare keeps
// rare.watched.
func (b *Buffer) setRare(r *rare) {
	if b.rare != nil {
		r.watched = b.rare.watched
	}
	b.rare = r
}

// NewPlaceholder makes a buffer that stands for memory in a recording.
func NewPlaceholder(d *Device, size uint64, p Place) *Buffer {
	b := &Buffer{dev: d, rare: &rare{place: p}}
	b.mem.Size = size
	b.state.Store(isPending)
	return b
}

// NewPart makes a buffer from memory that is a part of another object, such as a variable of loaded
// code. The function unused is called when nothing uses the memory any more, and must not block.
func NewPart(d *Device, m driver.Mem, unused func()) *Buffer {
	b := newBuffer(d, m.Size)
	b.mem = m
	b.setRare(&rare{unused: unused})
	d.buffers.add(b)
	return b
}

// Device returns the device on which the buffer was made, or nil for a nil or zero buffer.
func (b *Buffer) Device() *Device {
	if b == nil {
		return nil
	}
	return b.dev
}

// Kind returns the kind of memory.
func (b *Buffer) Kind() driver.MemKind {
	if b == nil {
		return 0
	}
	return b.mem.Kind
}

// Size returns the size in bytes, or 0 for a nil buffer. For growing memory, it returns how many
// bytes work may use now.
func (b *Buffer) Size() uint64 {
	switch {
	case b == nil:
		return 0
	case b.from == mapped:
		return b.rare.growing.Size()
	}
	return b.mem.Size
}

// Ptr returns the address on the device. It is 0 for a nil or closed buffer, for a placeholder, and
// for pool memory that is not allocated.
func (b *Buffer) Ptr() driver.Ptr {
	if b == nil || b.closed.Load() || b.HasNoAddress() {
		return 0
	}
	return b.mem.Ptr
}

// Bytes returns the memory as the host sees it. The slice is nil if Ptr returns 0, or if the host
// cannot access the memory.
func (b *Buffer) Bytes() []byte {
	if b == nil || b.closed.Load() || b.HasNoAddress() || b.mem.Host == nil {
		return nil
	}
	return unsafe.Slice((*byte)(b.mem.Host), b.mem.Size)
}

// Late reports whether the address must be looked up when the operation that uses the buffer is
// issued. That is so for placeholders and memory of pools. It is also so for growing memory: its
// address never changes, but its pages may be unmapped.
func (b *Buffer) Late() bool { return b.hasUses() || b.Place().Recording != nil }

// hasUses reports whether the buffer records the uses of its memory. A buffer does so for pool
// memory and growing memory, because such memory can be taken away while the buffer is open.
func (b *Buffer) hasUses() bool { return b.from == pooled || b.from == mapped }

// usesOf returns the uses of the memory. hasUses must be true for the buffer.
func (b *Buffer) usesOf() *engine.Uses {
	if b.from == mapped {
		return &b.rare.growing.uses
	}
	return &b.uses
}

// HasNoAddress reports whether the buffer has no address now: it is a placeholder, or pool memory
// that is not allocated.
func (b *Buffer) HasNoAddress() bool { return b.Late() && b.state.Load() != isLive }

// Place returns the Place of a placeholder. For other buffers, Recording of the Place is nil.
func (b *Buffer) Place() Place {
	if b.rare == nil {
		return Place{}
	}
	return b.rare.place
}

// Addr returns the address of memory that is not from a pool, even if the buffer is closed.
func (b *Buffer) Addr() driver.Ptr { return b.mem.Ptr }

// IsClosed reports whether the program has closed the buffer.
func (b *Buffer) IsClosed() bool { return b.closed.Load() }

// JoinUses makes the uses u of a recording count as uses of the memory. LeaveUses ends that.
func (b *Buffer) JoinUses(u *engine.Uses) {
	if b.hasUses() {
		b.usesOf().Join(u)
	}
}

// LeaveUses undoes JoinUses.
func (b *Buffer) LeaveUses(u *engine.Uses) {
	if b.hasUses() {
		b.usesOf().Leave(u)
	}
}

// Close drops the program's reference, and returns nil. Closing again does nothing.
func (b *Buffer) Close() error {
	if !b.Exists() || !b.closed.CompareAndSwap(false, true) {
		return nil
	}
	if w := b.watchedBy(); w != nil {
		w.close(b)
	}
	if b.lent() { // the owner waits until the memory is no longer used
		b.rare.awaited.Store(true)
		b.dev.Engine.Short.Add(1)
		b.dev.Engine.WantAll()
	} else if b.from == pooled && b.pool.closed.Load() {
		b.dev.Engine.WantAll()
	}
	b.Release()
	return nil
}

// lent reports whether the owner wants to be notified when the memory is no longer used.
func (b *Buffer) lent() bool { return b.rare != nil && b.rare.freed != nil }

// Exists reports whether b is a buffer of a device. It returns false for a nil or zero Buffer.
func (b *Buffer) Exists() bool { return b != nil && b.dev != nil }

// Hold adds a reference. It returns an error if the buffer has been closed.
func (b *Buffer) Hold() error {
	if b.closed.Load() || !engine.HoldLive(&b.refs, 0) {
		return errBufferClosed
	}
	return nil
}

var errBufferClosed = fmt.Errorf("buffer: %w", errs.ErrClosed)

// HoldMore adds a reference. The caller has a reference already.
func (b *Buffer) HoldMore() { b.refs.Add(1) }

// Release drops a reference.
func (b *Buffer) Release() { b.releaseAll(1) }

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
	b.dev.Engine.Reclaim(func() {
		s := &b.dev.buffers
		if s.removeToFree(b) {
			b.dev.Engine.NotTaken(b.free(0))
			s.freed(b)
		}
	})
}

// free releases the memory. A driver's pool frees the memory in the stream h, or in the stream that
// allocated it if h is 0. free runs on the reclaimer's thread, or on the pending-queue thread when
// the device is closed.
func (b *Buffer) free(h driver.Stream) (err error) {
	switch b.from {
	case allocated:
		err = b.dev.Engine.Native.Free(b.mem)
	case registered:
		err = b.dev.Engine.Native.Unregister(b.mem.Host)
	case pooled:
		err = b.pool.giveBack(b, h)
	case opened:
		err = b.rare.close(b.rare.opened)
	case mapped:
		err = b.rare.growing.free()
	}
	b.over()
	return err
}

// over calls the functions rare.unused and rare.freed, and ends the polling that Close has
// requested.
func (b *Buffer) over() {
	if b.rare == nil {
		return
	}
	if b.rare.unused != nil {
		b.rare.unused()
	}
	if b.rare.awaited.Load() {
		b.dev.Engine.Short.Add(-1)
	}
	if b.lent() {
		go b.rare.freed()
	}
}
