//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import (
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestLinkToItself checks that Link to the device itself makes no failing call.
func TestLinkToItself(t *testing.T) {
	t.Setenv("PUREGPU_NVML_LIBRARY", filepath.Join(t.TempDir(), "libnvidia-ml.so.1")) // the file does not exist
	f := newFake(t, 13000)
	d := f.device()
	_, err := d.Link(d)
	ok(t, err)
	if failed := f.failed(); failed != nil {
		t.Errorf("a link to itself: %v", failed)
	}
}

// TestLinkKinds checks the kinds of links from NVML, with and without errors.
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
