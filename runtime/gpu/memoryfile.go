package gpu

import (
	"os"

	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// Export returns a handle of the buffer's memory for other processes of the machine (C:
// cuIpcGetMemHandle, hipIpcGetMemHandle). They import it with [Device.ImportShared], or with CUDA
// by cudaIpcOpenMemHandle. Export blocks while the driver does. Two sorts of memory can be
// exported: memory of kind [DeviceMem] that [Device.Alloc] made, and memory of a pool with
// [PoolOptions].Shareable (see [Pool.Export]). Other memory is [ErrArgument]. If the device does
// not support it, the error is [ErrUnsupported]. To export a part, add to the handle's
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
	h, err := b.in().Export()
	return MemoryHandle(h), err
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
// driver, or of zero bytes, and [ErrUnsupported] if the device does not support imports. The
// driver returns its own error if the handle is invalid, or if its process has freed the memory or
// ended.
func (d *Device) ImportShared(h MemoryHandle, freed func()) (*Buffer, error) {
	b, err := d.mem().ImportShared(memory.Handle(h), freed)
	return (*Buffer)(b), err
}

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
	return b.in().ExportFile()
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
// The error is [ErrUnsupported] if the device does not support imports, which only Linux
// supports. It is the driver's own error if the file does not represent memory.
func (d *Device) ImportSharedFile(f *os.File, size uint64, freed func()) (*Buffer, error) {
	b, err := d.mem().ImportSharedFile(f, size, freed)
	return (*Buffer)(b), err
}

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
	return p.in().Export()
}

// An ImportedPool is another process's pool. Nothing can be allocated from it: it only serves to
// import memory that the other process has allocated. All methods may be called concurrently. A
// zero ImportedPool was not imported: using it is [ErrArgument].
type ImportedPool memory.ImportedPool

func (p *ImportedPool) in() *memory.ImportedPool { return (*memory.ImportedPool)(p) }

// ImportPool imports a pool of another process of the machine (C:
// cuMemPoolImportFromShareableHandle). The process exported it with [Pool.Export], or with CUDA as
// a POSIX file descriptor. The caller keeps the file and may close it afterwards. ImportPool blocks
// while the driver does. The pool may be on another device if the hardware supports that. The error
// is [ErrUnsupported] if the device cannot import pools, which only Linux supports. It is
// [driver.ErrSameProcess] if the driver finds that this process made the pool, and the driver's own
// error if the file is not a pool.
func (d *Device) ImportPool(f *os.File) (*ImportedPool, error) {
	p, err := d.mem().ImportPool(f)
	return (*ImportedPool)(p), err
}

// Device returns the device on which the pool was imported.
func (p *ImportedPool) Device() *Device {
	if p.in().Device() == nil {
		return nil
	}
	return deviceOf(p.in().Device().Engine)
}

// Import makes a buffer from memory of the pool that the other process has exported (C:
// cuMemPoolImportPointer). The handle must have Pooled set. Import blocks while the driver does. As
// with [Device.ImportShared], the other process must keep the memory allocated until the buffer has
// been closed, its last use is over, and the driver has released it. Then freed is called, unless
// it is nil, on a goroutine of its own. Use freed to notify the other process. A handle of other
// memory is [ErrArgument]. A handle whose range is not in the allocation is [ErrRange], as far as
// the driver can tell.
func (p *ImportedPool) Import(h MemoryHandle, freed func()) (*Buffer, error) {
	b, err := p.in().Import(memory.Handle(h), freed)
	return (*Buffer)(b), err
}

// Close releases the pool, and returns nil. Imported memory stays until it is closed. Closing the
// device closes the remaining imported pools. Closing again does nothing.
func (p *ImportedPool) Close() error {
	return p.in().Close()
}
