package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A SharedEvent is a native event that other code uses as well: other processes of the machine, or
// code of this process that uses the driver's own API. It orders their work and the runtime's
// without blocking the host. Both the runtime and the other code may record the event and wait for
// it. The runtime does so with [RecordEvent] and [WaitEvent]. Points of semaphores are
// for the runtime alone. To export a point, record an event behind it. To import the other code's
// record, submit an operation that waits for the event and signals a point.
//
// For other processes, one process makes the event ([Device.NewSharedEvent]) and exports it, and
// others import it ([Device.ImportSharedEvent]). For code of this process, the runtime makes the
// event ([Device.NewEvent]), or the code does ([Device.AdoptEvent]). The code uses
// [SharedEvent.Native].
//
// A wait is for the last record that was issued before the wait was issued, by either side. Without
// a record it waits for nothing. So both sides must notify each other, for example by a pipe
// between processes. The recorder waits until the record is issued ([Semaphore.WaitIssued]), and
// then notifies the waiter. The waiter, when its wait is issued, notifies the recorder that the
// event may be recorded again. If the device cannot record a pending event again
// ([driver.Caps].RerecordEvents), the record and the wait must be complete instead of issued. A
// call of the driver's own API, such as cuEventRecord, has issued its work when it returns. Do not
// wait for an event that was recorded in a stream under capture.
//
// The process that made the event must keep it until the others have released theirs. According to
// CUDA, using an event whose process has destroyed it is undefined. If a process ends before its
// record is complete, a wait for the record may never end. This blocks only the work behind the
// wait in the same queue's stream. To recover, fail the semaphore that the wait signals
// ([Semaphore.Fail]), and close the device. Close gives up after ten seconds ([CloseError]). Use a
// separate queue for such waits.
//
// All methods may be called concurrently. A zero SharedEvent was neither made nor imported: using
// it is [ErrArgument].
type SharedEvent struct {
	dev     *Device
	h       driver.Event
	from    eventOrigin
	freed   func() // called when the event has been given back
	refs    atomic.Int32
	closed  atomic.Bool
	awaited atomic.Bool // closed, and freed is to be called; counted in engine.Device.Short
}

// An eventOrigin says where a shared event comes from, and so who else can use it and who destroys
// it.
type eventOrigin uint8

const (
	forProcesses eventOrigin = iota // made for other processes, or by one; the driver takes it back
	forProcess                      // made for this process alone; the driver takes it back
	ofOthers                        // made and destroyed by other code
)

// NewSharedEvent makes an event for other processes (C: cuEventCreate with CU_EVENT_INTERPROCESS).
// It blocks while the driver does. If the device does not support this, the error is
// [ErrUnsupported]. HIP does not, because its events of this kind are unreliable.
func (d *Device) NewSharedEvent() (*SharedEvent, error) {
	const op = "make a shared event"
	if err := d.canShareEvents(op); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcesses, nil, func() (driver.Event, error) { return d.faces.IPCEvents.NewIPCEvent() })
}

// ImportSharedEvent returns an event of another process (C: cuIpcOpenEventHandle). The device must
// be the one on which the other process made it. It blocks while the driver does. The other process
// must keep the event until this one has been closed, its last use is over, and the driver has
// released it. Then freed is called, unless it is nil, on a goroutine of its own. The errors are
// those of [Device.ImportShared].
func (d *Device) ImportSharedEvent(h EventHandle, freed func()) (*SharedEvent, error) {
	const op = "import a shared event"
	if err := d.failed(); err != nil {
		return nil, err
	}
	if err := d.memory.Importable(op, h.Driver); err != nil {
		return nil, err
	}
	if err := d.canShareEvents(op); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcesses, freed, func() (driver.Event, error) { return d.faces.IPCEvents.OpenEvent(h.Handle) })
}

// canShareEvents returns an error if processes cannot share events.
func (d *Device) canShareEvents(op string) error {
	if err := d.failed(); err != nil || d.faces.IPCEvents != nil {
		return err
	}
	return fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
}

// NewEvent makes an event for code of this process that uses the driver's own API (C: cuEventCreate
// with CU_EVENT_DISABLE_TIMING), or for launches to record ([Grid].Begun). Every device supports
// it. The event cannot be exported. NewEvent blocks while the driver does.
func (d *Device) NewEvent() (*SharedEvent, error) {
	const op = "make an event"
	if err := d.failed(); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcess, nil, d.native.Native.NewEvent)
}

// AdoptEvent returns an event that the program made with the driver's own API on the same device
// (C: CUevent, hipEvent_t). The caller keeps ownership and must keep the event until this one has
// been closed and its last use is over. Then freed is called, unless it is nil, on a goroutine of
// its own. A zero event is [ErrArgument]. Whether the number is an event cannot be checked. If the
// driver gives no access to its objects ([driver.Caps].Native), the error is
// [ErrUnsupported].
func (d *Device) AdoptEvent(event driver.Event, freed func()) (*SharedEvent, error) {
	const op = "adopt an event"
	switch err := d.failed(); {
	case err != nil:
		return nil, err
	case d.faces.Natives == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	case event == 0:
		return nil, errs.Argument(op, "no event")
	}
	return d.sharedEvent(op, ofOthers, freed, func() (driver.Event, error) { return event, nil })
}

