package engine_test

import (
	"bytes"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// The tests of this package drive the scheduler through package gpu. Some read the scheduler's
// state, or delay the scheduler in the middle of a step.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for helpers that several packages' tests share.

const raceEnabled = testkit.RaceEnabled

type mutex = testkit.Mutex

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
	ends              = testkit.Ends
	errHostCall       = testkit.ErrHostCall
	eventually        = testkit.Eventually
	full              = testkit.Full
	hipPoolCaps       = testkit.HIPPoolCaps
	in                = testkit.Within
	inFlight          = testkit.InFlight
	inner             = testkit.Semaphore
	minute            = testkit.Minute
	must              = testkit.Must
	native            = testkit.Native
	newCommunicators  = testkit.NewCommunicators
	newPool           = testkit.NewPool
	newSemaphore      = testkit.NewSemaphore
	newSim            = testkit.NewSim
	onEach            = testkit.OnEach
	onEachLeaky       = testkit.OnEachLeaky
	openCommunicators = testkit.OpenCommunicators
	openDevice        = testkit.OpenDevice
	order             = testkit.Order
	pts               = testkit.Points
	recorded          = testkit.Recorded
	semaphores        = testkit.Semaphores
	signal            = testkit.Signal
	simKernels        = testkit.Kernels
	sum               = testkit.Sum
	timeline          = testkit.Timeline
	unused            = testkit.Unused
	waiters           = testkit.Waiters
	whole             = testkit.WholePool
)

// point returns a point of package gpu as a sema.Point.
func point(s *gpu.Semaphore, value uint64) sema.Point {
	return sema.Point{Semaphore: inner(s), Value: value}
}

// lockOf returns the mutex of a semaphore.
func lockOf(s *gpu.Semaphore) mutex { return testkit.MutexOf(inner(s)) }

// now returns the value of a semaphore without polling.
func now(s *gpu.Semaphore) uint64 {
	now, _ := inner(s).Value()
	return now
}

// untilIn waits until a goroutine is in the function with this name.
func untilIn(name string) {
	for buf := make([]byte, 1<<20); !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte(name)); {
		runtime.Gosched()
	}
}
