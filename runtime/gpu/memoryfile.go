package gpu

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
)

// ExportFile returns a new file that represents the buffer's memory (C:
// cuMemExportToShareableHandle). The caller closes it. Send the file's descriptor to another
// process of the machine, by os/exec or a Unix socket. That process imports it with
// [Device.ImportSharedFile], or with CUDA by cuMemImportFromShareableHandle. ExportFile blocks
// while the driver does.
//
// Only memory of kind [ShareableMem] that [Device.Alloc] made can be exported this way; other
// memory is [ErrArgument]. The memory exists as long as any process has it: each process may close
// its buffer, or end, at any time. With CUDA an open descriptor keeps the memory too; on the
// simulated GPU it does not. The processes must order their accesses to the memory themselves: see
// [SharedEvent].
//
// The driver's size of the memory is the buffer's size, rounded up to a multiple of CUDA's minimum
// granularity (cuMemGetAllocationGranularity), which is mostly 2 MiB. A program that maps the
// memory with CUDA's functions must round in the same way. ImportSharedFile does so. Importers can
// access the whole rounded size.
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

// ImportSharedFile makes a buffer from memory that another process of the machine has exported as a
// file (C: cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap, cuMemSetAccess). The file
// is from [Buffer.ExportFile], or with CUDA a POSIX file descriptor of memory that cuMemCreate
// made. PyTorch's expandable segments and NCCL's buffers are such memory. The caller keeps the file
// and may close it afterwards. ImportSharedFile blocks while the driver does.
//
// The caller must supply the size, since the descriptor does not contain it: the exported buffer's
// size, or the size given to cuMemCreate. The memory can only be imported as a whole. size may omit
// some bytes of the last page, but another number of pages is the driver's error. The memory may be
// another device's if the hardware supports that. It may be this process's own; the buffer is then
// another address of the same memory, and uses of both must be ordered as uses of one. The buffer
// is like one of [Device.Alloc] of kind [ShareableMem], except that it cannot be exported, and that
// its bytes are not counted in [Stats]. The buffer keeps the memory, whatever happens to the other
// process. freed is called, unless it is nil, on a goroutine of its own, when the buffer has been
// closed, its last use is over, and the driver has released this process's mapping.
//
// The error is [driver.ErrUnsupported] if the device does not support imports, which only Linux
// supports. It is the driver's own error if the file does not represent memory.
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
