package simdriver

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Alloc allocates memory. The memory is zero, unlike a GPU's.
func (v *device) Alloc(kind driver.MemKind, size uint64) (driver.Mem, error) {
	if err := v.enter(codeAlloc, true); err != nil {
		return driver.Mem{}, err
	}
	if size == 0 {
		return driver.Mem{}, failf(codeAlloc, "0 bytes: %w", ErrInvalidValue)
	}
	var a *allocation
	var err error
	switch kind {
	case driver.CommMem:
		if !v.d.caps.Comms {
			return driver.Mem{}, failf(codeAlloc, "memory for communicators on device %d: %w", v.index, driver.ErrUnsupported)
		}
		fallthrough
	case driver.DeviceMem:
		a, err = v.space.alloc(v, kind, size, v.d.memory, nil)
	case driver.ShareableMem:
		if !v.d.caps.MemSharing {
			return driver.Mem{}, failf(codeAlloc, "shareable memory on device %d: %w", v.index, driver.ErrUnsupported)
		}
		a, err = v.space.alloc(v, kind, size, v.d.memory, nil)
	case driver.ManagedMem:
		if !v.d.caps.Managed {
			return driver.Mem{}, failf(codeAlloc, "managed memory on device %d: %w", v.index, driver.ErrUnsupported)
		}
		fallthrough
	case driver.HostMem, driver.WriteCombinedMem:
		a, err = v.d.host.alloc(v, kind, size, nil)
	default:
		err = fmt.Errorf("memory of kind %d: %w", kind, ErrInvalidValue)
	}
	if err != nil {
		return driver.Mem{}, fail(codeAlloc, err)
	}
	return driver.Mem{Kind: kind, Ptr: a.base, Host: a.host, Size: size}, nil
}

// Free frees memory of Alloc or ImportShareable, but not of AllocAsync. It does not wait. Later
// uses of the memory lose the device.
func (v *device) Free(m driver.Mem) error {
	err, ok := v.end(codeFree)
	if !ok {
		return err
	}
	var bad error
	if m.Kind == driver.CommMem && err == nil {
		if bad := v.unregistered(m); bad != nil {
			return bad
		}
	}
	own := m.Kind.OfDevice()
	switch {
	case own && v.d.owner(m.Ptr) == nil:
		bad = fmt.Errorf("memory at %#x: %w: the address is in no device's range", uint64(m.Ptr), ErrInvalidValue)
	case own:
		bad = v.d.owner(m.Ptr).space.release(m.Ptr, v, m.Kind)
	default:
		bad = v.d.host.release(m.Ptr, v, m.Kind)
	}
	if bad != nil {
		return fail(codeFree, bad)
	}
	return err
}

// Register makes memory of the program accessible to the devices.
func (v *device) Register(p unsafe.Pointer, size uint64) (driver.Ptr, error) {
	return v.register(p, size, v.d.caps.HostRegister, false)
}

// RegisterReadOnly is Register for memory that devices must not write. Fills, copies, uploads and
// WriteValue lose the device if they write to the memory through the address that RegisterReadOnly
// returned.
func (v *device) RegisterReadOnly(p unsafe.Pointer, size uint64) (driver.Ptr, error) {
	return v.register(p, size, v.d.caps.ReadOnlyRegister, true)
}

func (v *device) register(p unsafe.Pointer, size uint64, able, readOnly bool) (driver.Ptr, error) {
	if err := v.enter(codeRegister, true); err != nil {
		return 0, err
	}
	if !able {
		return 0, failf(codeRegister, "device %d: %w", v.index, driver.ErrUnsupported)
	}
	if p == nil || size == 0 || size > 1<<47 {
		return 0, failf(codeRegister, "%d bytes at %#x: %w", size, uintptr(p), ErrInvalidValue)
	}
	if err := v.d.host.register(v, p, size, readOnly); err != nil {
		return 0, fail(codeRegister, err)
	}
	return driver.Ptr(uintptr(p)), nil
}

// Unregister undoes Register or RegisterReadOnly.
func (v *device) Unregister(p unsafe.Pointer) error {
	err, ok := v.end(codeUnregister)
	if !ok {
		return err
	}
	if _, bad := v.d.host.remove(driver.Ptr(uintptr(p)), v, driver.HostMem, true); bad != nil {
		return fail(codeUnregister, bad)
	}
	return err
}
