package cudadriver

import (
	"os"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.PoolSharing = (*device)(nil)

// poolHandles is the first release that reports the handle types of pools.
const poolHandles = 11030

// noSharing makes the error of a call on a device without Caps.PoolSharing.
func (d *device) noSharing(op string) error {
	return d.fail(op, driver.ErrUnsupported, "shareable pools")
}

func (d *device) ExportPool(p driver.Pool) (*os.File, error) {
	const op = "export pool"
	if !d.caps.PoolSharing {
		return nil, d.noSharing(op)
	}
	fd := int32(-1)
	err := d.lib.MemPoolExportToShareableHandle(unsafe.Pointer(&fd), cuda.MemoryPool(p), cuda.MemHandleTypePosixFileDescriptor, 0)
	if err != nil {
		return nil, d.fail(op, err, "pool %#x", uintptr(p))
	}
	return descriptor(fd, "CUDA memory pool"), nil
}

// ImportPool gives the device access to the pool. Initially only the device that has the memory has
// access. If this process does not see that device, no device has access.
func (d *device) ImportPool(f *os.File) (driver.Pool, error) {
	const op = "import pool"
	if !d.caps.PoolSharing {
		return 0, d.noSharing(op)
	}
	var pool cuda.MemoryPool
	var err error
	if bad := control(f, func(fd uintptr) {
		pool, err = d.lib.MemPoolImportFromShareableHandle(fd, cuda.MemHandleTypePosixFileDescriptor, 0)
	}); bad != nil {
		err = bad
	}
	if err != nil {
		return 0, d.fail(op, err, "file %s, which must be an export of a pool by another process", f.Name())
	}
	if err := d.access(pool, int32(d.info.Index), cuda.MemAccessFlagsProtReadWrite); err != nil {
		d.lib.MemPoolDestroy(pool)
		return 0, d.fail(op, err, "file %s: access to the pool's memory", f.Name())
	}
	return driver.Pool(pool), nil
}

// control calls a function with a file's descriptor, without making the file blocking.
func control(f *os.File, use func(fd uintptr)) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return c.Control(use)
}

func (d *device) ExportPoolMem(m driver.Mem) (driver.MemHandle, error) {
	const op = "export pool memory"
	if !d.caps.PoolSharing {
		return driver.MemHandle{}, d.noSharing(op)
	}
	h, err := d.lib.MemPoolExportPointer(cuda.DevicePtr(m.Ptr))
	if err != nil {
		return driver.MemHandle{}, d.fail(op, err, "%d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	return h.Reserved, nil
}

func (d *device) OpenPoolMem(p driver.Pool, h driver.MemHandle) (driver.Mem, error) {
	const op = "open pool memory"
	if !d.caps.PoolSharing {
		return driver.Mem{}, d.noSharing(op)
	}
	ptr, err := d.lib.MemPoolImportPointer(cuda.MemoryPool(p), &cuda.MemPoolPtrExportData{Reserved: h})
	if err != nil {
		return driver.Mem{}, d.fail(op, err, "memory of another process's pool, imported as %#x, which must still have it", uintptr(p))
	}
	return driver.Mem{Kind: driver.DeviceMem, Ptr: driver.Ptr(ptr)}, nil
}

func (d *device) ClosePoolMem(m driver.Mem) error {
	const op = "close pool memory"
	if !d.caps.PoolSharing {
		return d.noSharing(op)
	}
	if err := d.lib.MemFree(cuda.DevicePtr(m.Ptr)); err != nil {
		return d.fail(op, err, "memory at %#x", uint64(m.Ptr))
	}
	return nil
}
