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

// rdmaAttribute is the first release that is asked whether other hardware can reach physical memory.
const rdmaAttribute = 11030

// physical is what the device has for memory that processes share, which is physical memory: what it is made with, and what its size is a
// multiple of. A mapping keeps such memory, so that no handle of it is.
type physical struct {
	prop    cuda.MemAllocationProp
	granule uint64
}

// askPhysical finds out whether the device can share physical memory, by which has tells of its attributes.
func (d *device) askPhysical(has func(cuda.DeviceAttribute) (bool, error)) (able bool, err error) {
	if runtime.GOOS != "linux" || lacks(d.lib, "virtual-memory") != nil {
		return false, nil
	}
	for _, attr := range [...]cuda.DeviceAttribute{cuda.DeviceAttributeVirtualMemoryManagementSupported, cuda.DeviceAttributeHandleTypePosixFileDescriptorSupported} {
		if able, err = has(attr); !able || err != nil {
			return false, err
		}
	}
	p := &d.physical
	p.prop = cuda.MemAllocationProp{Type: cuda.MemAllocationTypePinned, RequestedHandleTypes: cuda.MemHandleTypePosixFileDescriptor,
		Location: location(int32(d.info.Index))}
	if d.lib.Version() >= rdmaAttribute { // as other memory is without being asked
		rdma, err := has(cuda.DeviceAttributeGPUDirectRDMAWithCUDAVMMSupported)
		if err != nil {
			return false, err
		}
		if rdma {
			p.prop.AllocFlags.GpuDirectRDMACapable = 1
		}
	}
	if p.granule, err = d.lib.MemGetAllocationGranularity(&p.prop, cuda.MemAllocGranularityMinimum); err != nil {
		return false, d.fail("open", err, "ask what sizes of physical memory are multiples of")
	}
	return p.granule > 0, nil
}

// whole returns a size as physical memory has it.
func (p *physical) whole(size uint64) uint64 { return (size + p.granule - 1) / p.granule * p.granule }

// noMemSharing is the error of a call that Caps rules out.
func (d *device) noMemSharing(op string) error {
	return d.fail(op, driver.ErrUnsupported, "memory that processes share by descriptors")
}

// allocShareable makes memory that others can import.
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

// mapped gives physical memory an address, lets the device in, and takes the handle's reference, which it gives back: the mapping has one too.
func (d *device) mapped(op string, h cuda.MemGenericAllocationHandle, size uint64) (driver.Mem, error) {
	n := d.physical.whole(size)
	p, err := d.lib.MemAddressReserve(n, 0, 0, 0)
	if err != nil {
		return driver.Mem{}, d.fail(op, errors.Join(err, d.lib.MemRelease(h)), "%d bytes of addresses", n)
	}
	err = d.lib.MemMap(p, n, 0, h, 0)
	released := d.lib.MemRelease(h)
	if err != nil {
		return driver.Mem{}, d.fail(op, errors.Join(err, released, d.lib.MemAddressFree(p, n)), "map %d bytes at %#x, which must be all of the memory", n, uint64(p))
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

// unmap undoes mapped. What nobody has any more is gone then.
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
		return driver.Mem{}, d.fail(op, err, "%d bytes of file %s, which must be of memory that another process has exported", size, f.Name())
	}
	return d.mapped(op, h, size)
}
