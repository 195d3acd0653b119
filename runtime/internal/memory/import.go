package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// Import makes a buffer from device memory that other code owns. If freed is not nil, it is called
// when the memory is no longer used. If Import returns an error, freed is not called.
func (d *Device) Import(ptr driver.Ptr, size uint64, freed func()) (*Buffer, error) {
	if err := d.ready("import"); err != nil {
		return nil, err
	}
	if size > 0 && (ptr == 0 || uint64(ptr)+size-1 < uint64(ptr)) {
		return nil, errs.Argument("import", "there are no %d bytes at %#x", size, uint64(ptr))
	}
	b := newBuffer(d, size)
	b.mem.Ptr = ptr
	b.setRare(&rare{freed: freed})
	d.buffers.add(b)
	return b, nil
}

// ImportHost makes a buffer from memory of the program, and pins the memory. If read is set, the
// device only reads the memory. freed is as for Import.
func (d *Device) ImportHost(mem []byte, freed func(), read bool) (*Buffer, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	b := newBuffer(d, uint64(len(mem)))
	b.mem.Kind = driver.HostMem
	b.setRare(&rare{host: mem, freed: freed, read: read})
	if len(mem) == 0 {
		d.buffers.add(b)
		return b, nil
	}
	if !d.Engine.Caps.HostRegister {
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %w", len(mem), d.Engine.Info.Name, driver.ErrUnsupported)
	}
	b.mem.Host = unsafe.Pointer(unsafe.SliceData(mem))
	pin := func() error {
		return d.Engine.Do(func() (err error) {
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
		d.Engine.Check(err)
		var why string
		switch is, closed := d.buffers.pinned(b); {
		case closed:
			why = "a closed buffer has this memory, and work still uses it: wait until the function freed of that import is called: "
		case is:
			why = "a buffer has this memory that is not closed: use it, or close it first: "
		}
		return nil, fmt.Errorf("gpu: import %d bytes of the host's on %s: %s%w", len(mem), d.Engine.Info.Name, why, err)
	}
	return b, nil
}

// unpinWithin is how long an import tries to have closed buffers unpinned. One call of Collect may
// not be enough: completed work may have no event behind it. Then Collect records an event, and the
// device needs a moment to pass the event. A single call of Collect may take longer than
// unpinWithin.
const unpinWithin = 20 * time.Millisecond

// unpin calls Collect again and again, for up to unpinWithin. unpin stops when no closed buffer
// shares pinned pages with the given buffer, or when the device is lost or closed.
func (d *Device) unpin(of *Buffer) {
	ctx, cancel := context.WithTimeout(context.Background(), unpinWithin)
	defer cancel()
	wake.Until(ctx, func() bool {
		d.Engine.Collect(true)
		_, closed := d.buffers.pinned(of)
		return !closed || d.Failed() != nil
	})
}

// pinned reports whether a buffer with pinned memory of the program shares pages with the given
// buffer, and whether such a buffer is closed. The buffer that is being unpinned counts as closed.
func (s *books) pinned(of *Buffer) (is, closed bool) {
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

// register pins memory of the program. If read is set and the driver can pin memory read-only,
// register does that. If read-only pinning fails, for example because a page is already pinned for
// writing, register pins the memory for reading and writing. It runs on a bound thread.
func (d *Device) register(host unsafe.Pointer, size uint64, read bool) (driver.Ptr, error) {
	if !read || !d.Engine.Caps.ReadOnlyRegister {
		return d.Engine.Native.Register(host, size)
	}
	ptr, err := d.Engine.Native.(driver.ReadOnlyRegistrar).RegisterReadOnly(host, size)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		if p, e := d.Engine.Native.Register(host, size); e == nil {
			return p, nil
		}
	}
	return ptr, err
}
