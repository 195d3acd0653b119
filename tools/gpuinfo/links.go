package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/nvtopology"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

// Kinds of links, as JSON and the matrix print them.
const (
	noLink = "none"
	nvlink = "NVLink"
	direct = "P2P" // direct access by a link of unknown kind
	pcie   = "PCIe"
	xgmi   = "xGMI"
)

// links returns the link from each of n devices to each other device. It returns nil if the library
// cannot report links.
func links(pkg string, n int, ask func(l *Link) error) []Link {
	var all []Link
	for from := range n {
		for to := range n {
			if from == to {
				continue
			}
			l := Link{Package: pkg, From: from, To: to}
			if err := ask(&l); errors.Is(err, dl.ErrSymbol) {
				return nil
			} else if err != nil {
				l.Error = err.Error()
			}
			all = append(all, l)
		}
	}
	return all
}

// A paths function returns the path between two devices, by their indices.
type paths func(from, to int) (nvtopology.Path, error)

// nvmlPaths returns the paths that NVML reports. It returns nil without NVML, and for fewer than
// two devices.
func nvmlPaths(devices []Device) paths {
	if len(devices) < 2 {
		return nil
	}
	lib, err := nvtopology.Open(nvml.Options{})
	if err != nil {
		return nil
	}
	return func(from, to int) (nvtopology.Path, error) {
		return nvtopology.Between(lib, devices[from].PCIAddress, devices[to].PCIAddress)
	}
}

// cudaLinks returns the driver's facts about the links between n devices, or nil if the driver
// cannot report links. The driver does not know the kind of a link: the function between finds the
// kind. If between is nil, the kind is P2P or none.
func cudaLinks(lib cudaDriver, n int, between paths) []Link {
	return links("cuda", n, func(l *Link) error {
		from, err := lib.DeviceGet(int32(l.From))
		if err != nil {
			return fmt.Errorf("cuDeviceGet: %w", err)
		}
		to, err := lib.DeviceGet(int32(l.To))
		if err != nil {
			return fmt.Errorf("cuDeviceGet: %w", err)
		}
		var access, rank, atomics, arrays int32
		for _, a := range []struct {
			attr cuda.DeviceP2PAttribute
			to   *int32
		}{
			{cuda.DeviceP2PAttributeAccessSupported, &access},
			{cuda.DeviceP2PAttributePerformanceRank, &rank},
			{cuda.DeviceP2PAttributeNativeAtomicSupported, &atomics},
			{cuda.DeviceP2PAttributeCUDAArrayAccessSupported, &arrays},
		} {
			if *a.to, err = lib.DeviceGetP2PAttribute(a.attr, from, to); err != nil {
				return fmt.Errorf("cuDeviceGetP2PAttribute(%v): %w", a.attr, err)
			}
		}
		l.Kind = noLink
		if access != 0 {
			l.Kind, l.Rank, l.Atomics, l.Arrays = direct, &rank, atomics != 0, arrays != 0
		}
		if between == nil {
			return nil
		}
		if p, err := between(l.From, l.To); err == nil {
			l.NVLinks, l.PCIe = p.NVLinks, nvtopology.Abbreviation(p.PCIe)
			switch {
			case access == 0:
			case p.NVLinks > 0:
				l.Kind = nvlink
			default:
				l.Kind = pcie
			}
		}
		return nil
	})
}

// hipLinks returns HIP's facts about the links between n devices: kinds and hops, but no ranks. HIP
// returns ErrorInvalidHandle if the system does not tell HIP about a link.
func hipLinks(lib hipRuntime, n int) []Link {
	return links("hip", n, func(l *Link) error {
		ask := func(attr hip.DeviceP2PAttr) (bool, error) {
			v, err := lib.DeviceGetP2PAttribute(attr, int32(l.From), int32(l.To))
			if err != nil && (attr == hip.DevP2PAttrAccessSupported || !errors.Is(err, hip.ErrorInvalidHandle)) {
				return false, fmt.Errorf("hipDeviceGetP2PAttribute(%v): %w", attr, err)
			}
			return err == nil && v != 0, nil
		}
		access, err := ask(hip.DevP2PAttrAccessSupported)
		if err != nil {
			return err
		}
		if !access {
			l.Kind = noLink
			return nil
		}
		l.Kind = direct
		if l.Atomics, err = ask(hip.DevP2PAttrNativeAtomicSupported); err != nil {
			return err
		}
		if l.Arrays, err = ask(hip.DevP2PAttrHipArrayAccessSupported); err != nil {
			return err
		}
		kind, hops, err := lib.ExtGetLinkTypeAndHopCount(int32(l.From), int32(l.To))
		switch {
		case errors.Is(err, hip.ErrorInvalidHandle), errors.Is(err, dl.ErrSymbol):
			return nil
		case err != nil:
			return fmt.Errorf("hipExtGetLinkTypeAndHopCount: %w", err)
		case kind == 2: // the numbers of HSA's hsa_amd_link_info_type_t
			l.Kind = pcie
		case kind == 4:
			l.Kind = xgmi
		}
		l.Hops = int(hops)
		return nil
	})
}

// cell returns the text of a link in the matrix.
func (l *Link) cell() string {
	if l.Error != "" {
		return "?"
	}
	text := l.Kind
	switch {
	case l.Kind == noLink:
		return strings.TrimRight("- "+l.PCIe, " ")
	case l.Kind == nvlink:
		text = fmt.Sprintf("NV%d", l.NVLinks)
	case l.PCIe != "":
		text = l.PCIe
	}
	if l.Rank != nil {
		text += fmt.Sprintf(" r%d", *l.Rank)
	}
	if l.Hops > 0 {
		text += fmt.Sprintf(" h%d", l.Hops)
	}
	if l.Atomics {
		text += " a"
	}
	return text
}

// printLinks writes the links of a library's n devices as a matrix.
func printLinks(w io.Writer, pkg string, n int, links []Link) {
	if len(links) == 0 {
		return
	}
	cells, width := make([][]string, n), 3
	for i := range cells {
		cells[i] = make([]string, n)
		cells[i][i] = "X"
	}
	for i := range links {
		l := &links[i]
		text := l.cell()
		cells[l.From][l.To], width = text, max(width, len(text))
	}
	fmt.Fprintf(w, "%s links, from the device of the row to the device of the column\n", strings.ToUpper(pkg))
	row := func(head string, cells []string) {
		var b strings.Builder
		fmt.Fprintf(&b, "    %4s", head)
		for _, c := range cells {
			fmt.Fprintf(&b, "  %-*s", width, c)
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	heads := make([]string, n)
	for i := range heads {
		heads[i] = fmt.Sprint(i)
	}
	row("", heads)
	for i := range cells {
		row(heads[i], cells[i])
	}
	line(w, "where", "X: the device itself; -: no direct way; ?: unknown; P2P: a direct way of unknown kind; NV and a number: that many NVLinks; "+
		"PIX, PXB, PHB, NODE and SYS: PCI Express over at most one switch, over several, over the host bridge, over host bridges of one NUMA node, and between NUMA nodes; "+
		"r: rank, 0 is the fastest; h: hops; a: atomic operations work over the link")
	for i := range links {
		if l := &links[i]; l.Error != "" {
			line(w, "error", fmt.Sprintf("from %d to %d: %s", l.From, l.To, l.Error))
		}
	}
}
