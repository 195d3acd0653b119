package memory

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// A Handle names memory for other processes. MemoryHandle of package interop is the public form of
// a Handle.
type Handle struct {
	Driver string
	Device [16]byte
	Handle driver.MemHandle
	Offset uint64
	Size   uint64
	Pooled bool
}

// Export returns a handle of the buffer's memory for other processes. It blocks while the driver
// does.
func (b *Buffer) Export() (Handle, error) {
	const op = "export"
	if !b.Exists() {
		return Handle{}, errs.Zero(op, "Buffer")
	}
	d := b.dev
	if err := d.Failed(); err != nil {
		return Handle{}, err
	}
	switch {
	case b.from == pooled && b.pool.opt.Shareable:
		return b.exportPooled()
	case b.from == pooled:
		return Handle{}, errs.Argument(op, "memory of a pool that is not Shareable; export what Device.Alloc has made, of kind DeviceMem")
	case b.mem.Size == 0:
		return Handle{}, errs.Argument(op, "the buffer has no memory")
	case b.mem.Kind == driver.ShareableMem:
		return Handle{}, errs.Argument(op, "memory of kind ShareableMem, which ExportMemoryFile exports")
	case b.from != allocated || b.mem.Kind != driver.DeviceMem:
		return Handle{}, errs.Argument(op, "memory that Device.Alloc has not made, or not of kind DeviceMem, which alone other processes can import")
	case d.Faces.IPCMem == nil:
		return Handle{}, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.Engine.Info.Name, driver.ErrUnsupported)
	}
	if err := b.Hold(); err != nil {
		return Handle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.Release()
	h := Handle{Driver: d.Engine.Driver.Name(), Device: d.Engine.Info.UUID, Size: b.mem.Size}
	err := d.Engine.Do(func() (err error) {
		h.Handle, err = d.Faces.IPCMem.ExportMem(b.mem)
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return Handle{}, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.Engine.Info.Name, err)
	}
	return h, nil
}

