// Package nvtopology finds the connection between two NVIDIA GPUs through NVML: the CUDA driver
// does not distinguish NVLink from PCI Express.
package nvtopology

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A Path is the connection between two GPUs.
type Path struct {
	NVLinks int                   // number of direct links; without any, the lower of the GPUs' numbers of links to switches
	PCIe    nvml.GpuTopologyLevel // distance on PCI Express, also given if there are NVLinks
}

// Abbreviation returns the name of a level in nvidia-smi topo -m: PIX, PXB, PHB, NODE or SYS; "" if
// there is none.
func Abbreviation(level nvml.GpuTopologyLevel) string {
	switch level {
	case nvml.TopologyInternal, nvml.TopologySingle:
		return "PIX"
	case nvml.TopologyMultiple:
		return "PXB"
	case nvml.TopologyHostbridge:
		return "PHB"
	case nvml.TopologyNode:
		return "NODE"
	case nvml.TopologySystem:
		return "SYS"
	}
	return ""
}

// A Library is the part of a started [nvml.Library] that this package uses.
type Library interface {
	DeviceGetHandleByPciBusId(pciBusId string) (nvml.Device, error)
	DeviceGetPciInfo(device nvml.Device) (nvml.PciInfo, error)
	DeviceGetTopologyCommonAncestor(device1, device2 nvml.Device) (nvml.GpuTopologyLevel, error)
	DeviceGetNvLinkState(device nvml.Device, link uint32) (nvml.EnableState, error)
	DeviceGetNvLinkRemoteDeviceType(device nvml.Device, link uint32) (nvml.IntNvLinkDeviceType, error)
	DeviceGetNvLinkRemotePciInfo(device nvml.Device, link uint32) (nvml.PciInfo, error)
}

var _ Library = (*nvml.Library)(nil)

// Open opens and starts NVML and never shuts it down: the process's end frees it.
func Open(opt nvml.Options) (*nvml.Library, error) {
	lib, err := nvml.Open(opt)
	if err != nil {
		return nil, err
	}
	if err := lib.Init(); err != nil {
		return nil, fmt.Errorf("start NVML: %w", tried.With(err, lib))
	}
	return lib, nil
}

// Between returns the path between two GPUs with different PCI addresses, such as 0000:3b:00.0.
func Between(lib Library, a, b string) (p Path, err error) {
	var ends [2]end
	for i, address := range [...]string{a, b} {
		if ends[i], err = find(lib, address); err != nil {
			return Path{}, err
		}
	}
	if p.PCIe, err = lib.DeviceGetTopologyCommonAncestor(ends[0].device, ends[1].device); err != nil {
		return Path{}, fmt.Errorf("nvmlDeviceGetTopologyCommonAncestor of %s and %s: %w", a, b, err)
	}
	direct, switched, err := nvlinks(lib, ends[0], ends[1])
	if err == nil && direct == 0 && switched > 0 {
		var theirs int
		if _, theirs, err = nvlinks(lib, ends[1], ends[0]); err == nil {
			direct = min(switched, theirs)
		}
	}
	p.NVLinks = direct
	return p, err
}

// An end is one of the two GPUs of a path, with its PCI address.
type end struct {
	device  nvml.Device
	address string
	pci     nvml.PciInfo
}

func find(lib Library, address string) (x end, err error) {
	x.address = address
	if x.device, err = lib.DeviceGetHandleByPciBusId(address); err != nil {
		return x, fmt.Errorf("nvmlDeviceGetHandleByPciBusId of %s: %w", address, err)
	}
	if x.pci, err = lib.DeviceGetPciInfo(x.device); err != nil {
		return x, fmt.Errorf("nvmlDeviceGetPciInfo of %s: %w", address, err)
	}
	return x, nil
}

// nvlinks counts the active NVLinks of one GPU to another, and the first GPU's active links to
// switches.
func nvlinks(lib Library, of, to end) (direct, switched int, err error) {
	for link := range uint32(nvml.NVLINKMaxLinks) {
		switch state, err := lib.DeviceGetNvLinkState(of.device, link); {
		case isNone(err):
			continue
		case err != nil:
			return 0, 0, fmt.Errorf("nvmlDeviceGetNvLinkState of %s, link %d: %w", of.address, link, err)
		case state != nvml.FeatureEnabled:
			continue
		}
		kind, err := lib.DeviceGetNvLinkRemoteDeviceType(of.device, link)
		if err == nil && kind == nvml.NVLINKDeviceTypeSwitch {
			switched++
			continue
		} else if err != nil && !isNone(err) {
			return 0, 0, fmt.Errorf("nvmlDeviceGetNvLinkRemoteDeviceType of %s, link %d: %w", of.address, link, err)
		}
		pci, err := lib.DeviceGetNvLinkRemotePciInfo(of.device, link)
		switch {
		case err != nil && !isNone(err):
			return 0, 0, fmt.Errorf("nvmlDeviceGetNvLinkRemotePciInfo of %s, link %d: %w", of.address, link, err)
		case err == nil && pci.Domain == to.pci.Domain && pci.Bus == to.pci.Bus && pci.Device == to.pci.Device:
			direct++
		}
	}
	return direct, switched, nil
}

// isNone reports whether an error means that the link does not exist or that NVML cannot tell.
func isNone(err error) bool {
	return errors.Is(err, nvml.ErrorNotSupported) || errors.Is(err, nvml.ErrorInvalidArgument) || errors.Is(err, dl.ErrSymbol)
}
