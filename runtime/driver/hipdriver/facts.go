package hipdriver

import (
	"errors"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

func (d *device) MemInfo() (free, total uint64, err error) {
	if free, total, err = d.lib.MemGetInfo(); err != nil {
		return 0, 0, d.fail("memory info", err, "size of memory")
	}
	return free, total, nil
}

// Kinds of links that hipExtGetLinkTypeAndHopCount returns. The numbers are HSA's
// (hsa_amd_link_info_type_t).
const (
	linkPCIe = 2
	linkXGMI = 4
)

// Link returns no rank. HIP has an attribute for the rank, but in the sources of 5.2 to 7.2 the
// attribute's value is the kind of the link.
func (d *device) Link(other driver.Device) (driver.Link, error) {
	const op = "link"
	o, err := d.peer(op, other)
	if err != nil {
		return driver.Link{}, err
	}
	if o.id == d.id { // HIP would return an error
		return driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}, nil
	}
	l := driver.Link{Rank: -1}
	access, err := d.lib.DeviceGetP2PAttribute(hip.DevP2PAttrAccessSupported, d.id, o.id)
	if err != nil {
		return driver.Link{}, d.fail(op, err, "%v to device %d", hip.DevP2PAttrAccessSupported, o.info.Index)
	}
	if access == 0 {
		l.Kind = driver.LinkNone
		return l, nil
	}
	for _, a := range []struct {
		attr hip.DeviceP2PAttr
		to   *bool
	}{
		{hip.DevP2PAttrNativeAtomicSupported, &l.Atomics},
		{hip.DevP2PAttrHipArrayAccessSupported, &l.Arrays},
	} {
		v, err := d.lib.DeviceGetP2PAttribute(a.attr, d.id, o.id)
		if unknownLink(err) {
			d.lib.GetLastError()
		} else if err != nil {
			return driver.Link{}, d.fail(op, err, "%v to device %d", a.attr, o.info.Index)
		}
		*a.to = err == nil && v != 0
	}
	if !d.lib.HasSymbol("hipExtGetLinkTypeAndHopCount") {
		return l, nil
	}
	kind, hops, err := d.lib.ExtGetLinkTypeAndHopCount(d.id, o.id)
	if unknownLink(err) {
		d.lib.GetLastError()
		return l, nil
	} else if err != nil {
		return driver.Link{}, d.fail(op, err, "kind of the link to device %d", o.info.Index)
	}
	l.Hops = int(hops)
	switch kind {
	case linkPCIe:
		l.Kind = driver.LinkPCIe
	case linkXGMI:
		l.Kind = driver.LinkXGMI
	}
	return l, nil
}

// unknownLink reports whether the error means that the system has no information about a link.
func unknownLink(err error) bool { return errors.Is(err, hip.ErrorInvalidHandle) }

func (d *device) Occupancy(f driver.Function, threads int, shared uint32) (int, error) {
	blocks, err := d.lib.ModuleOccupancyMaxActiveBlocksPerMultiprocessor(hip.Function(f), int32(threads), uint64(shared))
	if err != nil {
		return 0, d.fail("occupancy", err, "function %#x in blocks of %d threads with %d bytes of shared memory", uintptr(f), threads, shared)
	}
	return int(blocks), nil
}