// sharedEvent makes a SharedEvent of the native event that native returns.
func (d *Device) sharedEvent(op string, from eventOrigin, freed func(), native func() (driver.Event, error)) (*SharedEvent, error) {
	e := &SharedEvent{dev: d, from: from, freed: freed}
	e.refs.Store(1)
	err := d.native.Do(func() (err error) {
		if e.h, err = native(); err == nil {
			d.mu.Lock()
			d.shared[e] = struct{}{}
			d.mu.Unlock()
		}
		return err
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, err)
	}
	return e, nil
}

// Native returns the driver's event, for code that records it or waits for it with the driver's own
// API. Packages cudadriver and hipdriver convert it to a handle of CUDA or HIP (Event). It is valid
// until the event has been closed. For a zero SharedEvent it is 0.
func (e *SharedEvent) Native() driver.Event {
	if e == nil {
		return 0
	}
	return e.h
}

// Device returns the event's device. Its queues can use the event.
func (e *SharedEvent) Device() *Device {
	if e == nil {
		return nil
	}
	return e.dev
}

// Export returns a handle of the event for other processes (C: cuIpcGetEventHandle). It blocks
// while the driver does. Only the process that made an event should export it, not one that
// imported it. An event that [Device.NewSharedEvent] did not make is [ErrArgument].
func (e *SharedEvent) Export() (EventHandle, error) {
	const op = "export a shared event"
	if err := e.hold(); err != nil {
		return EventHandle{}, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer e.release()
	d := e.dev
	if err := d.failed(); err != nil {
		return EventHandle{}, err
	}
	if e.from != forProcesses {
		return EventHandle{}, errs.Argument(op, "it was not made for other processes: NewSharedEvent makes one")
	}
	h := EventHandle{Driver: d.native.Driver.Name(), Device: d.native.Info.UUID}
	err := d.native.Do(func() (err error) {
		h.Handle, err = d.faces.IPCEvents.ExportEvent(e.h)
		return err
	})
	if err != nil {
		d.native.Check(err)
		return EventHandle{}, fmt.Errorf("gpu: %s of %s: %w", op, d.native.Info.Name, err)
	}
	return h, nil
}

// Close releases the event, and returns nil. Operations in flight still use it. Closing again does
// nothing.
func (e *SharedEvent) Close() error {
	if e != nil && e.dev != nil && e.closed.CompareAndSwap(false, true) {
		if e.freed != nil { // the event's owner waits until no work uses it
			e.awaited.Store(true)
			e.dev.native.Short.Add(1)
			e.dev.native.WantAll()
		}
		e.release()
	}
	return nil
}

func (e *SharedEvent) hold() error {
	switch {
	case e == nil || e.dev == nil:
		return fmt.Errorf("no event: %w", ErrArgument)
	case e.closed.Load() || !engine.HoldLive(&e.refs, 1):
		return fmt.Errorf("shared event: %w", ErrClosed)
	}
	return nil
}

func (e *SharedEvent) release() {
	if e.refs.Add(-1) > 0 {
		return
	}
	d := e.dev
	if e.awaited.Load() {
		d.native.Short.Add(-1)
	}
	d.native.Reclaim(func() {
		err := e.giveBack()
		// Another stream waits for the event: Device.Close gives it back.
		if errors.Is(err, driver.ErrBusy) {
			return
		}
		d.mu.Lock()
		delete(d.shared, e)
		d.mu.Unlock()
		d.native.NotTaken(err)
		e.over()
	})
}

// giveBack destroys the event, unless other code owns it. It runs on a bound thread.
func (e *SharedEvent) giveBack() error {
	if e.from == ofOthers {
		return nil
	}
	return e.dev.native.Native.DestroyEvent(e.h)
}

// over notifies the event's owner that the event is no longer used.
func (e *SharedEvent) over() {
	if e.freed != nil {
		go e.freed()
	}
}

// RecordEvent returns an Op that records a shared event of the queue's device. The record is behind
// the operation's waits and behind everything that the queue's native stream was given before.
// Waits for the event that are issued later, by any code, wait for all of this. To learn when the
// record is issued, call [Semaphore.WaitIssued] for a point that the operation signals. The signals
// are reached when the record is complete. A recording refuses it.
func RecordEvent(e *SharedEvent) Op { return Op{kind: recordEventOp, obj: e} }

// WaitEvent returns an Op that waits for the last record of a shared event of the queue's device.
// This is the last record at the time when the operation is issued. The call issues the operation
// if all its waits have been issued; otherwise the runtime issues it later. To learn when, call
// [Semaphore.WaitIssued] for a point that it signals. Work after the operation runs after the work
// behind which the event was recorded, and so does all later work of the queue's native stream. As
// with [WaitValue], resources that are released meanwhile are given back when the wait is over. If
// the other process was killed before its work was done, the wait may never end. The device's other
// queues then continue. Close gives up the wait ([CloseError]) and leaves the device's resources to
// the driver. A recording refuses it.
func WaitEvent(e *SharedEvent) Op { return Op{kind: waitEventOp, obj: e} }

func (q *Queue) withEvent(o *Order, e *SharedEvent, kind work.Kind) error {
	if e != nil && e.dev != nil && e.dev != q.dev {
		return errs.Argument(kind.String(), "the event is of device %s, and the queue of %s", e.dev.native.Info.Name, q.dev.native.Info.Name)
	}
	err := e.hold()
	// On a device that has failed the submission fails, with or without a valid event.
	if err != nil && q.dev.failed() == nil {
		return fmt.Errorf("gpu: %s: %w", kind, err)
	}
	s := q.get(kind)
	if err == nil {
		s.shared = e
	}
	return q.submit(s, o)
}
