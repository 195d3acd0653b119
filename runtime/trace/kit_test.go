package trace_test

import "github.com/puregpu/puregpu/runtime/internal/testkit"

// These are short names for helpers of package testkit.

const raceEnabled = testkit.RaceEnabled

type (
	idleDriver = testkit.IdleDriver
	sleepArgs  = testkit.SleepArgs
)

var (
	allocate   = testkit.Alloc
	bytesOf    = testkit.Content
	bothCaps   = testkit.BothCaps
	eventually = testkit.Eventually
	minute     = testkit.Minute
	must       = testkit.Must
	newSim     = testkit.NewSim
	openDevice = testkit.OpenDevice
	pts        = testkit.Points
	semaphores = testkit.Semaphores
	sleeper    = testkit.OpenSleeper
)
