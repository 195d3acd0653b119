package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Export names the buffer's memory for other processes of the machine, who import it by [Device.ImportShared], or with CUDA by
// cudaIpcOpenMemHandle (C: cuIpcGetMemHandle, hipIpcGetMemHandle). It blocks while the driver does. Only memory of kind [DeviceMem] that
// [Device.Alloc] made can be exported, and memory of a pool with [PoolOptions].Shareable, as [Pool.Export] tells; other memory is [ErrArgument], and where the device cannot do it the error is
// [driver.ErrUnsupported]. To export a part add to the handle's Offset and lower its Size.
//
// The memory stays this buffer's: it must be left open until all who have imported it have closed what they imported. To close it, or its
// device, before is undefined, says CUDA. If this process ends before, what others have imported stays until they close it, and has in it
// what it had; with CUDA, that is: other drivers do not say. Nothing else orders what the processes do with the memory: see [SharedEvent].
//
// CUDA makes several small allocations in one block of 2 MiB, and lets those who import one of them reach all of the block: what
// others must not see goes into other blocks, so give sizes that are multiples of 2 MiB to what is exported.
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

// ImportShared makes a buffer of memory that another process of the machine has exported, by [Buffer.Export], or with CUDA by
// cudaIpcGetMemHandle: PyTorch's and CuPy's, too, whose memory mostly is a part of an allocation of theirs (C: cuIpcOpenMemHandle,
// hipIpcOpenMemHandle). It blocks while the driver does. It may be another device's memory where the hardware has a way to that. The
// buffer is as one of [Device.Alloc], but that it cannot be exported. The other process must keep the memory until the buffer has been
// closed, its last use is over and the driver has taken it back: then freed is called, unless it is nil, on a goroutine of its own, and
// is where to tell it.
//
// The errors are [driver.ErrSameProcess] where this process itself has exported it, which no driver takes back in: use
// the buffer; [ErrRange] if the handle's range is not in the allocation, as far as the driver tells how large that is; [ErrArgument] for a
// handle of another driver, or without bytes; [driver.ErrUnsupported] where the device cannot do that; and the driver's own, for one that is
// none, or whose process has freed the memory or ended.
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

// openMemory makes a buffer of another process's memory, which open makes accessible; r tells how that is undone, and who is told.
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

// closeMemory gives memory back to the process that it is of. It runs on a bound thread.
func (b *Buffer) closeMemory() error {
	switch p := b.rare.shared; {
	case p != nil:
		return p.give(b.rare.opened)
	case b.rare.opened.Kind == ShareableMem:
		return b.dev.native.Native.Free(b.rare.opened)
	}
	return b.dev.faces.ipcMem.CloseMem(b.rare.opened)
}

// importable returns an error for what a driver of another name has exported.
func (d *Device) importable(op, of string) error {
	if of != "" && of != d.native.Driver.Name() {
		return argument(op, "it was exported by driver %s, and %s is of driver %s", of, d.native.Info.Name, d.native.Driver.Name())
	}
	return nil
}
