package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/internal/nvtopology"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

func TestHIPLinks(t *testing.T) {
	for _, test := range []struct {
		name string
		lib  fakeHIP
		want []string // cells from 0 to 1 and 2, from 1 to 0 and 2, from 2 to 0 and 1
	}{
		{"all", fakeHIP{}, []string{"xGMI h1 a", "PCIe h2", "xGMI h1 a", "PCIe h2", "PCIe h2", "-"}},
		{"no kinds", fakeHIP{kinds: hip.ErrorInvalidHandle}, []string{"P2P a", "P2P", "P2P a", "P2P", "P2P", "-"}},
		{"before kinds", fakeHIP{kinds: dl.ErrSymbol}, []string{"P2P a", "P2P", "P2P a", "P2P", "P2P", "-"}},
		{"kinds that fail", fakeHIP{kinds: hip.ErrorUnknown}, []string{"?", "?", "?", "?", "?", "-"}},
		{"that fail", fakeHIP{p2p: hip.ErrorInvalidHandle}, []string{"?", "?", "?", "?", "?", "?"}},
		{"before links", fakeHIP{p2p: dl.ErrSymbol}, nil},
	} {
		var got []string
		for _, l := range hipLinks(&test.lib, 3) {
			if l.Package != "hip" || (l.Error != "") != (l.cell() == "?") {
				t.Errorf("%s: %+v", test.name, l)
			}
			got = append(got, l.cell())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if got := hipLinks(&fakeHIP{}, 1); got != nil {
		t.Errorf("of one device: %+v", got)
	}
	var b bytes.Buffer
	if printLinks(&b, "hip", 1, nil); b.Len() > 0 {
		t.Errorf("of one device is printed %q", &b)
	}
	if printLinks(&b, "hip", 3, hipLinks(&fakeHIP{}, 3)); !strings.Contains(b.String(), "\n       2  PCIe h2    -          X\n") {
		t.Errorf("printed\n%s", &b)
	}
}

// TestCUDALinks checks the cells of the matrix with and without kinds from NVML.
func TestCUDALinks(t *testing.T) {
	for _, test := range []struct {
		name    string
		between paths
		want    []string // cells in the order of TestHIPLinks
	}{
		{"nobody", nil, []string{"P2P r1 a", "?", "P2P r0 a", "P2P r2 a", "-", "P2P r1 a"}},
		{"NVLink", func(from, to int) (nvtopology.Path, error) {
			return nvtopology.Path{NVLinks: 18, PCIe: nvml.TopologyNode}, nil
		},
			[]string{"NV18 r1 a", "?", "NV18 r0 a", "NV18 r2 a", "- NODE", "NV18 r1 a"}},
		{"PCI Express", func(from, to int) (nvtopology.Path, error) {
			return nvtopology.Path{PCIe: []nvml.GpuTopologyLevel{nvml.TopologySingle, nvml.TopologyHostbridge, nvml.TopologySystem}[to]}, nil
		}, []string{"PHB r1 a", "?", "PIX r0 a", "SYS r2 a", "- PIX", "PHB r1 a"}},
		{"fails", func(from, to int) (nvtopology.Path, error) { return nvtopology.Path{}, nvml.ErrorNotFound },
			[]string{"P2P r1 a", "?", "P2P r0 a", "P2P r2 a", "-", "P2P r1 a"}},
	} {
		var got []string
		for _, l := range cudaLinks(&fakeDriver{}, 3, test.between) {
			if (l.Kind == nvlink) != (l.NVLinks > 0 && l.Kind != noLink) {
				t.Errorf("%s: %+v", test.name, l)
			}
			got = append(got, l.cell())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// newDriver reports a UUID for each MIG instance.
type newDriver struct{ fakeDriver }

func (f *newDriver) DeviceGetUuid(dev cuda.Device) (id cuda.UUID, err error) {
	if id, err = f.DeviceGetUuidV1(dev); dev == 11 {
		id.Bytes[0] = 0xff
	}
	return id, err
}

func TestMIG(t *testing.T) {
	devices, err := cudaDevices(&newDriver{fakeDriver{count: 2}}, false)
	if err != nil || len(devices) != 2 || devices[0].MIG || !devices[1].MIG || !strings.HasPrefix(devices[1].UUID, "GPU-ff112233-") {
		t.Errorf("%+v, %v", devices, err)
	}
}
