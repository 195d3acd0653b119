package recording_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// The tests of this package use recordings through package gpu. Some also read the state of a
// recording.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for helpers that several packages' tests share.

const raceEnabled = testkit.RaceEnabled

var (
	allocate          = testkit.Alloc
	bytesOf           = testkit.Content
	calls             = testkit.Calls
	commandBuffer     = testkit.CommandBuffer
	errHostCall       = testkit.ErrHostCall
	eventually        = testkit.Eventually
	idle              = testkit.OpenIdle
	minute            = testkit.Minute
	must              = testkit.Must
	newPool           = testkit.NewPool
	newSim            = testkit.NewSim
	onEach            = testkit.OnEach
	openCommunicators = testkit.OpenCommunicators
	openDevice        = testkit.OpenDevice
	order             = testkit.Order
	pts               = testkit.Points
	recorded          = testkit.Recorded
	semaphores        = testkit.Semaphores
	sum               = testkit.Sum
)
