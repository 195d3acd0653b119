// Package inside lets packages above package gpu, such as collective and interop, use the parts of
// a device and make operations. gpu.Inside returns its Device, and gpu.OpOf takes its Op.
package inside

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/faces"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Device has the parts of a gpu.Device.
type Device struct {
	Engine *engine.Device
	Memory *memory.Device
	Comm   *comm.Device
	Events *events.Device
	Faces  *faces.Faces

	// NewQueue makes a *gpu.Queue for a stream and returns its timeline, whose field Queue is the
	// *gpu.Queue. The device does not list the timeline yet.
	NewQueue func(stream driver.Stream, priority int) *engine.Timeline

	// Semaphore returns the engine's part of a *gpu.Semaphore, or nil for nil.
	Semaphore func(any) *sema.Semaphore
}

// Ready returns an error if the device accepts no more work. A nil or zero gpu.Device accepts no
// work.
func (d *Device) Ready(op string) error {
	if d == nil || d.Engine == nil {
		return errs.Zero(op, "Device")
	}
	return d.Engine.Failed()
}

// Outer returns the *gpu.Device that e is the scheduler's part of.
func Outer(e *engine.Device) any {
	return e.Owner.(interface{ Outer() any }).Outer()
}

// An Op is an operation that gpu.OpOf turns into a gpu.Op.
type Op struct {
	Kind  work.Kind     // EventRecord, EventWait, ValueWrite, ValueWait, Native or Control
	Event *events.Event // the event to record or to wait for
	Range memory.Range  // memory of the value to write or to wait for, or of the number of a control
	Value uint64

	// Native is the *gpu.Op of a native operation. In a recording the operation never becomes a
	// node of a graph: each execution calls its function.
	Native any

	// Bodies are the bodies of a control, a []gpu.Op, which is not copied. Body i runs if the
	// number in Range is within Bounds[i].
	Bodies any
	Bounds [][2]uint32
	Loop   bool // there is one body, which runs again and again
}
