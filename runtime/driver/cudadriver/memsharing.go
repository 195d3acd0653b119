package cudadriver

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.MemSharing = (*device)(nil)

// rdmaAttribute is the first release with the attribute that says whether other hardware can access
// physical memory by GPUDirect RDMA.
const rdmaAttribute = 11030

// physical holds the properties and the granularity of the physical memory that a device allocates.
type physical struct {
	prop    cuda.MemAllocationProp
	granule uint64
}

// askPhysical finds out whether the device can map physical memory, and whether processes can share
// physical memory.
func (d *device) askPhysical(has func(cuda.DeviceAttribute) (bool, error)) (virtual, shares bool, err error) {
	if lacks(d.lib, "virtual-memory") != nil {
		return false, false, nil
	}
	if virtual, err = has(cuda.DeviceAttributeVirtualMemoryManagementSupported); !virtual || err != nil {
		return false, false, err
	}
	if runtime.GOOS == "linux" {
		if shares, err = has(cuda.DeviceAttributeHandleTypePosixFileDescriptorSupported); err != nil {
			return false, false, err
		}
	}
	prop := cuda.MemAllocationProp{Type: cuda.MemAllocationTypePinned, Location: location(int32(d.info.Index))}
	if d.lib.Version() >= rdmaAttribute { // as in ordinary device memory, which has the property by default
		rdma, err := has(cuda.DeviceAttributeGPUDirectRDMAWithCUDAVMMSupported)
		if err != nil {
			return false, false, err
		}
		if rdma {
			prop.AllocFlags.GpuDirectRDMACapable = 1
		}
	}
	if virtual, err = d.setPhysical(&d.private, prop); shares && err == nil {
		prop.RequestedHandleTypes = cuda.MemHandleTypePosixFileDescriptor
		shares, err = d.setPhysical(&d.physical, prop)
	}
	return virtual, shares, err
}

// setPhysical sets the properties of physical memory, and finds the granularity. It reports whether
// the device has physical memory with these properties.
func (d *device) setPhysical(p *physical, prop cuda.MemAllocationProp) (able bool, err error) {
	p.prop = prop
	if p.granule, err = d.lib.MemGetAllocationGranularity(&p.prop, cuda.MemAllocGranularityMinimum); err != nil {
		return false, d.fail("open", err, "granularity of physical memory")
	}
	return p.granule > 0, nil
}

// whole rounds a size up to the granularity.
func (p *physical) whole(size uint64) uint64 { return (size + p.granule - 1) / p.granule * p.granule }

// noMemSharing makes the error of a call on a device without Caps.MemSharing.
func (d *device) noMemSharing(op string) error {
	return d.fail(op, driver.ErrUnsupported, "shareable memory")
}

// allocShareable allocates memory that other processes can import.
func (d *device) allocShareable(size uint64) (driver.Mem, error) {
	const op = "alloc"
	if !d.caps.MemSharing {
		return driver.Mem{}, d.noMemSharing(op)
	}
	h, err := d.lib.MemCreate(d.physical.whole(size), &d.physical.prop, 0)
	if err != nil {
		return driver.Mem{}, d.fail(op, err, "%d bytes of shareable device memory", size)
	}
	return d.mapped(op, h, size)
}

// mapped maps shareable physical memory and gives the device access. It always releases the
// caller's handle. The mapping keeps the memory alive.
func (d *device) mapped(op string, h cuda.MemGenericAllocationHandle, size uint64) (driver.Mem, error) {
	n := d.physical.whole(size)
	p, err := d.lib.MemAddressReserve(n, 0, 0, 0)
	if err != nil {
		return driver.Mem{}, d.fail(op, errors.Join(err, d.lib.MemRelease(h)), "%d bytes of addresses", n)
	}
	err = d.lib.MemMap(p, n, 0, h, 0)
	released := d.lib.MemRelease(h)
	if err != nil {
		return driver.Mem{}, d.fail(op, errors.Join(err, released, d.lib.MemAddressFree(p, n)), "map %d bytes at %#x; the size must be that of the memory", n, uint64(p))
	}
	what := "release the handle"
	if err = released; err == nil {
		what = "access to"
		err = d.lib.MemSetAccess(p, n, []cuda.MemAccessDesc{{Location: d.physical.prop.Location, Flags: cuda.MemAccessFlagsProtReadWrite}})
	}
	m := driver.Mem{Kind: driver.ShareableMem, Ptr: driver.Ptr(p), Size: size}
	if err != nil {
		return driver.Mem{}, d.fail(op, errors.Join(err, d.unmap(m)), "%s of %d bytes at %#x", what, n, uint64(p))
	}
	return m, nil
}

// unmap undoes mapped. The memory is freed with its last reference.
func (d *device) unmap(m driver.Mem) error {
	n := d.physical.whole(m.Size)
	if err := d.lib.MemUnmap(cuda.DevicePtr(m.Ptr), n); err != nil {
		return err
	}
	return d.lib.MemAddressFree(cuda.DevicePtr(m.Ptr), n)
}

func (d *device) ExportShareable(m driver.Mem) (*os.File, error) {
	const op = "export shareable memory"
	if !d.caps.MemSharing {
		return nil, d.noMemSharing(op)
	}
	if m.Kind != driver.ShareableMem {
		return nil, d.fail(op, driver.ErrUnsupported, "memory of kind %d", int(m.Kind))
	}
	h, err := d.lib.MemRetainAllocationHandle(cuda.DevicePtr(m.Ptr))
	if err != nil {
		return nil, d.fail(op, err, "the handle of %d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	fd := int32(-1)
	err = d.lib.MemExportToShareableHandle(unsafe.Pointer(&fd), h, cuda.MemHandleTypePosixFileDescriptor, 0)
	var f *os.File
	if err == nil {
		f = descriptor(fd, "CUDA memory")
	}
	if released := d.lib.MemRelease(h); released != nil {
		if err = errors.Join(err, released); f != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, d.fail(op, err, "%d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	return f, nil
}

func (d *device) ImportShareable(f *os.File, size uint64) (driver.Mem, error) {
	const op = "import shareable memory"
	if !d.caps.MemSharing {
		return driver.Mem{}, d.noMemSharing(op)
	}
	var h cuda.MemGenericAllocationHandle
	var err error
	if bad := control(f, func(fd uintptr) {
		h, err = d.lib.MemImportFromShareableHandle(fd, cuda.MemHandleTypePosixFileDescriptor)
	}); bad != nil {
		err = bad
	}
	if err != nil {
		return driver.Mem{}, d.fail(op, err, "%d bytes of file %s, which must be an export of memory by another process", size, f.Name())
	}
	return d.mapped(op, h, size)
}
