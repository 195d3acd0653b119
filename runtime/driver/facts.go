package driver

import "fmt"

// MemInfo is what a [Device] implements besides where [Caps.MemInfo] is set.
type MemInfo interface {
	// MemInfo returns how many bytes of the device's memory are free now, and how many there are in all. What any program has
	// allocated is not free, nor what pools have reserved. Creating.
	MemInfo() (free, total uint64, err error)
}

// A LinkKind says what the way between two devices is made of.
type LinkKind int

// The kinds of links.
const (
	LinkUnknown LinkKind = iota // a way of which nobody tells the kind
	LinkNone                    // no direct way: EnablePeer is refused, and copies go through the host
	LinkSelf                    // the two are the same device
	LinkPCIe                    // PCI Express
	LinkXGMI                    // AMD's Infinity Fabric
	LinkNVLink                  // NVIDIA's NVLink, from one to the other or over switches
)

// String returns "unknown", "none", "self", "PCIe", "xGMI" or "NVLink".
func (k LinkKind) String() string {
	names := [...]string{LinkUnknown: "unknown", LinkNone: "none", LinkSelf: "self", LinkPCIe: "PCIe", LinkXGMI: "xGMI", LinkNVLink: "NVLink"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("LinkKind(%d)", int(k))
	}
	return names[k]
}

// A Link is what an API tells of the way from a device to another one's memory.
type Link struct {
	Kind    LinkKind
	Rank    int  // among the links of the driver: 0 is the fastest; -1 where the API has no ranks, or there is no way
	Hops    int  // 0 where the API does not count them, or there is no way
	NVLinks int  // of either device, to the other one or to switches between them; 0 where there are none, or it is not told
	Atomics bool // all atomic operations of a kernel work on the other device's memory as they do on its own
	Arrays  bool // arrays, which textures are made of, can be used over it

	// PCIe says what lies between the two on PCI Express, also where there is another way or none: "PIX" is one switch at the most, "PXB" several,
	// "PHB" the host's bridge, "NODE" bridges of one NUMA node, and "SYS" what connects NUMA nodes, as nvidia-smi has it; "" where it is not told.
	PCIe string
}

// Links is what a [Device] implements besides where [Caps.Links] is set.
type Links interface {
	// Link describes the way from this device to the memory of another one of the driver, or of itself. Creating.
	Link(other Device) (Link, error)
}

// Occupancy is what a [Device] implements besides where [Caps.Occupancy] is set.
type Occupancy interface {
	// Occupancy returns how many blocks of a kernel a multiprocessor holds at once, each of so many threads and with so many bytes
	// of dynamic shared memory: 0 if it holds none. Both are such that the kernel can be launched with them. Clusters are left out
	// of account. Creating.
	Occupancy(f Function, threads int, shared uint32) (blocks int, err error)
}
