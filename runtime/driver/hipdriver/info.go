package hipdriver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// describe asks for everything that a device's Info has, and for its architecture with the features.
func describe(lib *hip.Library, index int) (info driver.Info, target string, err error) {
	info = driver.Info{Index: index}
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
	// Not every device has the next two, and nothing but a label is lost.
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
	if info.Name == "" { // where the system has no list of names
		info.Name = info.Arch
	}
	var optIn, integrated int
	for _, a := range []struct {
		attr hip.DeviceAttribute
		to   *int
	}{
		{hip.DeviceAttributeMultiprocessorCount, &info.Processors},
		{hip.DeviceAttributeWarpSize, &info.WarpSize},
		{hip.DeviceAttributeMaxThreadsPerBlock, &info.MaxThreads},
		{hip.DeviceAttributeMaxBlockDimX, &info.MaxBlock[0]},
		{hip.DeviceAttributeMaxBlockDimY, &info.MaxBlock[1]},
		{hip.DeviceAttributeMaxBlockDimZ, &info.MaxBlock[2]},
		{hip.DeviceAttributeMaxGridDimX, &info.MaxGrid[0]},
		{hip.DeviceAttributeMaxGridDimY, &info.MaxGrid[1]},
		{hip.DeviceAttributeMaxGridDimZ, &info.MaxGrid[2]},
		{hip.DeviceAttributeMaxSharedMemoryPerBlock, &info.SharedMem},
		{hip.DeviceAttributeIntegrated, &integrated},
	} {
		v, err := lib.DeviceGetAttribute(a.attr, int32(index))
		if err != nil {
			return info, "", fmt.Errorf("%v: %w", a.attr, err)
		}
		*a.to = int(v)
	}
	// A kernel has all of it without asking. Older releases do not answer.
	v, err := lib.DeviceGetAttribute(hip.DeviceAttributeSharedMemPerBlockOptin, int32(index))
	switch {
	case err == nil:
		optIn = int(v)
	case errors.Is(err, hip.ErrorInvalidValue):
		lib.GetLastError()
	default:
		return info, "", fmt.Errorf("%v: %w", hip.DeviceAttributeSharedMemPerBlockOptin, err)
	}
	info.SharedOptIn = max(optIn, info.SharedMem)
	info.Integrated = integrated != 0
	return info, target, nil
}

// gcnArchName returns "gfx90a:sramecc+:xnack-", or "" if the library does not tell. Only the properties have it, and which
// layout a library fills in hangs on the function's name: hipGetDeviceProperties fills in the one that headers before 6.0 had.
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
