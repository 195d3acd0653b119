// Package gputest is the conformance suite of package gpu. It tests with a given driver that the
// runtime keeps its promises to programs. The tests of a driver call [Run].
//
// The file docs/behaviours.md lists the promises. The name of each test begins with the numbers of
// the promises that it tests, such as B54.
package gputest

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A Harness has a driver to test, and functions with which the tests control it.
type Harness struct {
	Driver driver.Driver // it has at least one device

	// Kernels says that the driver can load the code in package testdata/kernels, and launch its
	// kernels.
	Kernels bool

	// Code has code for some kernels of the launch tests, by kernel name. The tests load it instead
	// of their own code for these kernels.
	Code map[string][]byte

	// Comms says that the driver's devices can make communicators.
	Comms bool

	// Stall blocks the work of a device until the returned function is called. Stall is nil if the
	// driver cannot do that.
	Stall func(device int) (resume func())

	// Calls returns the number of native calls made on a device; op is as in [driver.Error]. Calls
	// is nil if the driver does not count calls.
	Calls func(device int, op string) uint64

	// Current returns the current device of the calling thread, and SetCurrent changes it. Both are
	// nil if the driver has no current device.
	Current    func() any
	SetCurrent func(device int)

	// Far starts another process with a driver of the same kind. Far is nil if there can be no
	// other process.
	Far func(t *testing.T) Far

	// Brief shortens some long tests, and may leave out some element types of collectives.
	Brief bool
}

// Run runs the suite. It calls open once for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	run(t, open, []group{
		{"submissions", submissions},
		{"host and device", mixed},
		{"failures", failures},
		{"closing", closing},
		{"buffers", buffers},
		{"kinds of memory", memoryKinds},
		{"transfers", transfers},
		{"files", files},
		{"code", codeTests},
		{"compiling", compiling},
		{"typed", typed},
		{"launches", launches},
		{"host calls", hostCalls},
		{"native work", natives},
		{"native streams and events", adopted},
		{"values in memory", values},
		{"pools", pools},
		{"growing memory", growingMemory},
		{"pools at random", randomPools},
		{"command buffers", commandBuffers},
		{"nested recordings", nested},
		{"parameters", params},
		{"scratch memory", scratchMemory},
		{"control", controls},
		{"collectives", collectives},
		{"devices", slices.Concat(devices, peers)},
		{"groups", groups},
		{"facts", facts},
		{"processes", processes},
		{"threads", threads},
		{"current device", current},
	})
}

// RunCollectives runs only the suite's tests of collectives.
func RunCollectives(t *testing.T, open func(t *testing.T) Harness) {
	run(t, open, []group{{"collectives", collectives}})
}

// RunLaunches runs only the suite's tests of special launches: with clusters, cooperative,
// dependent, with an event, with a priority or a carve-out, and with the largest arguments.
func RunLaunches(t *testing.T, open func(t *testing.T) Harness) {
	run(t, open, []group{{"launches", launches}})
}

type group struct {
	name  string
	tests []test
}

func run(t *testing.T, open func(t *testing.T) Harness, groups []group) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, x := range group.tests {
				t.Run(x.name, func(t *testing.T) {
					now := goleak.IgnoreCurrent()
					t.Cleanup(func() { goleak.VerifyNone(t, now) })
					h := open(t)
					infos, err := h.Driver.Devices()
					switch {
					case err != nil:
						t.Fatal(err)
					case len(infos) < x.needs():
						t.Skipf("needs %d devices, and there are %d", x.needs(), len(infos))
					case x.kernels && !h.Kernels:
						t.Skip("needs kernels")
					case x.stall && h.Stall == nil:
						t.Skip("needs a driver that can hold a device's work")
					case x.comms && !h.Comms:
						t.Skip("needs communicators")
					case x.calls && h.Calls == nil:
						t.Skip("needs a driver that counts calls")
					}
					e := &env{T: t, h: h}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					t.Cleanup(cancel)
					e.ctx = ctx
					n := x.needs()
					if x.devices == every {
						n = len(infos)
					}
					for i := range n {
						opt := x.options
						opt.Queues = 4
						d, err := gpu.Open(h.Driver, i, opt)
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() {
							if err := d.Close(); err != nil {
								t.Errorf("close: %v", err)
							}
						})
						e.devs = append(e.devs, d)
					}
					x.run(e)
				})
			}
		})
	}
}
