package gpu

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
)

// ExportFile returns a new file that stands for the buffer's memory, for the caller to close (C: cuMemExportToShareableHandle). Another process of the
// machine to which its descriptor is sent, by os/exec or a Unix socket, imports it by [Device.ImportSharedFile], or with CUDA by
// cuMemImportFromShareableHandle. It blocks while the driver does.
//
// Only memory of kind [ShareableMem] that [Device.Alloc] made can be exported so, other memory is [ErrArgument]. It is there as long as any process
// has it: each may close its buffer, or end, whenever it likes. With CUDA an open descriptor keeps it, too: on the simulated GPU it does not. Nothing else orders what the
// processes do with it: see [SharedEvent].
//
// The driver's size of the memory is the buffer's, rounded up to a multiple of what CUDA calls the minimum granularity
// (cuMemGetAllocationGranularity), which is mostly 2 MiB: a program that maps it by CUDA's functions must round in the same way, and
// ImportSharedFile does so. Whoever imports it can reach all of that.
func (b *Buffer) ExportFile() (*os.File, error) {
	const op = "export as a file"
	if !b.exists() {
		return nil, errZero
	}
	d := b.dev
	if err := d.failed(); err != nil {
		return nil, err
	}
	switch {
	case b.mem.Size == 0:
		return nil, argument(op, "the buffer has no memory")
	case b.from == opened:
		return nil, argument(op, "what was imported; the file that it came by can be sent on")
	case b.from != allocated || b.mem.Kind != ShareableMem:
		return nil, argument(op, "memory that Device.Alloc has not made, or not of kind ShareableMem, which alone has a file")
	}
	if err := b.hold(); err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer b.release()
	var f *os.File
	err := d.native.Do(func() (err error) {
		f, err = d.faces.memSharing.ExportShareable(b.mem)
		return err
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s %d bytes of %s: %w", op, b.mem.Size, d.native.Info.Name, err)
	}
	return f, nil
}

// ImportSharedFile makes a buffer of memory that another process of the machine has exported as a file: by
// [Buffer.ExportFile], or with CUDA as a POSIX file descriptor of memory that cuMemCreate has made, as PyTorch's expandable segments and NCCL's buffers are
// (C: cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap, cuMemSetAccess). The file stays the caller's, who may close it afterwards. It
// blocks while the driver does.
//
// The size has to be told, for a descriptor does not say it: it is the exported buffer's, or what was given to cuMemCreate, for the memory can be
// had as a whole only. Some bytes at the end of its last page may be left out; another number of pages is the driver's error. The memory may be another device's where the
// hardware has a way, and may be this process's own, of which the buffer is then another address: order what uses both as for one. The
// buffer is as one of [Device.Alloc] of kind [ShareableMem], but that it cannot be exported, and that its bytes are not counted in [Stats]. It keeps the memory, whatever
// becomes of the other process. When it has been closed, its last use is over and the driver has taken back what is this process's, freed is called, unless it
// is nil, on a goroutine of its own.
//
// The errors are [driver.ErrUnsupported] where the device cannot do that, as anywhere but on Linux, and the driver's own for a file that is of no
// memory.
func (d *Device) ImportSharedFile(f *os.File, size uint64, freed func()) (*Buffer, error) {
	const op = "import a shared file"
	if err := d.failed(); err != nil {
		return nil, err
	}
	switch {
	case f == nil:
		return nil, argument(op, "no file")
	case size == 0:
		return nil, argument(op, "0 bytes")
	case d.faces.memSharing == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	}
	return d.openMemory(op, MemoryHandle{Size: size}, &rare{freed: freed}, func() (driver.Mem, error) {
		if err := canBe(size); err != nil {
			return driver.Mem{}, err
		}
		return d.faces.memSharing.ImportShareable(f, size)
	})
}
