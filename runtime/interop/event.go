package interop

import (
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// An Event is a native event that other code uses as well. The other code runs in other processes
// of the machine, or runs in this process and calls the driver's own API. An Event orders the work
// of the other code and the work of the runtime, without blocking the host. Both the runtime and
// the other code may record the event and wait for it. The runtime does so with [RecordEvent] and
// [WaitEvent]. Points of semaphores are for the runtime alone. To export a point, record an event
// behind it. To import the other code's record, submit an operation that waits for the event and
// signals a point.
//
// For other processes, one process makes the event ([NewSharedEvent]) and exports the event, and
// other processes import the event ([ImportEvent]). For code of this process, the runtime makes the
// event ([NewEvent]), or the code does ([AdoptEvent]). [Event.Native] returns the native event for
// the code to use.
//
// A wait is for the last record that either side issued before the wait was issued. If there is no
// record, the wait is over at once. So both sides must notify each other, for example by a pipe
// between processes. The recorder waits until the record is issued ([gpu.Semaphore.WaitIssued]),
// and then notifies the waiter. The waiter, when its wait is issued, notifies the recorder that the
// event may be recorded again. If the device cannot record a pending event again
// ([driver.Caps].RerecordEvents), each side must notify the other only when its record or its wait
// is complete. A call of the driver's own API, such as cuEventRecord, has issued its work when it
// returns. Do not wait for an event that was recorded in a stream under capture.
//
// The process that made the event must keep it until the other processes have released their
// imported events. According to CUDA, it is undefined what happens if an event is used after the
// process that made the event has destroyed it. If a process ends before its record is complete, a
// wait for the record may never end. This blocks only the work behind the wait: in the same native
// stream, or ordered after the wait by semaphores. To recover, fail the semaphore that the wait
// signals ([gpu.Semaphore.Fail]), and close the device. Close gives up after ten seconds
// ([gpu.CloseError]). Use a separate queue for such waits.
//
// All methods may be called concurrently. A zero Event was neither made nor imported: Export, and
// Ops that use it, return [gpu.ErrArgument].
type Event events.Event

// in returns the event of package events.
func (e *Event) in() *events.Event { return (*events.Event)(e) }

// eventsOf returns the events of a device, or nil for a nil or zero device.
func eventsOf(dev *gpu.Device) *events.Device {
	if in := gpu.Inside(dev); in != nil {
		return in.Events
	}
	return nil
}

// NewEvent makes an event for code of this process that uses the driver's own API (C: cuEventCreate
// with CU_EVENT_DISABLE_TIMING), or for launches to record ([Begun]). Every device supports such
// events, but not every device supports Begun. The event cannot be exported. NewEvent blocks while
// the driver does.
func NewEvent(dev *gpu.Device) (*Event, error) {
	e, err := eventsOf(dev).New()
	return (*Event)(e), err
}

// NewSharedEvent makes an event for other processes (C: cuEventCreate with CU_EVENT_INTERPROCESS).
// NewSharedEvent blocks while the driver does. If the device does not support events for other
// processes, the error is [gpu.ErrUnsupported]. This is so on HIP, whose events for other processes
// are unreliable.
func NewSharedEvent(dev *gpu.Device) (*Event, error) {
	e, err := eventsOf(dev).NewShared()
	return (*Event)(e), err
}

// ImportEvent returns an event of another process (C: cuIpcOpenEventHandle). The device must be the
// device on which the other process made the event. ImportEvent blocks while the driver does. The
// other process must keep its event until the returned event has been closed, the last use of the
// returned event is over, and the driver has released it. Then freed is called, unless it is nil,
// on a goroutine of its own. If closing the device leaves native objects to the driver, freed may
// never be called. The errors are like those of [ImportMemory].
func ImportEvent(dev *gpu.Device, h EventHandle, freed func()) (*Event, error) {
	const op = "import a shared event"
	in := gpu.Inside(dev)
	if err := in.Ready(op); err != nil {
		return nil, err
	}
	if err := in.Memory.Importable(op, h.Driver); err != nil {
		return nil, err
	}
	e, err := in.Events.Import(op, h.Handle, freed)
	return (*Event)(e), err
}

// AdoptEvent returns an Event for an event that the program made with the driver's own API on the
// device dev (C: CUevent, hipEvent_t). The caller keeps ownership, and must keep its event until
// the returned Event has been closed and the last use of the returned Event is over. Then freed is
// called, unless it is nil, on a goroutine of its own. If closing the device leaves native objects
// to the driver, freed may never be called. If event is 0, the error is [gpu.ErrArgument].
// AdoptEvent cannot check whether other numbers are events. If the driver gives no access to its
// objects ([driver.Caps].Native), the error is [gpu.ErrUnsupported].
func AdoptEvent(dev *gpu.Device, event driver.Event, freed func()) (*Event, error) {
	e, err := eventsOf(dev).Adopt(event, freed)
	return (*Event)(e), err
}

// Native returns the driver's event, for code that records it or waits for it with the driver's own
// API. Function Event of packages cudadriver and hipdriver converts the driver's event to a handle
// of CUDA or HIP. The driver's event is valid until the Event has been closed. For a nil or zero
// Event, Native returns 0.
func (e *Event) Native() driver.Event { return e.in().Native() }

// Device returns the event's device, whose queues can use the event. For a nil or zero Event it
// returns nil.
func (e *Event) Device() *gpu.Device {
	dev := e.in().Device()
	if dev == nil {
		return nil
	}
	return inside.Outer(dev.Engine).(*gpu.Device)
}

// Export returns a handle of the event for other processes (C: cuIpcGetEventHandle). It blocks
// while the driver does. Only the process that made an event should export it, not a process that
// imported it. For an event of [NewEvent] or [AdoptEvent] the error is [gpu.ErrArgument].
func (e *Event) Export() (EventHandle, error) {
	h, err := e.in().Export()
	if err != nil {
		return EventHandle{}, err
	}
	on := e.in().Device().Engine
	return EventHandle{Driver: on.Driver.Name(), Device: on.Info.UUID, Handle: h}, nil
}

// Close releases the event, and returns nil. Operations in flight still use it. Closing again does
// nothing.
func (e *Event) Close() error {
	e.in().Close()
	return nil
}

// RecordEvent returns an Op that records an event of the queue's device. The record is behind the
// operation's waits and behind all earlier work of the queue's native stream. Waits for the event
// that are issued later, by any code, wait for all work in front of the record. To learn when the
// record is issued, call [gpu.Semaphore.WaitIssued] for a point that the operation signals. The
// signals are reached when the record is complete. A recording refuses the Op.
func RecordEvent(e *Event) gpu.Op {
	return gpu.OpOf(inside.Op{Kind: work.EventRecord, Event: e.in()})
}

// WaitEvent returns an Op that waits for an event of the queue's device: for the last record at the
// time when the operation is issued. Submit or Do issues the operation if all its waits have been
// issued; otherwise the runtime issues it later. To learn when it is issued, call
// [gpu.Semaphore.WaitIssued] for a point that the operation signals. Work after the operation, and
// all later work of the queue's native stream, runs after the work in front of the record. As with
// [WaitValue], resources that are released meanwhile are freed when the wait is over. If the
// process that recorded the event is killed before its work is done, the wait may never end. The
// device's other queues then continue. Close gives up the wait ([gpu.CloseError]) and leaves the
// device's resources to the driver. A recording refuses the Op.
func WaitEvent(e *Event) gpu.Op {
	return gpu.OpOf(inside.Op{Kind: work.EventWait, Event: e.in()})
}

// Begun returns a launch with an event that the launch records when all its blocks have begun. Work
// that waits for the event ([WaitEvent]) then runs beside the kernel without taking the kernel's
// place:
//
//	stream.Do(interop.Begun(gpu.Launch(kernel, grid, args...), event))
//
// The event must be from [NewEvent], or from [AdoptEvent] if the event does not record times, on
// the kernel's device. If launches of the device cannot record events ([driver.Caps].LaunchEvents),
// or in a recording, the error is [gpu.ErrUnsupported]. For an Op that is not a launch, and for a
// nil event, the error is [gpu.ErrArgument].
//
// The event does not say that the kernel has written anything. The device treats the event as a
// hint: the wait may last until the kernel has ended. The record is issued with the launch
// ([gpu.Semaphore.WaitIssued]). The launch holds the event. A launch without blocks records the
// event too, as [RecordEvent] does.
func Begun(launch gpu.Op, e *Event) gpu.Op {
	if e == nil {
		return gpu.BadOp(errs.Argument("launch", "a nil event to record when the launch has begun"))
	}
	return gpu.Begun(launch, e.in())
}
