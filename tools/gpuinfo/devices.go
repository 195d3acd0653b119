package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/dl"
)

// cudaDriver has the methods of an open CUDA driver that gpuinfo calls.
type cudaDriver interface {
	Init(flags uint32) error
	DeviceGetCount() (int32, error)
	DeviceGet(ordinal int32) (cuda.Device, error)
	DeviceGetName(dev cuda.Device) (string, error)
	DeviceGetUuid(dev cuda.Device) (cuda.UUID, error)
	DeviceGetUuidV1(dev cuda.Device) (cuda.UUID, error)
	DeviceTotalMem(dev cuda.Device) (uint64, error)
	DeviceGetAttribute(attrib cuda.DeviceAttribute, dev cuda.Device) (int32, error)
	DeviceGetP2PAttribute(attrib cuda.DeviceP2PAttribute, from, to cuda.Device) (int32, error)
	DevicePrimaryCtxRetain(dev cuda.Device) (cuda.Context, error)
	DevicePrimaryCtxRelease(dev cuda.Device) error
	CtxPushCurrent(ctx cuda.Context) error
	CtxPopCurrent() (cuda.Context, error)
	MemGetInfo() (free, total uint64, err error)
}

// cudaDevices returns the driver's facts about each device, with the free memory if memory is set.
// The field Errors of a Device has the failed queries.
func cudaDevices(lib cudaDriver, memory bool) ([]Device, error) {
	if err := lib.Init(0); err != nil {
		return nil, fmt.Errorf("cuInit: %w", err)
	}
	n, err := lib.DeviceGetCount()
	if err != nil {
		return nil, fmt.Errorf("cuDeviceGetCount: %w", err)
	}
	if n == 0 {
		return nil, cuda.ErrorNoDevice
	}
	devices := make([]Device, n)
	for i := range devices {
		d := &devices[i]
		*d = Device{Package: "cuda", Index: i}
		dev, err := lib.DeviceGet(int32(i))
		if d.failed("cuDeviceGet", err) {
			continue
		}
		d.Name, err = lib.DeviceGetName(dev)
		d.failed("cuDeviceGetName", err)
		id, err := lib.DeviceGetUuid(dev)
		if errors.Is(err, dl.ErrSymbol) { // CUDA before 11.4, where a MIG instance has the UUID of its GPU
			id, err = lib.DeviceGetUuidV1(dev)
		} else if err == nil {
			whole, err := lib.DeviceGetUuidV1(dev)
			d.MIG = err == nil && whole != id
		}
		if !d.failed("cuDeviceGetUuid", err) {
			d.UUID = formatUUID(id.Bytes)
		}
		d.TotalMemory, err = lib.DeviceTotalMem(dev)
		d.failed("cuDeviceTotalMem", err)
		get := func(a cuda.DeviceAttribute) (int64, error) {
			v, err := lib.DeviceGetAttribute(a, dev)
			return int64(v), err
		}
		d.Attributes = map[string]int64{}
		for _, a := range attributes {
			v, err := get(a.cuda)
			if errors.Is(err, cuda.ErrorInvalidValue) || errors.Is(err, cuda.ErrorNotSupported) {
				continue // the attribute is newer than the driver
			}
			if !d.failed("cuDeviceGetAttribute("+a.cuda.String()+")", err) {
				d.Attributes[a.name] = v
			}
		}
		d.PCIAddress = pciAddress(get, cuda.DeviceAttributePCIDomainID, cuda.DeviceAttributePCIBusID, cuda.DeviceAttributePCIDeviceID)
		d.ComputeCapability = capability(get, cuda.DeviceAttributeComputeCapabilityMajor, cuda.DeviceAttributeComputeCapabilityMinor)
		d.findNode()
		if memory {
			free, err := cudaFree(lib, dev)
			if !d.failed("free memory", err) {
				d.FreeMemory = &free
			}
		}
	}
	return devices, nil
}

// cudaFree returns the free memory of a device, from the device's primary context.
func cudaFree(lib cudaDriver, dev cuda.Device) (free uint64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, err := lib.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return 0, fmt.Errorf("cuDevicePrimaryCtxRetain: %w", err)
	}
	defer lib.DevicePrimaryCtxRelease(dev)
	if err := lib.CtxPushCurrent(ctx); err != nil {
		return 0, fmt.Errorf("cuCtxPushCurrent: %w", err)
	}
	defer lib.CtxPopCurrent()
	if free, _, err = lib.MemGetInfo(); err != nil {
		return 0, fmt.Errorf("cuMemGetInfo: %w", err)
	}
	return free, nil
}

// findNode takes the nearest NUMA node from the operating system if the library has not reported
// one.
func (d *Device) findNode() {
	if _, told := d.Attributes[hostNUMANode]; told {
		return
	}
	if n := sysfs.NUMANode(d.PCIAddress); n >= 0 {
		d.Attributes[hostNUMANode] = int64(n)
	}
}

