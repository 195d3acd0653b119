package gpu

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Export returns a new file that stands for the pool, for the caller to close (C: cuMemPoolExportToShareableHandle). Another process of the machine to
// which its descriptor is sent, by os/exec or a Unix socket, imports the pool by [Device.ImportPool], and then memory of it by the handles that
// [Buffer.Export] gives. It blocks while the driver does.
//
// Only a pool with [PoolOptions].Shareable can be exported, others are [ErrArgument]. Memory that is exported must have been allocated, as far as the host
// has issued it: before that it is [ErrUnallocated]. Who imports it waits until the allocation is done, as for anything that this process gives to
// the device: see [SharedEvent]. It must have closed the memory, and been told so, before this process deallocates it, and the device
// must not be closed before: anything else is undefined, says CUDA.
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

// An ImportedPool is another process's pool. Nothing can be allocated from it: it is there to import what that process has allocated. All
// methods may be called concurrently. A zero ImportedPool was not imported: [ErrArgument].
type ImportedPool struct{ p *Pool }

// ImportPool imports a pool that another process of the machine has exported, by [Pool.Export], or with CUDA as a POSIX file descriptor
// (C: cuMemPoolImportFromShareableHandle). The file stays the caller's, who may close it afterwards. It blocks while the driver does. The pool
// may be another device's where the hardware has a way. The errors are [driver.ErrUnsupported] where the device cannot do that, as anywhere
// but on Linux, [driver.ErrSameProcess] where the driver finds that this process has made the pool, and the driver's own for what is no pool.
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

// Device returns the device that the pool was imported on.
func (p *ImportedPool) Device() *Device {
	if p == nil || p.p == nil {
		return nil
	}
	return p.p.dev
}

// Import makes a buffer of memory of the pool, which the other process has exported (C: cuMemPoolImportPointer): a handle with Pooled set. It blocks
// while the driver does. The buffer is as one of [Device.ImportShared]: the other process must keep the memory allocated until the buffer
// has been closed, its last use is over and the driver has taken it back; then freed is called, unless it is nil, on a goroutine of its
// own, and is where to tell it. A handle of other memory is [ErrArgument], one whose range is not in the allocation, as far as the driver
// tells, [ErrRange].
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

// Close lets go of the pool, and returns nil. Memory that was imported from it stays until it is closed. The device closes what is left. Closing
// again does nothing.
func (p *ImportedPool) Close() error {
	if p == nil || p.p == nil {
		return nil
	}
	return p.p.Close()
}
