package testkit

import (
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A CapabilitySet is the capabilities of some driver's devices.
type CapabilitySet struct {
	Name string
	Caps driver.Caps
}

// CapabilitySets returns the capabilities of the existing drivers, and a set without any optional
// capability.
func CapabilitySets() []CapabilitySet {
	return []CapabilitySet{
		{"cuda", simdriver.CUDACaps()},
		{"hip", simdriver.HIPCaps()},
		{"hip with its pools", HIPPoolCaps()},
		{"bare", driver.Caps{}},
	}
}

// HIPPoolCaps returns the capabilities of HIP from 6.2 on, which has pools of its own.
func HIPPoolCaps() driver.Caps {
	caps := simdriver.HIPCaps()
	caps.Cooperative, caps.Pools, caps.PoolsByStream = true, true, true
	return caps
}

// BothCaps returns CUDA's and HIP's capabilities, for tests that need no other capability set.
func BothCaps() map[string]driver.Caps {
	return map[string]driver.Caps{"cuda": simdriver.CUDACaps(), "hip": simdriver.HIPCaps()}
}

// NewSim makes a simulated driver. At the end of the test it reports native objects that are left.
func NewSim(t testing.TB, c simdriver.Config) *simdriver.Driver {
	c.Strict = true
	c.Kernels = Kernels
	d := simdriver.New(c)
	t.Cleanup(func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
		d.Kill() // ends streams that wait for another device and were left to the driver
	})
	return d
}

// OnEach runs a test on simulated devices of each capability set, in a synctest bubble, which finds
// a hang at once.
func OnEach(t *testing.T, devices int, test func(t *testing.T, d *simdriver.Driver, caps driver.Caps)) {
	for _, set := range CapabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, NewSim(t, simdriver.Config{Devices: devices, Caps: &set.Caps}), set.Caps)
			})
		})
	}
}

// OnEachLeaky is like [OnEach], with two devices. It does not check for native objects that are
// left: in these tests Close leaves some to the driver, and returns an error that says so.
func OnEachLeaky(t *testing.T, test func(t *testing.T, d *simdriver.Driver)) {
	for _, set := range CapabilitySets() {
		t.Run(set.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := simdriver.New(simdriver.Config{Devices: 2, Caps: &set.Caps, Kernels: Kernels, Strict: true})
				test(t, d)
				d.Kill() // ends the remaining work
			})
		})
	}
}

// EachCaps runs a test with CUDA's capabilities and with HIP's, outside of a synctest bubble.
func EachCaps(t *testing.T, name string, f func(t *testing.T, caps driver.Caps)) {
	for kind, caps := range BothCaps() {
		t.Run(name+", "+kind, func(t *testing.T) {
			CheckLeaks(t)
			f(t, caps)
		})
	}
}

// Calls returns how many calls of an operation a device has had.
func Calls(d *simdriver.Driver, device int, op simdriver.Op) uint64 {
	return d.Counters().Devices[device].Calls[op]
}

// CallsOf returns a function that is like [Calls], for the conformance suite.
func CallsOf(d *simdriver.Driver) func(device int, op string) uint64 {
	return func(device int, op string) uint64 { return Calls(d, device, simdriver.Op(op)) }
}
