package hipdriver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/driver"
)

// describe reads the fields of a device's Info, and the device's architecture with its features.
func describe(lib *hip.Library, index int) (info driver.Info, target string, err error) {
	info = driver.Info{Index: index, Version: int(lib.Version()), DriverVersion: sysfs.ModuleVersion("amdgpu")}
	id, err := lib.DeviceGet(int32(index))
	if err != nil {
		return info, "", err
	}
	if info.Name, err = lib.DeviceGetName(id); err != nil {
		return info, "", fmt.Errorf("name: %w", err)
	}
	if info.Memory, err = lib.DeviceTotalMem(id); err != nil {
		return info, "", fmt.Errorf("size of memory: %w", err)
	}
	// Not every device has a UUID and a PCI address. They are only labels, so an error does not
	// matter.
	if u, err := lib.DeviceGetUuid(id); err == nil {
		info.UUID = u.Bytes
	} else {
		lib.GetLastError()
	}
	if pci, err := lib.DeviceGetPCIBusId(int32(index)); err == nil {
		info.PCI = strings.ToLower(pci)
	} else {
		lib.GetLastError()
	}
	if target, err = gcnArchName(lib, int32(index)); err != nil {
		return info, "", err
	}
	info.Arch, _, _ = strings.Cut(target, ":")
	if info.Name == "" { // the system lacks the file with the names of GPUs
		info.Name = info.Arch
	}
	info.NUMANode = sysfs.NUMANode(info.PCI) // HIP does not report the NUMA node
	var optIn, integrated, cooperative int
	for _, a := range []struct {
		attr  hip.DeviceAttribute
		to    *int
		needs bool // if false, an older library may not know the attribute; then the number is 0
	}{
		{hip.DeviceAttributeMultiprocessorCount, &info.Processors, true},
		{hip.DeviceAttributeWarpSize, &info.WarpSize, true},
		{hip.DeviceAttributeMaxThreadsPerBlock, &info.MaxThreads, true},
		{hip.DeviceAttributeMaxBlockDimX, &info.MaxBlock[0], true},
		{hip.DeviceAttributeMaxBlockDimY, &info.MaxBlock[1], true},
		{hip.DeviceAttributeMaxBlockDimZ, &info.MaxBlock[2], true},
		{hip.DeviceAttributeMaxGridDimX, &info.MaxGrid[0], true},
		{hip.DeviceAttributeMaxGridDimY, &info.MaxGrid[1], true},
		{hip.DeviceAttributeMaxGridDimZ, &info.MaxGrid[2], true},
		{hip.DeviceAttributeMaxSharedMemoryPerBlock, &info.SharedMem, true},
		{hip.DeviceAttributeIntegrated, &integrated, true},
		// In HIP a launch may use that much without a call by which the kernel opts in.
		{hip.DeviceAttributeSharedMemPerBlockOptin, &optIn, false},
		{hip.DeviceAttributeComputeCapabilityMajor, &info.Major, false},
		{hip.DeviceAttributeComputeCapabilityMinor, &info.Minor, false},
		{hip.DeviceAttributeClockRate, &info.Clock, false},
		{hip.DeviceAttributeMemoryClockRate, &info.MemoryClock, false},
		{hip.DeviceAttributeMemoryBusWidth, &info.MemoryBus, false},
		{hip.DeviceAttributeL2CacheSize, &info.L2, false},
		{hip.DeviceAttributeAsyncEngineCount, &info.CopyEngines, false},
		{hip.DeviceAttributeMaxRegistersPerBlock, &info.Registers, false},
		{hip.DeviceAttributeMaxThreadsPerMultiProcessor, &info.ProcessorThreads, false},
		{hip.DeviceAttributeMaxBlocksPerMultiProcessor, &info.ProcessorBlocks, false},
		{hip.DeviceAttributeMaxRegistersPerMultiprocessor, &info.ProcessorRegisters, false},
		{hip.DeviceAttributeMaxSharedMemoryPerMultiprocessor, &info.ProcessorSharedMem, false},
		{hip.DeviceAttributeCooperativeLaunch, &cooperative, false},
	} {
		v, err := lib.DeviceGetAttribute(a.attr, int32(index))
		switch {
		case err == nil:
			*a.to = int(v)
		case !a.needs && errors.Is(err, hip.ErrorInvalidValue):
			lib.GetLastError()
		default:
			return info, "", fmt.Errorf("%v: %w", a.attr, err)
		}
	}
	info.SharedOptIn = max(optIn, info.SharedMem)
	info.Integrated, info.Cooperative = integrated != 0, cooperative != 0
	return info, target, nil
}

// gcnArchName returns a name such as "gfx90a:sramecc+:xnack-", or "" if the library does not report
// it. The name is only in the struct of a device's properties. The layout of the struct depends on
// the name of the function that returns it: hipGetDeviceProperties uses the layout of headers
// before 6.0.
func gcnArchName(lib *hip.Library, index int32) (string, error) {
	var text []byte
	switch {
	case lib.HasSymbol("hipGetDevicePropertiesR0600"):
		p, err := lib.GetDeviceProperties(index)
		if err != nil {
			return "", fmt.Errorf("properties: %w", err)
		}
		text = p.GcnArchName[:]
	case lib.HasSymbol("hipGetDeviceProperties"):
		p, err := lib.GetDevicePropertiesR0000(index)
		if err != nil {
			return "", fmt.Errorf("properties: %w", err)
		}
		text = p.GcnArchName[:]
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}
