package interop

import (
	"os"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// memoryOf returns the memory of a device, or nil for a nil or zero device.
func memoryOf(dev *gpu.Device) *memory.Device {
	if in := gpu.Inside(dev); in != nil {
		return in.Memory
	}
	return nil
}

// ImportPointer makes a buffer from device memory that other code of this process owns. The owner
// must keep the memory until the buffer has been closed and its last use is over. Then the function
// freed is called, unless it is nil, on a goroutine of its own. If closing the device leaves native
// objects to the driver, freed may never be called.
func ImportPointer(dev *gpu.Device, ptr driver.Ptr, size uint64, freed func()) (*gpu.Buffer, error) {
	b, err := memoryOf(dev).Import(ptr, size, freed)
	return (*gpu.Buffer)(b), err
}

// ExportMemory returns a handle of a buffer's memory for other processes of the machine (C:
// cuIpcGetMemHandle, hipIpcGetMemHandle). ExportMemory blocks while the driver does. Two sorts of
// memory can be exported. Memory of kind [gpu.DeviceMem] that [gpu.Device.Alloc] made is imported
// with [ImportMemory], or with CUDA by cudaIpcOpenMemHandle. Memory of a pool with
// [gpu.PoolOptions].Shareable is imported with [Pool.Import]: see [ExportPool]. For other memory
// the error is [gpu.ErrArgument]. If the device does not support exports, the error is
// [gpu.ErrUnsupported]. To export a part, add to the handle's Offset and lower its Size.
//
// The buffer owns the memory. Leave the buffer open until all importing processes have closed
// theirs. According to CUDA, closing the buffer or its device earlier is undefined. With CUDA,
// imported memory stays valid with its contents if this process ends, until the importers close
// their buffers; other drivers do not specify this. The processes must order their accesses to the
// memory themselves: see [Event].
//
// CUDA places several small allocations in one block of 2 MiB, and a process that imports one of
// them can access the whole block. To protect other data, make the sizes of exported buffers
// multiples of 2 MiB.
func ExportMemory(b *gpu.Buffer) (MemoryHandle, error) {
	h, err := (*memory.Buffer)(b).Export()
	return MemoryHandle(h), err
}

// ImportMemory makes a buffer from memory that another process of the machine has exported (C:
// cuIpcOpenMemHandle, hipIpcOpenMemHandle). That process used [ExportMemory], or with CUDA
// cudaIpcGetMemHandle. PyTorch and CuPy export memory in this way too, mostly parts of larger
// allocations. ImportMemory blocks while the driver does. The memory may be another device's if the
// hardware supports that. The buffer behaves like a buffer that [gpu.Device.Alloc] made, except
// that it cannot be exported. The other process must keep the memory until the buffer has been
// closed, its last use is over, and the driver has released the memory. Then the function freed is
// called, unless it is nil, on a goroutine of its own. Use freed to notify the other process. If
// closing the device leaves native objects to the driver, freed may never be called.
//
// The error is [driver.ErrSameProcess] if this process itself exported the memory, because no
// driver supports such an import: use the original buffer. The error is [gpu.ErrRange] if the
// driver reports the size of the allocation and the allocation does not contain the handle's range.
// The error is [gpu.ErrArgument] for a handle of another driver, of pool memory (see
// [Pool.Import]), or of zero bytes, and [gpu.ErrUnsupported] if the device does not support
// imports. The driver returns its own error if the handle is invalid, or if the other process has
// freed the memory or ended.
func ImportMemory(dev *gpu.Device, h MemoryHandle, freed func()) (*gpu.Buffer, error) {
	b, err := memoryOf(dev).ImportShared(memory.Handle(h), freed)
	return (*gpu.Buffer)(b), err
}

// ExportMemoryFile returns a new file that represents a buffer's memory (C:
// cuMemExportToShareableHandle). The caller closes the file. Send the file's descriptor to another
// process of the machine, by os/exec or a Unix socket. That process imports the memory with
// [ImportMemoryFile], or with CUDA by cuMemImportFromShareableHandle. ExportMemoryFile blocks while
// the driver does.
//
// Only memory of kind [gpu.ShareableMem] that [gpu.Device.Alloc] made can be exported this way; for
// other memory the error is [gpu.ErrArgument]. The memory exists as long as any process has it:
// each process may close its buffer, or end, at any time. With CUDA an open descriptor keeps the
// memory too; on the simulated GPU it does not. The processes must order their accesses to the
// memory themselves: see [Event].
//
// The driver's size of the memory is the buffer's size, rounded up to a multiple of CUDA's minimum
// granularity (cuMemGetAllocationGranularity), which is mostly 2 MiB. A program that maps the
// memory with CUDA's functions must round in the same way. ImportMemoryFile does so. Importers can
// access the whole rounded size.
func ExportMemoryFile(b *gpu.Buffer) (*os.File, error) {
	return (*memory.Buffer)(b).ExportFile()
}

// ImportMemoryFile makes a buffer from memory that another process of the machine has exported as a
// file (C: cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap, cuMemSetAccess). The file
// is from [ExportMemoryFile], or with CUDA a POSIX file descriptor of memory that cuMemCreate made.
// PyTorch's expandable segments and NCCL's buffers are such memory. The caller owns the file, and
// may close it when ImportMemoryFile has returned. ImportMemoryFile blocks while the driver does.
//
// The caller must supply the size, because the descriptor does not contain the size: pass the
// exported buffer's size, or the size given to cuMemCreate. The memory can only be imported as a
// whole: if size, rounded up as for [ExportMemoryFile], is not the rounded size of the memory, the
// driver returns an error. The memory may be another device's if the hardware supports that. The
// memory may also be this process's own. Then the buffer is another address of the same memory, and
// the program orders uses of both addresses like uses of one buffer. The buffer behaves like a
// buffer of kind [gpu.ShareableMem] that [gpu.Device.Alloc] made, except that it cannot be
// exported, and that its bytes are not counted in [gpu.Stats]. The buffer keeps the memory, even if
// the other process ends. The function freed is called, unless it is nil, on a goroutine of its
// own, when the buffer has been closed, its last use is over, and the driver has released this
// process's mapping. If closing the device leaves native objects to the driver, freed may never be
// called.
//
// The error is [gpu.ErrUnsupported] if the device does not support imports. Only Linux supports
// imports. If the file does not represent memory, the error is the driver's own.
func ImportMemoryFile(dev *gpu.Device, f *os.File, size uint64, freed func()) (*gpu.Buffer, error) {
	b, err := memoryOf(dev).ImportSharedFile(f, size, freed)
	return (*gpu.Buffer)(b), err
}
