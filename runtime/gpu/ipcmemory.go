package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Export returns a handle of the buffer's memory for other processes of the machine (C:
// cuIpcGetMemHandle, hipIpcGetMemHandle). They import it with [Device.ImportShared], or with CUDA
// by cudaIpcOpenMemHandle. Export blocks while the driver does. Two sorts of memory can be
// exported: memory of kind [DeviceMem] that [Device.Alloc] made, and memory of a pool with
// [PoolOptions].Shareable (see [Pool.Export]). Other memory is [ErrArgument]. If the device does
// not support it, the error is [driver.ErrUnsupported]. To export a part, add to the handle's
// Offset and lower its Size.
//
// This buffer keeps the memory. Leave it open until all importing processes have closed their
// buffers. According to CUDA, closing it or its device before is undefined. With CUDA, imported
// memory stays valid with its contents if this process ends, until the importers close it; other
// drivers do not specify this. The processes must order their accesses to the memory themselves:
// see [SharedEvent].
//
// CUDA places several small allocations in one block of 2 MiB, and a process that imports one of
// them can access the whole block. To protect other data, make the sizes of exported buffers
// multiples of 2 MiB.
func (b *Buffer) Export() (MemoryHandle, error) {
	const op = "export"
	if !b.exists() {
		return MemoryHandle{}, errZero
	}
	d := b.dev
	if err := d.failed(); err != nil {
		return MemoryHandle{}, err
	}
	switch {
	case b.from == pooled && b.pool.opt.Shareable:
		return b.exportPooled()
	case b.from == pooled:
		return MemoryHandle{}, argument(op, "memory of a pool that is not Shareable; export what Device.Alloc has made, of kind DeviceMem")
	case b.mem.Size == 0:
		return MemoryHandle{}, argument(op, "the buffer has no memory")
	case b.mem.Kind == ShareableMem:
		return MemoryHandle{}, argument(op, "memory of kind ShareableMem, which Buffer.ExportFile exports")
	case b.from != allocated || b.mem.Kind != DeviceMem:
		return MemoryHandle{}, argument(op, "memory that Device.Alloc has not made, or not of kind DeviceMem, which alone other processes can import")
	case d.faces.ipcMem == nil:
		return MemoryHandle{}, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.native.Info.Name, driver.ErrUnsupported)
	}
	if err := b.hold(); err != nil {
		return MemoryHandle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.release()
	h := MemoryHandle{Driver: d.native.Driver.Name(), Device: d.native.Info.UUID, Size: b.mem.Size}
	err := d.native.Do(func() (err error) {
		h.Handle, err = d.faces.ipcMem.ExportMem(b.mem)
		return err
	})
	if err != nil {
		d.native.Check(err)
		return MemoryHandle{}, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.native.Info.Name, err)
	}
	return h, nil
}

// ImportShared makes a buffer from memory that another process of the machine has exported (C:
// cuIpcOpenMemHandle, hipIpcOpenMemHandle). That process used [Buffer.Export], or with CUDA
// cudaIpcGetMemHandle. PyTorch and CuPy export so too; their memory is mostly a part of a larger
// allocation. ImportShared blocks while the driver does. The memory may be another device's if the
// hardware supports that. The buffer is like one of [Device.Alloc], except that it cannot be
// exported. The other process must keep the memory until the buffer has been closed, its last use
// is over, and the driver has released it. Then freed is called, unless it is nil, on a goroutine
// of its own. Use freed to notify the other process.
//
// The error is [driver.ErrSameProcess] if this process itself exported the memory, which no driver
// can import: use the original buffer. It is [ErrRange] if the handle's range is not in the
// allocation, as far as the driver tells its size. It is [ErrArgument] for a handle of another
// driver, or of zero bytes, and [driver.ErrUnsupported] if the device does not support imports. The
// driver returns its own error if the handle is invalid, or if its process has freed the memory or
// ended.
func (d *Device) ImportShared(h MemoryHandle, freed func()) (*Buffer, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	const op = "import shared memory"
	switch err := d.importable(op, h.Driver); {
	case err != nil:
		return nil, err
	case h.Size == 0 || h.Offset+h.Size < h.Size:
		return nil, argument(op, "%d bytes at %d", h.Size, h.Offset)
	case h.Pooled:
		return nil, argument(op, "memory of a pool: import that by Device.ImportPool, and this by ImportedPool.Import")
	case d.faces.ipcMem == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	}
	return d.openMemory(op, h, &rare{freed: freed}, func() (driver.Mem, error) { return d.faces.ipcMem.OpenMem(h.Handle) })
}

// openMemory makes a buffer from another process's memory. open makes the memory accessible. r says
// how to close the memory and which function to call then.
func (d *Device) openMemory(op string, h MemoryHandle, r *rare, open func() (driver.Mem, error)) (*Buffer, error) {
	b := newBuffer(d, h.Size)
	err := d.native.Do(func() (err error) {
		if r.opened, err = open(); err != nil {
			return err
		}
		b.from, b.rare = opened, r
		if m := r.opened; m.Size > 0 && (h.Offset > m.Size || h.Size > m.Size-h.Offset) {
			d.native.NotTaken(b.closeMemory())
			return fmt.Errorf("%d bytes at %d of an allocation of %d: %w", h.Size, h.Offset, m.Size, ErrRange)
		}
		b.mem.Kind, b.mem.Ptr = r.opened.Kind, r.opened.Ptr+driver.Ptr(h.Offset)
		d.buffers.add(b)
		return nil
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s: %d bytes on %s: %w", op, h.Size, d.native.Info.Name, err)
	}
	return b, nil
}

// closeMemory gives memory back to the process that owns it. It runs on a bound thread.
func (b *Buffer) closeMemory() error {
	switch p := b.rare.shared; {
	case p != nil:
		return p.give(b.rare.opened)
	case b.rare.opened.Kind == ShareableMem:
		return b.dev.native.Native.Free(b.rare.opened)
	}
	return b.dev.faces.ipcMem.CloseMem(b.rare.opened)
}

// importable returns an error if a driver of another name exported the object.
func (d *Device) importable(op, of string) error {
	if of != "" && of != d.native.Driver.Name() {
		return argument(op, "it was exported by driver %s, and %s is of driver %s", of, d.native.Info.Name, d.native.Driver.Name())
	}
	return nil
}
