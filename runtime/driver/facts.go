package driver

import "fmt"

// MemInfo reports free memory ([Caps.MemInfo]).
type MemInfo interface {
	// MemInfo returns the free and the total bytes of the device's memory. Allocations of all
	// programs, and memory reserved by pools, are not free. MemInfo needs a bound thread.
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

// String returns "unknown", "none", "self", "PCIe", "xGMI" or "NVLink". For any other number n it
// returns "LinkKind(n)".
func (k LinkKind) String() string {
	names := [...]string{LinkUnknown: "unknown", LinkNone: "none", LinkSelf: "self", LinkPCIe: "PCIe", LinkXGMI: "xGMI", LinkNVLink: "NVLink"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("LinkKind(%d)", int(k))
	}
	return names[k]
}

// A Link describes the link from a device to the memory of another device.
type Link struct {
	Kind LinkKind
	// Rank is the rank of the link among the driver's links. 0 is the fastest. -1 means that there
	// is no link, or that the API has no ranks.
	Rank int
	Hops int // number of hops; 0 if the API does not count them, or there is no link
	// NVLinks is the number of NVLinks between the two devices, or between one of them and the
	// switches. It is 0 if there are none, or if the number is unknown.
	NVLinks int
	Atomics bool // kernels may use all atomic operations on the other device's memory
	Arrays  bool // kernels may use arrays (for textures) in the other device's memory

	// PCIe describes the path between the devices on PCI Express, even if they use another link.
	// The words are those of nvidia-smi. "PIX" means at most one switch, "PXB" several switches,
	// "PHB" the host's bridge, "NODE" bridges of one NUMA node, and "SYS" a connection between NUMA
	// nodes. "" means unknown.
	PCIe string
}

// Links reports links between devices ([Caps.Links]).
type Links interface {
	// Link describes the link from this device to the memory of another device of the driver, or to
	// its own memory. It needs a bound thread.
	Link(other Device) (Link, error)
}

// Occupancy reports how many blocks run at once ([Caps.Occupancy]).
type Occupancy interface {
	// Occupancy returns how many blocks of a kernel a multiprocessor holds at once. Each block has
	// the given threads and bytes of dynamic shared memory, which must be within the limits of a
	// launch. The result is 0 if a multiprocessor holds no such block. Clusters are not considered.
	// Occupancy needs a bound thread.
	Occupancy(f Function, threads int, shared uint32) (blocks int, err error)
}
