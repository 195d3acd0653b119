package driver

import "fmt"

// MemInfo reports free memory ([Caps.MemInfo]).
type MemInfo interface {
	// MemInfo returns the free and the total bytes of the device's memory. Allocations of all
	// programs, and memory reserved by pools, are not free. Creating.
	MemInfo() (free, total uint64, err error)
}

// A LinkKind is the hardware of the link between two devices.
type LinkKind int

// The kinds of links.
const (
	LinkUnknown LinkKind = iota // an unknown kind of link
	LinkNone                    // no direct link: EnablePeer is refused, and copies go through the host
	LinkSelf                    // the two are the same device
	LinkPCIe                    // PCI Express
	LinkXGMI                    // AMD's Infinity Fabric
	LinkNVLink                  // NVIDIA's NVLink, direct or over switches
)

// String returns "unknown", "none", "self", "PCIe", "xGMI" or "NVLink".
func (k LinkKind) String() string {
	names := [...]string{LinkUnknown: "unknown", LinkNone: "none", LinkSelf: "self", LinkPCIe: "PCIe", LinkXGMI: "xGMI", LinkNVLink: "NVLink"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("LinkKind(%d)", int(k))
	}
	return names[k]
}

// A Link describes the link from a device to another one's memory.
type Link struct {
	Kind LinkKind
	// Rank is the rank among the links of the driver: 0 is the fastest, -1 means no link, or an API
	// without ranks.
	Rank int
	Hops int // 0 if the API does not count them, or there is no link
	// NVLinks is the number of NVLinks of either device to the other one, or to switches between
	// them; 0 if there are none, or unknown.
	NVLinks int
	Atomics bool // kernels may use all atomic operations on the other device's memory
	Arrays  bool // kernels may use arrays (for textures) of the other device

	// PCIe describes the path between the two on PCI Express, even if another link is used, as
	// nvidia-smi does: "PIX" has at most one switch, "PXB" several switches, "PHB" the host's
	// bridge, "NODE" bridges of one NUMA node, and "SYS" a connection of NUMA nodes. "" if unknown.
	PCIe string
}

// Links reports links between devices ([Caps.Links]).
type Links interface {
	// Link describes the link from this device to the memory of another one of the driver, or of
	// itself. Creating.
	Link(other Device) (Link, error)
}

// Occupancy reports how many blocks run at once ([Caps.Occupancy]).
type Occupancy interface {
	// Occupancy returns how many blocks of a kernel a multiprocessor holds at once, each with the
	// given threads and bytes of dynamic shared memory; 0 if it holds none. The kernel must be
	// launchable with both. Clusters are not considered. Creating.
	Occupancy(f Function, threads int, shared uint32) (blocks int, err error)
}
