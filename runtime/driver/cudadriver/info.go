package cudadriver

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/sysfs"
	"github.com/puregpu/puregpu/runtime/driver"
)

// CUDA releases in which attributes were added. Older drivers are not asked for these attributes,
// because the call would fail.
const (
	clusters = 11080 // DeviceAttributeClusterLaunch, and most launch attributes
	hostNUMA = 12020 // DeviceAttributeHostNUMAID
)

// describe reads the fields of a device's Info.
func describe(lib *cuda.Library, index int, id cuda.Device) (driver.Info, error) {
	info := driver.Info{Index: index, Version: int(lib.Version()), DriverVersion: sysfs.ModuleVersion("nvidia"), NUMANode: -1}
	var err error
	if info.Name, err = lib.DeviceGetName(id); err != nil {
		return info, fmt.Errorf("name: %w", err)
	}
	if info.Memory, err = lib.DeviceTotalMem(id); err != nil {
		return info, fmt.Errorf("size of memory: %w", err)
	}
	// The newer function returns the UUID of a MIG instance, the older function the UUID of the
	// instance's GPU.
	uuid, hasNewer := lib.DeviceGetUuidV1, lib.HasSymbol("cuDeviceGetUuid_v2")
	if hasNewer {
		uuid = lib.DeviceGetUuid
	}
	u, err := uuid(id)
	if err != nil {
		return info, fmt.Errorf("UUID: %w", err)
	}
	if hasNewer {
		whole, err := lib.DeviceGetUuidV1(id)
		info.MIG = err == nil && whole != u
	}
	info.UUID = u.Bytes
	// Not every device is on a bus, so a missing address is not an error.
	if pci, err := lib.DeviceGetPCIBusId(id); err == nil {
		info.PCI = strings.ToLower(pci)
	}
	var integrated, cooperative, cluster int
	type attribute struct {
		attr cuda.DeviceAttribute
		to   *int
	}
	attributes := []attribute{
		{cuda.DeviceAttributeComputeCapabilityMajor, &info.Major},
		{cuda.DeviceAttributeComputeCapabilityMinor, &info.Minor},
		{cuda.DeviceAttributeMultiprocessorCount, &info.Processors},
		{cuda.DeviceAttributeWarpSize, &info.WarpSize},
		{cuda.DeviceAttributeMaxThreadsPerBlock, &info.MaxThreads},
		{cuda.DeviceAttributeMaxBlockDimX, &info.MaxBlock[0]},
		{cuda.DeviceAttributeMaxBlockDimY, &info.MaxBlock[1]},
		{cuda.DeviceAttributeMaxBlockDimZ, &info.MaxBlock[2]},
		{cuda.DeviceAttributeMaxGridDimX, &info.MaxGrid[0]},
		{cuda.DeviceAttributeMaxGridDimY, &info.MaxGrid[1]},
		{cuda.DeviceAttributeMaxGridDimZ, &info.MaxGrid[2]},
		{cuda.DeviceAttributeMaxSharedMemoryPerBlock, &info.SharedMem},
		{cuda.DeviceAttributeMaxSharedMemoryPerBlockOptin, &info.SharedOptIn},
		{cuda.DeviceAttributeIntegrated, &integrated},
		{cuda.DeviceAttributeClockRate, &info.Clock},
		{cuda.DeviceAttributeMemoryClockRate, &info.MemoryClock},
		{cuda.DeviceAttributeGlobalMemoryBusWidth, &info.MemoryBus},
		{cuda.DeviceAttributeL2CacheSize, &info.L2},
		{cuda.DeviceAttributeAsyncEngineCount, &info.CopyEngines},
		{cuda.DeviceAttributeMaxRegistersPerBlock, &info.Registers},
		{cuda.DeviceAttributeMaxThreadsPerMultiprocessor, &info.ProcessorThreads},
		{cuda.DeviceAttributeMaxBlocksPerMultiprocessor, &info.ProcessorBlocks},
		{cuda.DeviceAttributeMaxRegistersPerMultiprocessor, &info.ProcessorRegisters},
		{cuda.DeviceAttributeMaxSharedMemoryPerMultiprocessor, &info.ProcessorSharedMem},
		{cuda.DeviceAttributeCooperativeLaunch, &cooperative},
	}
	if lib.Version() >= clusters {
		attributes = append(attributes, attribute{cuda.DeviceAttributeClusterLaunch, &cluster})
	}
	if lib.Version() >= hostNUMA {
		attributes = append(attributes, attribute{cuda.DeviceAttributeHostNUMAID, &info.NUMANode})
	}
	for _, a := range attributes {
		v, err := lib.DeviceGetAttribute(a.attr, id)
		if err != nil {
			return info, fmt.Errorf("%v: %w", a.attr, err)
		}
		*a.to = int(v)
	}
	info.Arch = fmt.Sprintf("sm_%d%d", info.Major, info.Minor)
	info.SharedOptIn = max(info.SharedOptIn, info.SharedMem) // the attribute is 0 for devices without the opt-in
	info.Integrated, info.Cooperative, info.Clusters = integrated != 0, cooperative != 0, cluster != 0
	if info.NUMANode < 0 { // drivers before hostNUMA are not asked
		info.NUMANode = sysfs.NUMANode(info.PCI)
	}
	return info, nil
}
