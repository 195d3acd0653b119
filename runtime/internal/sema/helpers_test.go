package sema_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// The tests of package sema_test use semaphores through package gpu.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for helpers that several packages' tests share.

const raceEnabled = testkit.RaceEnabled

var (
	allocate     = testkit.Alloc
	checkLeaks   = testkit.CheckLeaks
	eachCaps     = testkit.EachCaps
	ends         = testkit.Ends
	errHostCall  = testkit.ErrHostCall
	eventually   = testkit.Eventually
	inFlight     = testkit.InFlight
	minute       = testkit.Minute
	must         = testkit.Must
	newSemaphore = testkit.NewSemaphore
	newSim       = testkit.NewSim
	onEach       = testkit.OnEach
	openDevice   = testkit.OpenDevice
	order        = testkit.Order
	pts          = testkit.Points
	semaphores   = testkit.Semaphores
	signal       = testkit.Signal
	waiters      = testkit.Waiters
)
