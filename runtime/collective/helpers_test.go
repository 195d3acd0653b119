package collective_test

import (
	"context"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// These are short names for helpers of package testkit.

const raceEnabled = testkit.RaceEnabled

var (
	allocate          = testkit.Alloc
	bothCaps          = testkit.BothCaps
	bytesOf           = testkit.Content
	calls             = testkit.Calls
	callsOf           = testkit.CallsOf
	commandBuffer     = testkit.CommandBuffer
	dump              = testkit.Dump
	eachCaps          = testkit.EachCaps
	eventually        = testkit.Eventually
	holds             = testkit.Holds
	in                = testkit.Within
	inFlight          = testkit.InFlight
	minute            = testkit.Minute
	must              = testkit.Must
	newCommunicators  = testkit.NewCommunicators
	newSim            = testkit.NewSim
	onEach            = testkit.OnEach
	openCommunicators = testkit.OpenCommunicators
	openDevice        = testkit.OpenDevice
	order             = testkit.Order
	pts               = testkit.Points
	recorded          = testkit.Recorded
	semaphores        = testkit.Semaphores
	simKernels        = testkit.Kernels
	sum               = testkit.Sum
)

// submitGroup submits a group of operations to the first queue of the communicator's device.
func submitGroup(c *collective.Communicator, o gpu.Order, ops ...collective.Operation) error {
	return c.Device().Queue(0).Submit(o, c.Group(ops...))
}

// noContext is a nil context, as a program may pass by mistake.
var noContext context.Context