// hipRuntime has the methods of an open HIP runtime that gpuinfo calls.
type hipRuntime interface {
	GetDeviceCount() (int32, error)
	DeviceGet(ordinal int32) (hip.Device, error)
	DeviceGetName(device hip.Device) (string, error)
	DeviceGetUuid(device hip.Device) (hip.UUID, error)
	DeviceTotalMem(device hip.Device) (uint64, error)
	DeviceGetAttribute(attr hip.DeviceAttribute, deviceId int32) (int32, error)
	DeviceGetP2PAttribute(attr hip.DeviceP2PAttr, from, to int32) (int32, error)
	ExtGetLinkTypeAndHopCount(from, to int32) (kind, hops uint32, err error)
	SetDevice(deviceId int32) error
	MemGetInfo() (free, total uint64, err error)
}

// hipDevices returns HIP's facts about each device, like cudaDevices. It does not call hipInit,
// because HIP initializes itself, and because hipInit of HIP 5.2 has an unclear result if there is
// no device.
func hipDevices(lib hipRuntime, memory bool) ([]Device, error) {
	n, err := lib.GetDeviceCount()
	if err != nil {
		return nil, fmt.Errorf("hipGetDeviceCount: %w", err)
	}
	if n == 0 {
		return nil, hip.ErrorNoDevice
	}
	devices := make([]Device, n)
	for i := range devices {
		d := &devices[i]
		*d = Device{Package: "hip", Index: i}
		dev, err := lib.DeviceGet(int32(i))
		if d.failed("hipDeviceGet", err) {
			continue
		}
		d.Name, err = lib.DeviceGetName(dev)
		d.failed("hipDeviceGetName", err)
		if id, err := lib.DeviceGetUuid(dev); !errors.Is(err, dl.ErrSymbol) && !d.failed("hipDeviceGetUuid", err) {
			d.UUID = formatUUID(id.Bytes)
		}
		d.TotalMemory, err = lib.DeviceTotalMem(dev)
		d.failed("hipDeviceTotalMem", err)
		get := func(a hip.DeviceAttribute) (int64, error) {
			v, err := lib.DeviceGetAttribute(a, int32(i))
			return int64(v), err
		}
		d.Attributes = map[string]int64{}
		for _, a := range attributes {
			if a.hip == none {
				continue
			}
			v, err := get(a.hip)
			if errors.Is(err, hip.ErrorInvalidValue) || errors.Is(err, hip.ErrorNotSupported) {
				continue
			}
			if !d.failed("hipDeviceGetAttribute("+a.hip.String()+")", err) {
				d.Attributes[a.name] = v
			}
		}
		d.PCIAddress = pciAddress(get, hip.DeviceAttributePciDomainID, hip.DeviceAttributePciBusId, hip.DeviceAttributePciDeviceId)
		d.ComputeCapability = capability(get, hip.DeviceAttributeComputeCapabilityMajor, hip.DeviceAttributeComputeCapabilityMinor)
		d.findNode()
		if memory {
			free, err := hipFree(lib, int32(i))
			if !d.failed("free memory", err) {
				d.FreeMemory = &free
			}
		}
	}
	return devices, nil
}

// hipFree returns the free memory of a device.
func hipFree(lib hipRuntime, device int32) (free uint64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := lib.SetDevice(device); err != nil {
		return 0, fmt.Errorf("hipSetDevice: %w", err)
	}
	if free, _, err = lib.MemGetInfo(); err != nil {
		return 0, fmt.Errorf("hipMemGetInfo: %w", err)
	}
	return free, nil
}

// failed records err if err is not nil, and reports whether it did.
func (d *Device) failed(what string, err error) bool {
	if err != nil {
		d.Errors = append(d.Errors, fmt.Sprintf("%s: %v", what, err))
	}
	return err != nil
}

func pciAddress[A any](get func(A) (int64, error), domain, bus, device A) string {
	var v [3]int64
	for i, a := range []A{domain, bus, device} {
		var err error
		if v[i], err = get(a); err != nil {
			return ""
		}
	}
	return fmt.Sprintf("%04x:%02x:%02x.0", v[0], v[1], v[2])
}

func capability[A any](get func(A) (int64, error), major, minor A) string {
	x, err := get(major)
	if err != nil {
		return ""
	}
	y, err := get(minor)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", x, y)
}

// formatUUID formats a UUID like nvidia-smi. HIP's UUIDs are text already.
func formatUUID(id [16]byte) string {
	if !slices.ContainsFunc(id[:], func(c byte) bool { return c <= ' ' || c > '~' }) {
		return "GPU-" + string(id[:])
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
