//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestFacts(t *testing.T) {
	t.Setenv("PUREGPU_NVML_LIBRARY", filepath.Join(t.TempDir(), "libnvidia-ml.so.1")) // which is not there
	f := newFake(t, 13000)
	d := f.device()
	open, err := f.driver().Open(1)
	ok(t, err)
	defer open.Close()
	foreign := open.(*device) // of another driver, if one of the same library
	other := &device{lib: d.lib, id: d.id + 1, info: driver.Info{Index: 1}}
	f.Calls()

	if free, total, err := d.MemInfo(); free != 60<<30 || total != 80<<30 || err != nil {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
	f.Want("cuMemGetInfo_v2()")

	f.Set("p2p 1", 4)
	for _, c := range []struct {
		set   string
		value int
		to    driver.Device
		want  driver.Link
	}{
		{"", 0, other, driver.Link{Rank: 3, Atomics: true, Arrays: true}},
		{"p2p 3", 1, other, driver.Link{Rank: 3, Arrays: true}},
		{"p2p 4", 1, other, driver.Link{Rank: 3}},
		{"p2p 2", 1, other, driver.Link{Kind: driver.LinkNone, Rank: -1}},
		{"", 0, d, driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}},
	} {
		f.Set(c.set, c.value)
		if got, err := d.Link(c.to); got != c.want || err != nil {
			t.Errorf("with %q at %d: %+v, %v; want %+v", c.set, c.value-1, got, err, c.want)
		}
	}
	if failed := f.failed(); failed != nil {
		t.Errorf("a link to itself: %v", failed)
	}
	if _, err := d.Link(foreign); !errors.Is(err, cuda.ErrorInvalidDevice) {
		t.Errorf("a device of another driver: %v", err)
	}
	if _, err := d.Link(nil); !errors.Is(err, cuda.ErrorInvalidDevice) {
		t.Errorf("no device: %v", err)
	}
	f.Calls()

	if blocks, err := d.Occupancy(0xf000, 96, 4096); blocks != 21 || err != nil {
		t.Errorf("%d blocks, %v", blocks, err)
	}
	f.Want("cuOccupancyMaxActiveBlocksPerMultiprocessor(0xf000, 96, 4096)")
}

// TestLinkKinds has NVML tell what links are made of, and fail to.
func TestLinkKinds(t *testing.T) {
	for name, c := range map[string]struct {
		defines []string
		apart   bool
		want    driver.Link
	}{
		"NVLink":             {[]string{"NVLINKS=18"}, false, driver.Link{Kind: driver.LinkNVLink, NVLinks: 18, PCIe: "SYS", Rank: 10, Atomics: true, Arrays: true}},
		"PCI Express":        {nil, false, driver.Link{Kind: driver.LinkPCIe, PCIe: "SYS", Rank: 10, Atomics: true, Arrays: true}},
		"no way":             {nil, true, driver.Link{Kind: driver.LinkNone, PCIe: "SYS", Rank: -1}},
		"an NVML that fails": {[]string{"BROKEN"}, false, driver.Link{Rank: 10, Atomics: true, Arrays: true}},
	} {
		f := newFake(t, 13000)
		drv, err := Open(cuda.Options{Path: f.Path}, WithNVML(nvml.Options{Path: testlib.NVML(t, c.defines...).Build(t)}))
		ok(t, err)
		if c.apart {
			f.Set("p2p 2", 1)
		}
		var devs [2]driver.Device
		for i := range devs {
			devs[i], err = drv.Open(i)
			ok(t, err)
		}
		for i, d := range devs {
			if got, err := d.(driver.Links).Link(devs[1-i]); got != c.want || err != nil {
				t.Errorf("%s: from device %d: %+v, %v; want %+v", name, i, got, err, c.want)
			}
			if got, err := d.(driver.Links).Link(d); got != (driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}) || err != nil {
				t.Errorf("%s: from device %d to itself: %+v, %v", name, i, got, err)
			}
		}
		for _, d := range devs {
			ok(t, d.Close())
		}
	}
}
