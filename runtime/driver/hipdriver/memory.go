package hipdriver

import (
	"errors"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

func (d *device) Alloc(kind driver.MemKind, size uint64) (driver.Mem, error) {
	m := driver.Mem{Kind: kind, Size: size}
	switch kind {
	case driver.DeviceMem:
		p, err := d.lib.Malloc(size)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of device memory", size)
		}
		m.Ptr = driver.Ptr(p)
	case driver.HostMem, driver.WriteCombinedMem:
		// Memory with these flags is coherent: the host and the device see each other's writes
		// without a flush.
		flags := uint32(hip.HostMallocPortable | hip.HostMallocMapped)
		if kind == driver.WriteCombinedMem {
			flags |= hip.HostMallocWriteCombined
		}
		host, err := d.lib.HostMalloc(size, flags)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of pinned host memory", size)
		}
		p, err := d.lib.HostGetDevicePointer(host, 0)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", errors.Join(err, d.lib.HostFree(host)), "device address of %d bytes of pinned host memory", size)
		}
		m.Host, m.Ptr = host, driver.Ptr(p)
	case driver.ManagedMem:
		if !d.caps.Managed {
			return driver.Mem{}, d.refuse("alloc", driver.ErrUnsupported, "%d bytes of managed memory", size)
		}
		p, err := d.lib.MallocManaged(size, hip.MemAttachGlobal)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of managed memory", size)
		}
		m.Host, m.Ptr = p, driver.Ptr(uintptr(p))
	case driver.CommMem:
		p, err := d.MemAlloc(size)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of memory for communicators", size)
		}
		m.Ptr = p
	case driver.ShareableMem:
		return driver.Mem{}, d.refuse("alloc", driver.ErrUnsupported, "%d bytes of shareable memory", size)
	default:
		return driver.Mem{}, d.refuse("alloc", hip.ErrorInvalidValue, "memory of unknown kind %d", int(kind))
	}
	return m, nil
}

func (d *device) Free(m driver.Mem) error {
	var err error
	switch m.Kind {
	case driver.DeviceMem, driver.ManagedMem:
		err = d.lib.Free(hip.DevicePtr(m.Ptr))
	case driver.HostMem, driver.WriteCombinedMem:
		err = d.lib.HostFree(m.Host)
	case driver.CommMem:
		err = d.MemFree(m.Ptr)
	default:
		return d.refuse("free", hip.ErrorInvalidValue, "memory of unknown kind %d", int(m.Kind))
	}
	if err != nil {
		return d.fail("free", err, "%d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	return nil
}

func (d *device) Register(p unsafe.Pointer, size uint64) (driver.Ptr, error) {
	if !d.caps.HostRegister {
		return 0, d.refuse("register", driver.ErrUnsupported, "%d bytes at %p", size, p)
	}
	if err := d.lib.HostRegister(p, size, hip.HostRegisterPortable|hip.HostRegisterMapped); err != nil {
		return 0, d.fail("register", err, "%d bytes at %p", size, p)
	}
	dev, err := d.lib.HostGetDevicePointer(p, 0)
	if err != nil {
		return 0, d.fail("register", errors.Join(err, d.lib.HostUnregister(p)), "device address of %d bytes at %p", size, p)
	}
	return driver.Ptr(dev), nil
}

func (d *device) Prefetch(s driver.Stream, p driver.Ptr, n uint64, to driver.MemKind) error {
	const op = "prefetch"
	where := d.id
	switch {
	case !d.caps.Prefetch:
		return d.refuse(op, driver.ErrUnsupported, "%d bytes at %#x", n, uint64(p))
	case s <= defaultStreams:
		return d.noStream(op, s)
	case to == driver.HostMem:
		where = hip.CpuDeviceId
	case to != driver.DeviceMem:
		return d.refuse(op, hip.ErrorInvalidValue, "to memory of kind %d", int(to))
	}
	if n == 0 {
		return nil
	}
	return d.submit(op, func() error {
		if err := d.lib.MemPrefetchAsync(pointer(uintptr(p)), n, where, hip.Stream(s)); err != nil {
			return d.fail(op, err, "%d bytes at %#x in stream %#x", n, uint64(p), uintptr(s))
		}
		return nil
	})
}

func (d *device) Unregister(p unsafe.Pointer) error {
	if err := d.lib.HostUnregister(p); err != nil {
		return d.fail("unregister", err, "host memory at %p", p)
	}
	return nil
}

// pointer converts an address outside the Go heap to a pointer.
func pointer(addr uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}
