package nvtopology

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

// fake is an NVML with GPUs at buses 1 to 3. links has a text for each GPU, with a letter for each
// of its links: a digit is the bus of the GPU at the other end, s is a switch, - is an inactive
// link. For any other letter NVML returns the address of no GPU.
type fake struct {
	links [4]string
	level nvml.GpuTopologyLevel
	old   bool // NVML does not tell what is at the other end of a link, only the address there
	err   map[string]error
}

func (f *fake) DeviceGetHandleByPciBusId(address string) (nvml.Device, error) {
	for bus, a := range [...]string{1: "0000:01:00.0", 2: "0000:02:00.0", 3: "0000:03:00.0"} {
		if a == address && a != "" {
			return nvml.Device(bus), f.err["handle"]
		}
	}
	return 0, nvml.ErrorNotFound
}

func (f *fake) DeviceGetPciInfo(d nvml.Device) (nvml.PciInfo, error) {
	return nvml.PciInfo{Bus: uint32(d)}, f.err["address"]
}

func (f *fake) DeviceGetTopologyCommonAncestor(nvml.Device, nvml.Device) (nvml.GpuTopologyLevel, error) {
	return f.level, f.err["ancestor"]
}

func (f *fake) DeviceGetNvLinkState(d nvml.Device, link uint32) (nvml.EnableState, error) {
	switch all := f.links[d]; {
	case f.err["state"] != nil:
		return 0, f.err["state"]
	case link >= uint32(len(all)):
		return 0, nvml.ErrorInvalidArgument
	case all[link] == '-':
		return nvml.FeatureDisabled, nil
	}
	return nvml.FeatureEnabled, nil
}

func (f *fake) DeviceGetNvLinkRemoteDeviceType(d nvml.Device, link uint32) (nvml.IntNvLinkDeviceType, error) {
	switch {
	case f.err["kind"] != nil:
		return 0, f.err["kind"]
	case f.old:
		return 0, dl.ErrSymbol
	case f.links[d][link] == 's':
		return nvml.NVLINKDeviceTypeSwitch, nil
	}
	return nvml.NVLINKDeviceTypeGPU, nil
}

func (f *fake) DeviceGetNvLinkRemotePciInfo(d nvml.Device, link uint32) (nvml.PciInfo, error) {
	return nvml.PciInfo{Bus: uint32(f.links[d][link] - '0')}, f.err["other end"]
}

func TestBetween(t *testing.T) {
	for name, c := range map[string]struct {
		lib  fake
		want int
	}{
		"none":                        {fake{}, 0},
		"each with each":              {fake{links: [4]string{1: "22-3", 2: "11-3"}}, 2},
		"to a third":                  {fake{links: [4]string{1: "33", 2: "33"}}, 0},
		"all over switches":           {fake{links: [4]string{1: "ssss", 2: "ssss"}}, 4},
		"fewer of one":                {fake{links: [4]string{1: "ss-s", 2: "s-s-"}}, 2},
		"a switch of one only":        {fake{links: [4]string{1: "ss", 2: "33"}}, 0},
		"direct, and switches beside": {fake{links: [4]string{1: "2sss", 2: "1sss"}}, 1},
		"without kinds":               {fake{links: [4]string{1: "2x", 2: "1x"}, old: true}, 1},
		"not supported":               {fake{links: [4]string{1: "2", 2: "1"}, err: map[string]error{"state": nvml.ErrorNotSupported}}, 0},
		"no functions of links":       {fake{links: [4]string{1: "2", 2: "1"}, err: map[string]error{"state": dl.ErrSymbol}}, 0},
		"no address at the other end": {fake{links: [4]string{1: "2", 2: "1"}, err: map[string]error{"other end": nvml.ErrorNotSupported}}, 0},
	} {
		c.lib.level = nvml.TopologyNode
		p, err := Between(&c.lib, "0000:01:00.0", "0000:02:00.0")
		back, err2 := Between(&c.lib, "0000:02:00.0", "0000:01:00.0")
		if want := (Path{c.want, nvml.TopologyNode}); p != want || back != want || err != nil || err2 != nil {
			t.Errorf("%s: %+v, %v, and back %+v, %v; want %+v", name, p, err, back, err2, want)
		}
	}
}

// TestBetweenErrors checks that an error of each NVML function names the function and the GPU.
func TestBetweenErrors(t *testing.T) {
	for what, name := range map[string]string{
		"handle": "nvmlDeviceGetHandleByPciBusId", "address": "nvmlDeviceGetPciInfo", "ancestor": "nvmlDeviceGetTopologyCommonAncestor",
		"state": "nvmlDeviceGetNvLinkState", "kind": "nvmlDeviceGetNvLinkRemoteDeviceType", "other end": "nvmlDeviceGetNvLinkRemotePciInfo",
	} {
		lib := fake{links: [4]string{1: "2", 2: "1"}, err: map[string]error{what: nvml.ErrorGPUIsLost}}
		p, err := Between(&lib, "0000:01:00.0", "0000:02:00.0")
		if p.NVLinks != 0 || !errors.Is(err, nvml.ErrorGPUIsLost) || !strings.Contains(err.Error(), name+" of 0000:01:00.0") {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
	if _, err := Between(&fake{}, "0000:01:00.0", ""); !errors.Is(err, nvml.ErrorNotFound) {
		t.Errorf("of no address: %v", err)
	}
}

func TestAbbreviation(t *testing.T) {
	for level, want := range map[nvml.GpuTopologyLevel]string{
		nvml.TopologyInternal: "PIX", nvml.TopologySingle: "PIX", nvml.TopologyMultiple: "PXB", nvml.TopologyHostbridge: "PHB",
		nvml.TopologyNode: "NODE", nvml.TopologySystem: "SYS", 7: "",
	} {
		if got := Abbreviation(level); got != want {
			t.Errorf("%v: %q", level, got)
		}
	}
}
