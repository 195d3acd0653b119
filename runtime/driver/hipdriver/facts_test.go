//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

func TestFacts(t *testing.T) {
	f := newFake(t, hip64)
	d := f.device()
	other := &device{lib: d.lib, id: d.id + 1, info: driver.Info{Index: 1}}
	if free, total, err := d.MemInfo(); free != 60<<30 || total != 64<<30 || err != nil {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
	for _, c := range []struct {
		name string
		set  map[string]int
		to   driver.Device
		want driver.Link
	}{
		{"all", nil, other, driver.Link{Kind: driver.LinkXGMI, Rank: -1, Hops: 1, Atomics: true, Arrays: true}},
		{"over PCIe", map[string]int{"pcie": 1, "p2p 2": 1}, other, driver.Link{Kind: driver.LinkPCIe, Rank: -1, Hops: 1, Arrays: true}},
		{"over QPI", map[string]int{"qpi": 1, "p2p 3": 1}, other, driver.Link{Rank: -1, Hops: 1, Atomics: true}},
		{"no access", map[string]int{"p2p 1": 1}, other, driver.Link{Kind: driver.LinkNone, Rank: -1}},
		{"no kind", map[string]int{"hipExtGetLinkTypeAndHopCount": int(hip.ErrorInvalidHandle)}, other, driver.Link{Rank: -1, Atomics: true, Arrays: true}},
		{"the same", nil, d, driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}},
	} {
		for name, value := range c.set {
			f.Set(name, value)
		}
		if got, err := d.Link(c.to); got != c.want || err != nil || f.last() != 0 {
			t.Errorf("%s: %+v, %v; want %+v; the thread remembers %d", c.name, got, err, c.want, f.last())
		}
		for name := range c.set {
			f.Set(name, 0)
		}
	}
	f.Set("hipExtGetLinkTypeAndHopCount", int(hip.ErrorInvalidDevice))
	if _, err := d.Link(other); !errors.Is(err, hip.ErrorInvalidDevice) || f.last() != 0 {
		t.Errorf("the kind of the link: %v; the thread remembers %d", err, f.last())
	}
	if _, err := d.Link(nil); !errors.Is(err, hip.ErrorInvalidDevice) {
		t.Errorf("no device: %v", err)
	}
	f.Calls()
	if blocks, err := d.Occupancy(0xf000, 96, 4096); blocks != 21 || err != nil {
		t.Errorf("%d blocks, %v", blocks, err)
	}
	f.Want("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(0xf000, 96, 4096)")

	// What a library does not know of a device is not told.
	f.Set("unknown 2", 1)
	infos, err := f.driver().Devices()
	if err != nil || infos[0].CopyEngines != 0 || infos[0].L2 == 0 || f.last() != 0 {
		t.Errorf("%+v, %v; the thread remembers %d", infos[0], err, f.last())
	}
}
