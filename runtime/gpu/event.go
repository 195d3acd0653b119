package gpu

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Begun returns the launch with an event, which the launch records when all its blocks have begun.
// Begun is for package interop: the type [events.Event] is internal, so other modules cannot call
// Begun.
func Begun(launch Op, e *events.Event) Op {
	switch launch.kind {
	case launchOp:
		launch.data = unsafe.Pointer(e)
	case wrongOp:
	default:
		return BadOp(errs.Argument(opNames[launch.kind], "only a launch records an event when it has begun"))
	}
	return launch
}

// begun returns the event that a launch records when it has begun, or nil.
func (op *Op) begun() *events.Event { return (*events.Event)(op.data) }

// checkBegun checks the event that a launch of the kernel will record.
func (k *Kernel) checkBegun(e *events.Event) error {
	d := k.exe.dev
	switch {
	case !d.native.Caps.LaunchEvents:
		return fmt.Errorf("gpu: launch: kernel %s: %s records no event when a launch has begun: %w; record one behind the launch", k.name, d.native.Info.Name, driver.ErrUnsupported)
	case e.Device() == nil:
		return errs.Argument("launch", "an event for kernel %s that was neither made nor adopted", k.name)
	case e.Device() != &d.events:
		return errs.Argument("launch", "the event for kernel %s is of device %s, and the kernel of %s", k.name, e.Device().Engine.Info.Name, d.native.Info.Name)
	case e.ForProcesses():
		return errs.Argument("launch", "the event for kernel %s is one of several processes, which no launch records: make one with NewEvent", k.name)
	}
	return nil
}

// withEvent submits an operation that records the event e, or waits for e. Package interop makes
// these operations.
func (q *Queue) withEvent(o *Order, e *events.Event, kind work.Kind) error {
	if on := e.Device(); on != nil && on != &q.dev.events {
		return errs.Argument(kind.String(), "the event is of device %s, and the queue of %s", on.Engine.Info.Name, q.dev.native.Info.Name)
	}
	err := e.Hold()
	// If the device has failed, submit makes the submission fail, with or without a valid event.
	if err != nil && q.dev.failed() == nil {
		return fmt.Errorf("gpu: %s: %w", kind, err)
	}
	s := q.get(kind)
	if err == nil {
		s.shared = e
	}
	return q.submit(s, o)
}
