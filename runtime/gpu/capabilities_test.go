package gpu_test

import (
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A capabilitySet is what the devices of some driver can do.
type capabilitySet struct {
	name string
	caps driver.Caps
}

// capabilitySets are those of the drivers that there are, and one with nothing that a driver can do without.
func capabilitySets() []capabilitySet {
	anywhere := simdriver.HIPCaps() // as HIP is from 5.6 on
	anywhere.SubmitAnywhere = true
	return []capabilitySet{
		{"cuda", simdriver.CUDACaps()},
		{"hip", simdriver.HIPCaps()},
		{"hip from any thread", anywhere},
		{"bare", driver.Caps{SubmitAnywhere: true}},
	}
}

// onEach runs a test on simulated devices of each capability set, in a bubble: what hangs is found out at once.
func onEach(t *testing.T, devices int, test func(t *testing.T, d *simdriver.Driver, caps driver.Caps)) {
	for _, set := range capabilitySets() {
		t.Run(set.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, newSim(t, simdriver.Config{Devices: devices, Caps: &set.caps}), set.caps)
			})
		})
	}
}

// inFlight waits until a device has so many submissions in flight.
func inFlight(t testing.TB, dev *gpu.Device, n int) {
	t.Helper()
	eventually(t, "the work is in flight", func() bool { return dev.Stats().InFlight == n })
}
