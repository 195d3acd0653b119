package interop

import (
	"os"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// ExportPool returns a new file that represents a pool (C: cuMemPoolExportToShareableHandle). The
// caller closes the file. Send its descriptor to another process of the machine, by os/exec or a
// Unix socket. That process imports the pool with [ImportPool], and then memory of the pool with
// the handles that [ExportMemory] returns. ExportPool blocks while the driver does.
//
// Only a pool with [gpu.PoolOptions].Shareable can be exported; otherwise the error is
// [gpu.ErrArgument]. Memory can be exported once its allocation has been issued; before that the
// error is [gpu.ErrUnallocated]. The importing process must wait until the allocation is done on
// the device, as for any work of this process: see [Event]. The importing process must have closed
// the memory, and been notified of the release, before this process frees the memory or closes the
// device. Otherwise the behavior is undefined, according to CUDA.
func ExportPool(p *gpu.Pool) (*os.File, error) {
	return (*memory.PoolHandle)(p).Pool().Export()
}

// A Pool is another process's pool. Nothing can be allocated from it: it only serves to import
// memory that the other process has allocated. All methods may be called concurrently. A zero Pool
// was not imported: its Import returns [gpu.ErrArgument].
type Pool memory.ImportedPool

// in returns the pool of package memory.
func (p *Pool) in() *memory.ImportedPool { return (*memory.ImportedPool)(p) }

// ImportPool imports a pool of another process of the machine (C:
// cuMemPoolImportFromShareableHandle). That process exported the pool with [ExportPool], or with
// CUDA as a POSIX file descriptor. The caller keeps the file and may close it afterwards.
// ImportPool blocks while the driver does. The pool may be on another device if the hardware
// supports that. The error is [gpu.ErrUnsupported] if the device cannot import pools: with CUDA,
// only Linux can. If f is nil, the error is [gpu.ErrArgument]. If the file is not a pool, or this
// process made the pool, the error is the driver's own. The simulated driver returns
// [driver.ErrSameProcess] in the second case.
func ImportPool(dev *gpu.Device, f *os.File) (*Pool, error) {
	p, err := memoryOf(dev).ImportPool(f)
	return (*Pool)(p), err
}

// Device returns the device on which the pool was imported, or nil for a nil or zero Pool.
func (p *Pool) Device() *gpu.Device {
	dev := p.in().Device()
	if dev == nil {
		return nil
	}
	return inside.Outer(dev.Engine).(*gpu.Device)
}

// Import makes a buffer from memory of the pool that the other process has exported (C:
// cuMemPoolImportPointer). The handle must have Pooled set. Import blocks while the driver does. As
// with [ImportMemory], the other process must keep the memory allocated until the buffer has been
// closed, its last use is over, and the driver has released the memory. Then freed is called,
// unless it is nil, on a goroutine of its own. Use freed to notify the other process. If closing
// the device leaves native objects to the driver, freed may never be called. The error is
// [gpu.ErrArgument] for a handle without Pooled, of another driver, or of zero bytes. The error is
// [gpu.ErrRange] if the range is not in the allocation, as far as the driver can tell. For memory
// of another pool the error is the driver's own.
func (p *Pool) Import(h MemoryHandle, freed func()) (*gpu.Buffer, error) {
	b, err := p.in().Import(memory.Handle(h), freed)
	return (*gpu.Buffer)(b), err
}

// Close releases the pool, and returns nil. Imported memory stays usable until its buffer is
// closed. Closing the device closes the remaining imported pools. Closing again does nothing.
func (p *Pool) Close() error { return p.in().Close() }
