package cudadriver

import (
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// describe asks for everything that a device's Info has.
func describe(lib *cuda.Library, index int, id cuda.Device) (driver.Info, error) {
	info := driver.Info{Index: index}
	var err error
	if info.Name, err = lib.DeviceGetName(id); err != nil {
		return info, fmt.Errorf("name: %w", err)
	}
	if info.Memory, err = lib.DeviceTotalMem(id); err != nil {
		return info, fmt.Errorf("size of memory: %w", err)
	}
	// The newer form tells the parts of a partitioned GPU apart.
	uuid := lib.DeviceGetUuidV1
	if lib.HasSymbol("cuDeviceGetUuid_v2") {
		uuid = lib.DeviceGetUuid
	}
	u, err := uuid(id)
	if err != nil {
		return info, fmt.Errorf("UUID: %w", err)
	}
	info.UUID = u.Bytes
	// Not every device is on a bus, and nothing but a label is lost.
	if pci, err := lib.DeviceGetPCIBusId(id); err == nil {
		info.PCI = strings.ToLower(pci)
	}
	var major, minor, integrated int
	for _, a := range []struct {
		attr cuda.DeviceAttribute
		to   *int
	}{
		{cuda.DeviceAttributeComputeCapabilityMajor, &major},
		{cuda.DeviceAttributeComputeCapabilityMinor, &minor},
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
	} {
		v, err := lib.DeviceGetAttribute(a.attr, id)
		if err != nil {
			return info, fmt.Errorf("%v: %w", a.attr, err)
		}
		*a.to = int(v)
	}
	info.Arch = fmt.Sprintf("sm_%d%d", major, minor)
	info.SharedOptIn = max(info.SharedOptIn, info.SharedMem) // devices without the choice say 0
	info.Integrated = integrated != 0
	return info, nil
}
