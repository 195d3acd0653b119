// Package gputest is the conformance suite of package gpu: what a program may rely on, whatever driver is below. The tests
// of a driver call [Run].
//
// Sub-tests are named by the behaviours that they prove, B54 and so on, which docs/behaviours.md describes.
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

// A Harness is a driver to be tested, and what the tests may do with it besides.
type Harness struct {
	Driver driver.Driver // with one device at least

	// Kernels says that the driver can load the PTX of testdata/kernels, or what stands for it.
	Kernels bool

	// Code is other code for some kernels of package kernels, by their names, which the tests of launches use instead.
	Code map[string][]byte

	// Comms says that the driver's devices can make communicators: that the library for them is there.
	Comms bool

	// Stall holds the work of a device until the function returned is called. Nil if that is not possible.
	Stall func(device int) (resume func())

	// Calls returns how often a native call was made on a device; op is as in [driver.Error]. Nil if nobody counts.
	Calls func(device int, op string) uint64

	// Current returns what is current on the calling thread, and SetCurrent changes it. Nil if there is no such thing.
	Current    func() any
	SetCurrent func(device int)

	// Far starts another process, whose driver is of the same kind. Nil if that is not possible.
	Far func(t *testing.T) Far

	// Brief has the longest test do less, for a suite that runs on several drivers of a kind.
	Brief bool
}

// Run runs the suite. open is called once for each test.
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
		{"pools at random", randomPools},
		{"command buffers", commandBuffers},
		{"nested recordings", nested},
		{"parameters", params},
		{"scratch memory", scratchMemory},
		{"collectives", collectives},
		{"devices", slices.Concat(devices, peers)},
		{"groups", groups},
		{"facts", facts},
		{"processes", processes},
		{"threads", threads},
		{"current device", current},
	})
}

// RunCollectives runs what the suite has of collectives alone.
func RunCollectives(t *testing.T, open func(t *testing.T) Harness) {
	run(t, open, []group{{"collectives", collectives}})
}

// RunLaunches runs what the suite has of launches in clusters, cooperative and dependent ones, and of those with wishes.
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
