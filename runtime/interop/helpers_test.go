package interop_test

import (
	"context"

	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// These are short names for helpers of package testkit.

const raceEnabled = testkit.RaceEnabled

var (
	alloca         = testkit.Alloca
	allocate       = testkit.Alloc
	bytesOf        = testkit.Content
	calls          = testkit.Calls
	capabilitySets = testkit.CapabilitySets
	dump           = testkit.Dump
	eventually     = testkit.Eventually
	in             = testkit.Within
	minute         = testkit.Minute
	must           = testkit.Must
	newForeign     = testkit.NewForeign
	newPool        = testkit.NewPool
	newSim         = testkit.NewSim
	onEach         = testkit.OnEach
	onEachLeaky    = testkit.OnEachLeaky
	openDevice     = testkit.OpenDevice
	order          = testkit.Order
	pts            = testkit.Points
	semaphores     = testkit.Semaphores
)

// noContext is a nil context, as a program may pass by mistake.
var noContext context.Context