// exportPooled is like Export, for memory of a shareable pool.
func (b *Buffer) exportPooled() (Handle, error) {
	const op = "export"
	d := b.dev
	if err := b.Hold(); err != nil {
		return Handle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.Release()
	if b.mem.Size == 0 {
		return Handle{}, errs.Argument(op, "the buffer has no memory")
	}
	if _, err := b.address(); err != nil {
		return Handle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	h := Handle{Driver: d.Engine.Driver.Name(), Device: d.Engine.Info.UUID, Size: b.mem.Size, Pooled: true}
	err := d.Engine.Do(func() (err error) {
		h.Handle, err = d.Faces.PoolSharing.ExportPoolMem(b.mem)
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return Handle{}, fmt.Errorf("gpu: %s %d bytes of a pool of %s: %w", op, b.mem.Size, d.Engine.Info.Name, err)
	}
	return h, nil
}

// ImportShared makes a buffer from memory that another process has exported. If freed is not nil,
// it is called after the memory has been released. If ImportShared returns an error, freed is not
// called. ImportShared blocks while the driver does.
func (d *Device) ImportShared(h Handle, freed func()) (*Buffer, error) {
	if err := d.ready("import shared memory"); err != nil {
		return nil, err
	}
	const op = "import shared memory"
	switch err := d.Importable(op, h.Driver); {
	case err != nil:
		return nil, err
	case h.Size == 0 || h.Offset+h.Size < h.Size:
		return nil, errs.Argument(op, "%d bytes at %d", h.Size, h.Offset)
	case h.Pooled:
		return nil, errs.Argument(op, "memory of a pool: import the pool by ImportPool, and this by Pool.Import")
	case d.Faces.IPCMem == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
	}
	return d.openMemory(op, h, &rare{freed: freed, close: d.Faces.IPCMem.CloseMem}, func() (driver.Mem, error) { return d.Faces.IPCMem.OpenMem(h.Handle) })
}

// openMemory makes a buffer from another process's memory. openMemory calls the function open to
// make the memory accessible. When the buffer no longer needs the memory, r.close releases the
// memory, and then r.freed is called.
func (d *Device) openMemory(op string, h Handle, r *rare, open func() (driver.Mem, error)) (*Buffer, error) {
	b := newBuffer(d, h.Size)
	err := d.Engine.Do(func() (err error) {
		if r.opened, err = open(); err != nil {
			return err
		}
		b.from = opened
		b.setRare(r)
		if m := r.opened; m.Size > 0 && (h.Offset > m.Size || h.Size > m.Size-h.Offset) {
			d.Engine.NotTaken(r.close(r.opened))
			return fmt.Errorf("%d bytes at %d of an allocation of %d: %w", h.Size, h.Offset, m.Size, errs.ErrRange)
		}
		b.mem.Kind, b.mem.Ptr = r.opened.Kind, r.opened.Ptr+driver.Ptr(h.Offset)
		d.buffers.add(b)
		return nil
	})
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s: %d bytes on %s: %w", op, h.Size, d.Engine.Info.Name, err)
	}
	return b, nil
}

// Importable returns an error if an object was exported by another driver than the device's. The
// last parameter is the name of the driver that exported the object. If the name is unknown, the
// parameter is "", and Importable returns nil.
func (d *Device) Importable(op, of string) error {
	if of != "" && of != d.Engine.Driver.Name() {
		return errs.Argument(op, "it was exported by driver %s, and %s is of driver %s", of, d.Engine.Info.Name, d.Engine.Driver.Name())
	}
	return nil
}

// ExportFile returns a new file that represents the buffer's memory. It blocks while the driver
// does.
func (b *Buffer) ExportFile() (*os.File, error) {
	const op = "export as a file"
	if !b.Exists() {
		return nil, errs.Zero(op, "Buffer")
	}
	d := b.dev
	if err := d.Failed(); err != nil {
		return nil, err
	}
	switch {
	case b.mem.Size == 0:
		return nil, errs.Argument(op, "the buffer has no memory")
	case b.from == opened:
		return nil, errs.Argument(op, "what was imported; the file that it came by can be sent on")
	case b.from != allocated || b.mem.Kind != driver.ShareableMem:
		return nil, errs.Argument(op, "memory that Device.Alloc has not made, or not of kind ShareableMem, which alone has a file")
	}
	if err := b.Hold(); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.Release()
	var f *os.File
	err := d.Engine.Do(func() (err error) {
		f, err = d.Faces.MemSharing.ExportShareable(b.mem)
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.Engine.Info.Name, err)
	}
	return f, nil
}

// ImportSharedFile makes a buffer from memory that a file represents. freed is as for ImportShared.
// ImportSharedFile blocks while the driver does.
func (d *Device) ImportSharedFile(f *os.File, size uint64, freed func()) (*Buffer, error) {
	const op = "import a shared file"
	if err := d.ready(op); err != nil {
		return nil, err
	}
	switch {
	case f == nil:
		return nil, errs.Argument(op, "no file")
	case size == 0:
		return nil, errs.Argument(op, "0 bytes")
	case d.Faces.MemSharing == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
	}
	return d.openMemory(op, Handle{Size: size}, &rare{freed: freed, close: d.Engine.Native.Free}, func() (driver.Mem, error) {
		if err := CanBe(size); err != nil {
			return driver.Mem{}, err
		}
		return d.Faces.MemSharing.ImportShareable(f, size)
	})
}

// Export returns a new file that represents the pool, for other processes. It blocks while the
// driver does.
func (p *Pool) Export() (*os.File, error) {
	const op = "export a pool"
	if err := p.open(op); err != nil {
		return nil, err
	}
	if !p.opt.Shareable {
		return nil, errs.Argument(op, "it was made without PoolOptions.Shareable")
	}
	var f *os.File
	err := p.dev.Engine.Do(func() (err error) {
		p.life.RLock()
		defer p.life.RUnlock()
		if err = p.ended(); err == nil {
			f, err = p.dev.Faces.PoolSharing.ExportPool(p.native)
		}
		return err
	})
	if err != nil {
		p.dev.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s of %s: %w", op, p.dev.Engine.Info.Name, err)
	}
	return f, nil
}

// An ImportedPool is another process's pool.
type ImportedPool struct{ p *Pool }

// ImportPool imports a pool of another process. It blocks while the driver does.
func (d *Device) ImportPool(f *os.File) (*ImportedPool, error) {
	const op = "import a pool"
	if err := d.ready(op); err != nil {
		return nil, err
	}
	switch {
	case f == nil:
		return nil, errs.Argument(op, "no file")
	case d.Faces.PoolSharing == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
	}
	p := &Pool{dev: d}
	err := d.Engine.Do(func() (err error) {
		if p.native, err = d.Faces.PoolSharing.ImportPool(f); err == nil {
			d.pools.mu.Lock()
			d.pools.all = append(d.pools.all, p)
			d.pools.mu.Unlock()
		}
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, err)
	}
	return &ImportedPool{p}, nil
}

// Device returns the device on which the pool was imported.
func (p *ImportedPool) Device() *Device {
	if p == nil || p.p == nil {
		return nil
	}
	return p.p.dev
}

// Import makes a buffer from memory that another process has allocated from the pool and exported.
// freed is as for ImportShared. Import blocks while the driver does.
func (p *ImportedPool) Import(h Handle, freed func()) (*Buffer, error) {
	const op = "import memory of a pool"
	d := p.Device()
	if d == nil {
		return nil, errs.Zero(op, "Pool")
	}
	if err := d.Failed(); err != nil {
		return nil, err
	}
	switch err := d.Importable(op, h.Driver); {
	case err != nil:
		return nil, err
	case !h.Pooled:
		return nil, errs.Argument(op, "the handle is of no pool's memory: ImportMemory takes it")
	case h.Size == 0 || h.Offset+h.Size < h.Size:
		return nil, errs.Argument(op, "%d bytes at %d", h.Size, h.Offset)
	}
	return d.openMemory(op, h, &rare{freed: freed, close: p.give, shared: true}, func() (driver.Mem, error) {
		p.p.life.RLock()
		defer p.p.life.RUnlock()
		if err := p.p.ended(); err != nil {
			return driver.Mem{}, err
		}
		m, err := d.Faces.PoolSharing.OpenPoolMem(p.p.native, h.Handle)
		if err == nil {
			p.p.live.Add(1)
		}
		return m, err
	})
}

// give closes memory that Import has opened. It runs on a bound thread.
func (p *ImportedPool) give(m driver.Mem) error {
	err := p.p.dev.Faces.PoolSharing.ClosePoolMem(m)
	if p.p.live.Add(-1) == 0 && p.p.closed.Load() {
		p.p.dev.sweepPools()
	}
	return err
}

// Close releases the pool, and returns nil. Imported memory stays usable until its buffer is
// closed.
func (p *ImportedPool) Close() error {
	if p == nil || p.p == nil {
		return nil
	}
	return p.p.Close()
}
