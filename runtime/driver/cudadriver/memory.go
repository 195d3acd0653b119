package cudadriver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

func (d *device) Alloc(kind driver.MemKind, size uint64) (driver.Mem, error) {
	m := driver.Mem{Kind: kind, Size: size}
	switch kind {
	case driver.DeviceMem:
		p, err := d.lib.MemAlloc(size)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of device memory", size)
		}
		m.Ptr = driver.Ptr(p)
	case driver.HostMem, driver.WriteCombinedMem:
		flags := uint32(cuda.MemHostAllocPortable | cuda.MemHostAllocDeviceMap)
		if kind == driver.WriteCombinedMem {
			flags |= cuda.MemHostAllocWriteCombined
		}
		host, err := d.lib.MemHostAlloc(size, flags)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of pinned host memory", size)
		}
		p, err := d.lib.MemHostGetDevicePointer(host, 0)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", errors.Join(err, d.lib.MemFreeHost(host)), "device address of %d bytes of pinned host memory", size)
		}
		m.Host, m.Ptr = host, driver.Ptr(p)
	case driver.ManagedMem:
		if !d.caps.Managed {
			return driver.Mem{}, d.fail("alloc", driver.ErrUnsupported, "%d bytes of managed memory", size)
		}
		p, err := d.lib.MemAllocManaged(size, cuda.MemAttachGlobal)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of managed memory", size)
		}
		m.Host, m.Ptr = hostPointer(p), driver.Ptr(p)
	case driver.CommMem:
		p, err := d.MemAlloc(size)
		if err != nil {
			return driver.Mem{}, d.fail("alloc", err, "%d bytes of memory for communicators", size)
		}
		m.Ptr = p
	case driver.ShareableMem:
		return d.allocShareable(size)
	default:
		return driver.Mem{}, d.fail("alloc", cuda.ErrorInvalidValue, "memory of unknown kind %d", int(kind))
	}
	return m, nil
}

// hostPointer converts an address that the driver returned and that the host can use. The garbage
// collector does not manage this memory.
func hostPointer(p cuda.DevicePtr) unsafe.Pointer {
	addr := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

func (d *device) Free(m driver.Mem) error {
	var err error
	switch m.Kind {
	case driver.DeviceMem, driver.ManagedMem:
		err = d.lib.MemFree(cuda.DevicePtr(m.Ptr))
	case driver.HostMem, driver.WriteCombinedMem:
		err = d.lib.MemFreeHost(m.Host)
	case driver.CommMem:
		err = d.MemFree(m.Ptr)
	case driver.ShareableMem:
		if !d.caps.MemSharing {
			return d.noMemSharing("free")
		}
		err = d.unmap(m)
	default:
		err = fmt.Errorf("memory of unknown kind %d: %w", int(m.Kind), cuda.ErrorInvalidValue)
	}
	if err != nil {
		return d.fail("free", err, "%d bytes at %#x", m.Size, uint64(m.Ptr))
	}
	return nil
}

func (d *device) Register(p unsafe.Pointer, size uint64) (driver.Ptr, error) {
	return d.register(p, size, d.caps.HostRegister, 0)
}

func (d *device) RegisterReadOnly(p unsafe.Pointer, size uint64) (driver.Ptr, error) {
	return d.register(p, size, d.caps.ReadOnlyRegister, cuda.MemHostRegisterReadOnly)
}

func (d *device) register(p unsafe.Pointer, size uint64, able bool, flags uint32) (driver.Ptr, error) {
	if !able {
		return 0, d.fail("register", driver.ErrUnsupported, "%d bytes at %p", size, p)
	}
	if err := d.lib.MemHostRegister(p, size, cuda.MemHostRegisterPortable|cuda.MemHostRegisterDeviceMap|flags); err != nil {
		return 0, d.fail("register", err, "%d bytes at %p", size, p)
	}
	dev, err := d.lib.MemHostGetDevicePointer(p, 0)
	if err != nil {
		return 0, d.fail("register", errors.Join(err, d.lib.MemHostUnregister(p)), "device address of %d bytes at %p", size, p)
	}
	return driver.Ptr(dev), nil
}

// Prefetch makes the context current, because CUDA's documentation does not say that the stream's
// context is enough.
func (d *device) Prefetch(s driver.Stream, p driver.Ptr, n uint64, to driver.MemKind) error {
	const op = "prefetch"
	location, number := location(int32(d.info.Index)), d.id
	switch {
	case !d.caps.Prefetch:
		return d.fail(op, driver.ErrUnsupported, "%d bytes at %#x", n, uint64(p))
	case s <= defaultStreams:
		return d.noStream(op, s)
	case to == driver.HostMem:
		location, number = cuda.MemLocation{Type: cuda.MemLocationTypeHost}, cuda.DeviceCPU
	case to != driver.DeviceMem:
		return d.fail(op, cuda.ErrorInvalidValue, "to memory of kind %d", int(to))
	}
	if n == 0 {
		return nil
	}
	return d.withContext(op, func() (err error) {
		if d.lib.HasSymbol("cuMemPrefetchAsync_v2") {
			err = d.lib.MemPrefetchAsync(cuda.DevicePtr(p), n, location, 0, cuda.Stream(s))
		} else {
			err = d.lib.MemPrefetchAsyncV1(cuda.DevicePtr(p), n, number, cuda.Stream(s))
		}
		if err != nil {
			return d.fail(op, err, "%d bytes at %#x in stream %#x", n, uint64(p), uintptr(s))
		}
		return nil
	})
}

func (d *device) Unregister(p unsafe.Pointer) error {
	if err := d.lib.MemHostUnregister(p); err != nil {
		return d.fail("unregister", err, "host memory at %p", p)
	}
	return nil
}
