package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Kinds of memory.
const (
	DeviceMem  = driver.DeviceMem  // the device's own
	HostMem    = driver.HostMem    // pinned memory of the host, which all devices of the driver see
	ManagedMem = driver.ManagedMem // one address for host and devices
)

// A Buffer is memory. It is freed when it has been closed and no submission uses it any more.
type Buffer struct {
	dev    *Device
	mem    driver.Mem
	size   uint64
	refs   atomic.Int64 // one of the caller's, and one a submission
	closed atomic.Bool
	from   origin
	host   []byte      // that was imported, so that it stays
	exe    *Executable // that it is a variable of
	freed  func()      // to be called when it is not used any more

	before, after *Buffer // in the device's list
}

// An origin is where memory comes from, which says what becomes of it.
type origin uint8

const (
	borrowed   origin = iota // somebody else's
	allocated                // to be freed
	registered               // to be unregistered
)

// Alloc makes a buffer of a kind. It blocks while the driver does. A size of zero is legal.
func (d *Device) Alloc(kind driver.MemKind, size uint64) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	b := newBuffer(d, size)
	if size == 0 {
		b.mem.Kind = kind
		d.buffers.add(b)
		return b, nil
	}
	err := d.do(func() (err error) {
		if b.mem, err = d.drv.Alloc(kind, size); err == nil {
			b.from = allocated
			d.buffers.add(b)
		}
		return err
	})
	if err != nil {
		d.check(err)
		return nil, fmt.Errorf("gpu: allocate %d bytes on %s: %w", size, d.info.Name, err)
	}
	return b, nil
}

func newBuffer(d *Device, size uint64) *Buffer {
	b := &Buffer{dev: d, size: size}
	b.refs.Store(1)
	return b
}

// Import makes a buffer of device memory that somebody else owns and keeps for as long as the buffer is used. When it is
// used no more freed is called, unless it is nil, on a goroutine of its own.
func (d *Device) Import(ptr driver.Ptr, size uint64, freed func()) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	b := newBuffer(d, size)
	b.mem, b.freed = driver.Mem{Kind: driver.DeviceMem, Ptr: ptr, Size: size}, freed
	d.buffers.add(b)
	return b, nil
}

// ImportHost makes a buffer of the program's own memory, which it pins for all devices of the driver: what is in it moves
// without being copied on the way. It blocks while the driver pins. The memory must stay what it is, and where it is, until
// the buffer is used no more; then freed is called, unless it is nil, on a goroutine of its own. Where the device cannot do
// that the error is [driver.ErrUnsupported].
func (d *Device) ImportHost(mem []byte, freed func()) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	b := newBuffer(d, uint64(len(mem)))
	b.host, b.freed = mem, freed
	b.mem = driver.Mem{Kind: driver.HostMem, Size: b.size}
	if len(mem) == 0 {
		d.buffers.add(b)
		return b, nil
	}
	if !d.caps.HostRegister {
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %w", len(mem), d.info.Name, driver.ErrUnsupported)
	}
	b.mem.Host = unsafe.Pointer(unsafe.SliceData(mem))
	err := d.do(func() (err error) {
		if b.mem.Ptr, err = d.drv.Register(b.mem.Host, b.size); err == nil {
			b.from = registered
			d.buffers.add(b)
		}
		return err
	})
	if err != nil {
		d.check(err)
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %w", len(mem), d.info.Name, err)
	}
	return b, nil
}

// Device returns the device that the buffer was made on.
func (b *Buffer) Device() *Device { return b.dev }

// Kind returns the kind of memory.
func (b *Buffer) Kind() driver.MemKind { return b.mem.Kind }

// Size returns the size in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// Ptr returns the address on the device, valid until the buffer is freed.
func (b *Buffer) Ptr() driver.Ptr { return b.mem.Ptr }

// Bytes returns the memory as the host sees it, or nil if it does not. It is valid until the buffer is freed, and what is
// in it at a time is for semaphores to say.
func (b *Buffer) Bytes() []byte {
	if b.mem.Host == nil {
		return nil
	}
	return unsafe.Slice((*byte)(b.mem.Host), b.size)
}

// All is the whole buffer.
func (b *Buffer) All() Range { return Range{b, 0, b.size} }

// Range is a part of the buffer.
func (b *Buffer) Range(offset, size uint64) Range { return Range{b, offset, size} }

// Close lets go of the buffer. Submissions that use it still may. Closing again does nothing.
func (b *Buffer) Close() error {
	if b.closed.CompareAndSwap(false, true) {
		b.release()
	}
	return nil
}

// hold keeps the buffer for a submission.
func (b *Buffer) hold() error {
	if b.closed.Load() || !holdLive(&b.refs) {
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	return nil
}

// holdLive adds a reference unless the last one has gone.
func holdLive(refs *atomic.Int64) bool {
	for {
		n := refs.Load()
		if n <= 0 {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *Buffer) release() {
	if b.refs.Add(-1) > 0 {
		return
	}
	if b.from == borrowed {
		if b.dev.buffers.remove(b) {
			b.over()
		}
		return
	}
	b.dev.post(func() {
		if b.dev.buffers.remove(b) {
			b.free() // nobody is left to hear of an error
		}
	})
}

// free gives the memory back. It runs on the device's thread.
func (b *Buffer) free() (err error) {
	switch b.from {
	case allocated:
		err = b.dev.drv.Free(b.mem)
	case registered:
		err = b.dev.drv.Unregister(b.mem.Host)
	}
	b.over()
	return err
}

// over tells those who lent the memory that it is used no more.
func (b *Buffer) over() {
	if b.exe != nil {
		b.exe.release()
	}
	if b.freed != nil {
		go b.freed()
	}
}

// A Range is a part of a buffer, in bytes.
type Range struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// check returns the address of a range that a queue can use.
func (r Range) check(op string, q *Queue) (driver.Ptr, error) {
	switch {
	case r.Buffer == nil:
		return 0, argument(op, "no buffer")
	case r.Buffer.dev != q.dev && r.Buffer.dev.of != q.dev.of:
		return 0, argument(op, "the buffer is of driver %s, the queue of %s", r.Buffer.dev.of.Name(), q.dev.of.Name())
	case r.Offset > r.Buffer.size || r.Size > r.Buffer.size-r.Offset:
		return 0, fmt.Errorf("gpu: %s: %d bytes at %d of a buffer of %d: %w", op, r.Size, r.Offset, r.Buffer.size, ErrRange)
	}
	return r.Buffer.mem.Ptr + driver.Ptr(r.Offset), nil
}

// bufferStats lists a device's buffers.
type bufferStats struct {
	mu    sync.Mutex
	list  *Buffer
	n     int
	bytes uint64
	peak  uint64
}

func (s *bufferStats) add(b *Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.after = s.list
	if s.list != nil {
		s.list.before = b
	}
	s.list = b
	s.n++
	s.bytes += b.size
	s.peak = max(s.peak, s.bytes)
}

// remove reports false if the list has been closed meanwhile.
func (s *bufferStats) remove(b *Buffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.before == nil && s.list != b {
		return false
	}
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
	s.bytes -= b.size
	return true
}

func (s *bufferStats) snapshot() (n int, bytes, peak uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.bytes, s.peak
}

// close frees what is left. It runs on the device's thread.
func (s *bufferStats) close() error {
	var errs []error
	for {
		s.mu.Lock()
		b := s.list
		s.mu.Unlock()
		if b == nil {
			return errors.Join(errs...)
		}
		b.closed.Store(true)
		if s.remove(b) {
			if err := b.free(); err != nil {
				errs = append(errs, err)
			}
		}
	}
}
