package gpu_test

import (
	"context"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// These are short names for helpers of package testkit, which the tests of several packages share.

const raceEnabled = testkit.RaceEnabled

type (
	launched   = testkit.Launched
	idleDriver = testkit.IdleDriver
	idleDevice = testkit.IdleDevice
)

var (
	alloca            = testkit.Alloca
	allocate          = testkit.Alloc
	bothCaps          = testkit.BothCaps
	bytesOf           = testkit.Content
	calls             = testkit.Calls
	callsOf           = testkit.CallsOf
	capabilitySets    = testkit.CapabilitySets
	commandBuffer     = testkit.CommandBuffer
	dump              = testkit.Dump
	eachCaps          = testkit.EachCaps
	ends              = testkit.Ends
	errHostCall       = testkit.ErrHostCall
	eventually        = testkit.Eventually
	hipPoolCaps       = testkit.HIPPoolCaps
	holds             = testkit.Holds
	idle              = testkit.OpenIdle
	in                = testkit.Within
	inFlight          = testkit.InFlight
	minute            = testkit.Minute
	must              = testkit.Must
	newForeign        = testkit.NewForeign
	newPool           = testkit.NewPool
	newSim            = testkit.NewSim
	onEach            = testkit.OnEach
	openCommunicators = testkit.OpenCommunicators
	openDevice        = testkit.OpenDevice
	order             = testkit.Order
	pts               = testkit.Points
	recorded          = testkit.Recorded
	semaphores        = testkit.Semaphores
	simKernels        = testkit.Kernels
)

// inStream submits op to the queue q, behind the earlier operations of the stream s. Later
// operations of s wait for op.
func inStream(s *gpu.Stream, q *gpu.Queue, op gpu.Op) error {
	done := new(gpu.Semaphore).At(1)
	if err := q.Submit(gpu.Order{Wait: []gpu.Point{s.Point()}, Signal: []gpu.Point{done}}, op); err != nil {
		return err
	}
	return s.After(done)
}

// noContext is a nil context, as a program may pass by mistake.
var noContext context.Context
