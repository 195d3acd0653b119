package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// The tests of this package use buffers and pools through package gpu. Some tests read the state of
// the buffers and pools.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for helpers that several packages' tests share.

var (
	alloca            = testkit.Alloca
	allocate          = testkit.Alloc
	allocated         = testkit.Allocated
	bothCaps          = testkit.BothCaps
	bytesOf           = testkit.Content
	calls             = testkit.Calls
	capabilitySets    = testkit.CapabilitySets
	checkLeaks        = testkit.CheckLeaks
	commandBuffer     = testkit.CommandBuffer
	dump              = testkit.Dump
	eachCaps          = testkit.EachCaps
	eventually        = testkit.Eventually
	full              = testkit.Full
	hipPoolCaps       = testkit.HIPPoolCaps
	idle              = testkit.OpenIdle
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
	unused            = testkit.Unused
	whole             = testkit.WholePool
)
