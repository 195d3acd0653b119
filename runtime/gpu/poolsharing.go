package gpu

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Export returns a new file that represents the pool (C: cuMemPoolExportToShareableHandle). The
// caller closes it. Send the file's descriptor to another process of the machine, by os/exec or a
// Unix socket. That process imports the pool with [Device.ImportPool], and then memory of the pool
// with the handles that [Buffer.Export] returns. Export blocks while the driver does.
//
// Only a pool with [PoolOptions].Shareable can be exported; otherwise the error is [ErrArgument].
// Memory can be exported once its allocation has been issued; before that the error is
// [ErrUnallocated]. The importing process must wait until the allocation is done on the device, as
// for any work of this process: see [SharedEvent]. The importing process must have closed the
// memory, and been notified of the release, before this process deallocates it or closes the
// device. Otherwise the behavior is undefined, according to CUDA.
func (p *Pool) Export() (*os.File, error) {
	const op = "export a pool"
	if err := p.open(op); err != nil {
		return nil, err
	}
	if !p.opt.Shareable {
		return nil, argument(op, "it was made without PoolOptions.Shareable")
	}
	var f *os.File
	err := p.dev.native.Do(func() (err error) {
		p.life.RLock()
		defer p.life.RUnlock()
		if err = p.ended(); err == nil {
			f, err = p.dev.faces.sharing.ExportPool(p.native)
		}
		return err
	})
	if err != nil {
		p.dev.native.Check(err)
		return nil, fmt.Errorf("gpu: %s of %s: %w", op, p.dev.native.Info.Name, err)
	}
	return f, nil
}

// exportPooled is Export for memory of a shareable pool.
func (b *Buffer) exportPooled() (MemoryHandle, error) {
	const op = "export"
	d := b.dev
	if err := b.hold(); err != nil {
		return MemoryHandle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.release()
	if b.mem.Size == 0 {
		return MemoryHandle{}, argument(op, "the buffer has no memory")
	}
	if _, err := b.address(); err != nil {
		return MemoryHandle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	h := MemoryHandle{Driver: d.native.Driver.Name(), Device: d.native.Info.UUID, Size: b.mem.Size, Pooled: true}
	err := d.native.Do(func() (err error) {
		h.Handle, err = d.faces.sharing.ExportPoolMem(b.mem)
		return err
	})
	if err != nil {
		d.native.Check(err)
		return MemoryHandle{}, fmt.Errorf("gpu: %s %d bytes of a pool of %s: %w", op, b.mem.Size, d.native.Info.Name, err)
	}
	return h, nil
}

// An ImportedPool is another process's pool. Nothing can be allocated from it: it only serves to
// import memory that the other process has allocated. All methods may be called concurrently. A
// zero ImportedPool was not imported: using it is [ErrArgument].
type ImportedPool struct{ p *Pool }

// ImportPool imports a pool of another process of the machine (C:
// cuMemPoolImportFromShareableHandle). The process exported it with [Pool.Export], or with CUDA as
// a POSIX file descriptor. The caller keeps the file and may close it afterwards. ImportPool blocks
// while the driver does. The pool may be on another device if the hardware supports that. The error
// is [driver.ErrUnsupported] if the device cannot import pools, which only Linux supports. It is
// [driver.ErrSameProcess] if the driver finds that this process made the pool, and the driver's own
// error if the file is not a pool.
func (d *Device) ImportPool(f *os.File) (*ImportedPool, error) {
	const op = "import a pool"
	if err := d.failed(); err != nil {
		return nil, err
	}
	switch {
	case f == nil:
		return nil, argument(op, "no file")
	case d.faces.sharing == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	}
	p := &Pool{dev: d}
	err := d.native.Do(func() (err error) {
		if p.native, err = d.faces.sharing.ImportPool(f); err == nil {
			d.pools.mu.Lock()
			d.pools.all = append(d.pools.all, p)
			d.pools.mu.Unlock()
		}
		return err
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, err)
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

// Import makes a buffer from memory of the pool that the other process has exported (C:
// cuMemPoolImportPointer). The handle must have Pooled set. Import blocks while the driver does. As
// with [Device.ImportShared], the other process must keep the memory allocated until the buffer has
// been closed, its last use is over, and the driver has released it. Then freed is called, unless
// it is nil, on a goroutine of its own. Use freed to notify the other process. A handle of other
// memory is [ErrArgument]. A handle whose range is not in the allocation is [ErrRange], as far as
// the driver can tell.
func (p *ImportedPool) Import(h MemoryHandle, freed func()) (*Buffer, error) {
	const op = "import memory of a pool"
	d := p.Device()
	if err := d.failed(); err != nil {
		return nil, err
	}
	switch err := d.importable(op, h.Driver); {
	case err != nil:
		return nil, err
	case !h.Pooled:
		return nil, argument(op, "the handle is of no pool's memory: Device.ImportShared takes it")
	case h.Size == 0 || h.Offset+h.Size < h.Size:
		return nil, argument(op, "%d bytes at %d", h.Size, h.Offset)
	}
	return d.openMemory(op, h, &rare{shared: p, freed: freed}, func() (driver.Mem, error) {
		p.p.life.RLock()
		defer p.p.life.RUnlock()
		if err := p.p.ended(); err != nil {
			return driver.Mem{}, err
		}
		m, err := d.faces.sharing.OpenPoolMem(p.p.native, h.Handle)
		if err == nil {
			p.p.live.Add(1)
		}
		return m, err
	})
}

// give gives memory back to the other process. It runs on a bound thread.
func (p *ImportedPool) give(m driver.Mem) error {
	err := p.p.dev.faces.sharing.ClosePoolMem(m)
	if p.p.live.Add(-1) == 0 && p.p.closed.Load() {
		p.p.dev.sweepPools()
	}
	return err
}

// Close releases the pool, and returns nil. Imported memory stays until it is closed. Closing the
// device closes the remaining imported pools. Closing again does nothing.
func (p *ImportedPool) Close() error {
	if p == nil || p.p == nil {
		return nil
	}
	return p.p.Close()
}
