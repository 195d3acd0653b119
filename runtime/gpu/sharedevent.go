package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A SharedEvent is a native event that others use as well: other processes of the machine, or code of this one that works with the driver's
// own API. It orders their work and the runtime's without the host waiting for a device. The runtime records it ([Queue.RecordEvent]) and
// waits for it ([Queue.WaitEvent]), and so may the others. Points of semaphores are for the runtime alone: to hand one on, record an event
// behind it; to take in what others have recorded, have an operation that waits for the event signal a point.
//
// For other processes, one makes it ([Device.NewSharedEvent]) and exports it, and others import it ([Device.ImportSharedEvent]). For code of
// this process the runtime makes it ([Device.NewEvent]), or the code does ([Device.AdoptEvent]); [SharedEvent.Native] is what that code uses.
//
// A wait is for the last record, of whomever, that was issued before the wait was; if there is none it is for nothing. So both sides
// have to tell each other, other processes by a pipe, say: who records waits until the record is issued ([Semaphore.WaitIssued]), and then
// tells who is to wait; who waits tells, when the wait is issued, that the event may be recorded anew. Where a device cannot record an event
// anew before that is over ([driver.Caps].RerecordEvents) both must have been reached instead. A call of the driver's own API, such as
// cuEventRecord, has issued what it does when it returns. An event that was recorded in a stream that somebody captures must not be waited for.
//
// The process that has made it must keep it until the others have given theirs back: to use an event that its process has destroyed is
// undefined, says CUDA. If a process ends before its record is complete a wait for that may never be over. Then nobody hangs but
// what comes behind the wait on the same queue's stream: fail the semaphore that it signals ([Semaphore.Fail]), and close the device,
// which gives it up after ten seconds ([CloseError]). Let waits for others have a queue of their own.
//
// All methods may be called concurrently. A zero SharedEvent was neither made nor imported: [ErrArgument].
type SharedEvent struct {
	dev     *Device
	h       driver.Event
	from    eventOrigin
	freed   func() // to be called when it is given back
	refs    atomic.Int32
	closed  atomic.Bool
	awaited atomic.Bool // it was closed, and freed is to be called: counted in the Short of engine.Device
}

// An eventOrigin says where a shared event comes from, and so who else can have it, and what becomes of it.
type eventOrigin uint8

const (
	forProcesses eventOrigin = iota // made for other processes, or by one; the driver takes it back
	forProcess                      // made for this process alone; likewise
	ofOthers                        // somebody else destroys it
)

// NewSharedEvent makes an event for other processes (C: cuEventCreate with CU_EVENT_INTERPROCESS). It blocks while the driver does. Where
// the device cannot do that, as with HIP, whose events of this kind cannot be relied on, the error is [driver.ErrUnsupported].
func (d *Device) NewSharedEvent() (*SharedEvent, error) {
	const op = "make a shared event"
	if err := d.canShareEvents(op); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcesses, nil, func() (driver.Event, error) { return d.faces.ipcEvents.NewIPCEvent() })
}

// ImportSharedEvent returns an event of another process (C: cuIpcOpenEventHandle), on the device that the other one has made it on. It
// blocks while the driver does. The other process must keep the event until this one has been closed, its last use is over and the driver
// has taken it back: then freed is called, unless it is nil, on a goroutine of its own. The errors are those of [Device.ImportShared].
func (d *Device) ImportSharedEvent(h EventHandle, freed func()) (*SharedEvent, error) {
	const op = "import a shared event"
	if err := d.failed(); err != nil {
		return nil, err
	}
	if err := d.importable(op, h.Driver); err != nil {
		return nil, err
	}
	if err := d.canShareEvents(op); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcesses, freed, func() (driver.Event, error) { return d.faces.ipcEvents.OpenEvent(h.Handle) })
}

// canShareEvents returns an error where processes cannot share events.
func (d *Device) canShareEvents(op string) error {
	if err := d.failed(); err != nil || d.faces.ipcEvents != nil {
		return err
	}
	return fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
}

// NewEvent makes an event for code of this process that works with the driver's own API (C: cuEventCreate with CU_EVENT_DISABLE_TIMING),
// which every device can, or for launches to record ([Grid].Begun). It cannot be exported. It blocks while the driver does.
func (d *Device) NewEvent() (*SharedEvent, error) {
	const op = "make an event"
	if err := d.failed(); err != nil {
		return nil, err
	}
	return d.sharedEvent(op, forProcess, nil, d.native.Native.NewEvent)
}

// AdoptEvent returns an event that the program has made by calls of the driver's own API, on the same device (C: CUevent, hipEvent_t). It is
// not destroyed: it stays the caller's, who must keep it until this one has been closed and its last use is over. Then freed is called,
// unless it is nil, on a goroutine of its own. No event is [ErrArgument]; that the number is an event nobody can check. Where the driver
// gives no access to what it has ([driver.Caps].Native) the error is [driver.ErrUnsupported].
func (d *Device) AdoptEvent(event driver.Event, freed func()) (*SharedEvent, error) {
	const op = "adopt an event"
	switch err := d.failed(); {
	case err != nil:
		return nil, err
	case d.faces.natives == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	case event == 0:
		return nil, argument(op, "no event")
	}
	return d.sharedEvent(op, ofOthers, freed, func() (driver.Event, error) { return event, nil })
}

// sharedEvent makes what a native event is for.
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

// Native returns the event as the driver knows it, for code that records it, or waits for it, by the driver's own API: packages cudadriver and
// hipdriver turn it into a handle of CUDA or HIP (Event). It is good until the event has been closed. Of a zero event it is 0.
func (e *SharedEvent) Native() driver.Event {
	if e == nil {
		return 0
	}
	return e.h
}

// Device returns the event's device, on whose queues it can be used.
func (e *SharedEvent) Device() *Device {
	if e == nil {
		return nil
	}
	return e.dev
}

// Export names the event for other processes (C: cuIpcGetEventHandle). It blocks while the driver does. One that was imported is for its own
// process to export; what [Device.NewSharedEvent] has not made is [ErrArgument].
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
		return EventHandle{}, argument(op, "it was not made for other processes: NewSharedEvent makes one")
	}
	h := EventHandle{Driver: d.native.Driver.Name(), Device: d.native.Info.UUID}
	err := d.native.Do(func() (err error) {
		h.Handle, err = d.faces.ipcEvents.ExportEvent(e.h)
		return err
	})
	if err != nil {
		d.native.Check(err)
		return EventHandle{}, fmt.Errorf("gpu: %s of %s: %w", op, d.native.Info.Name, err)
	}
	return h, nil
}

// Close lets go of the event, and returns nil; operations that are under way still use it. Closing again does nothing.
func (e *SharedEvent) Close() error {
	if e != nil && e.dev != nil && e.closed.CompareAndSwap(false, true) {
		if e.freed != nil { // its owner waits until no work uses it
			e.awaited.Store(true)
			e.dev.native.Short.Add(1)
			e.dev.native.AskAll()
		}
		e.release()
	}
	return nil
}

func (e *SharedEvent) hold() error {
	switch {
	case e == nil || e.dev == nil:
		return fmt.Errorf("no event: %w", ErrArgument)
	case e.closed.Load() || !holdLive(&e.refs, 1):
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
		if errors.Is(err, driver.ErrBusy) { // somebody's stream waits for it: Device.Close gives it back
			return
		}
		d.mu.Lock()
		delete(d.shared, e)
		d.mu.Unlock()
		d.native.NotTaken(err)
		e.over()
	})
}

// giveBack gives the event back to the driver, unless it is somebody else's. It runs on a bound thread.
func (e *SharedEvent) giveBack() error {
	if e.from == ofOthers {
		return nil
	}
	return e.dev.native.Native.DestroyEvent(e.h)
}

// over tells whose event it is that it is not used any more.
func (e *SharedEvent) over() {
	if e.freed != nil {
		go e.freed()
	}
}

// RecordEvent records a shared event of the queue's device behind what the operation waits for, and behind all that the queue's native
// stream has been given before: waits for the event that are issued from then on, by whomever, wait for that. [Semaphore.WaitIssued] of
// a point that it signals tells when that is. Its signals are reached when the record is complete.
func (q *Queue) RecordEvent(o Order, e *SharedEvent) error {
	return q.withEvent(o, e, work.EventRecord)
}

// WaitEvent waits for the last record of a shared event of the queue's device, as it is when the operation is issued: in the call if what
// it waits for is issued, else later; [Semaphore.WaitIssued] of a point that it signals tells. What comes after the operation comes
// after the work behind which the event was recorded, and so does all that the queue's native stream is given later. As with
// [Queue.WaitValue], what is let go of meanwhile is given back when the wait is over. If the other process was killed before its work was
// done that may be never: the device's other queues go on, and Close gives the wait up ([CloseError]) and leaves to the driver what the device has.
func (q *Queue) WaitEvent(o Order, e *SharedEvent) error {
	return q.withEvent(o, e, work.EventWait)
}

func (q *Queue) withEvent(o Order, e *SharedEvent, kind work.Kind) error {
	switch {
	case q.dev == nil:
		return errZero
	case e != nil && e.dev != nil && e.dev != q.dev:
		return argument(kind.String(), "the event is of device %s, and the queue of %s", e.dev.native.Info.Name, q.dev.native.Info.Name)
	}
	err := e.hold()
	if err != nil && q.dev.failed() == nil { // else the submission fails, whatever it is given
		return fmt.Errorf("gpu: %s: %w", kind, err)
	}
	s := q.get(kind)
	if err == nil {
		s.shared = e
	}
	return q.submit(s, o)
}

// RecordEvent is [Queue.RecordEvent].
func (s *Stream) RecordEvent(e *SharedEvent) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.RecordEvent(o, e))
}

// WaitEvent is [Queue.WaitEvent].
func (s *Stream) WaitEvent(e *SharedEvent) error {
	o, err := s.begin()
	if err != nil {
		return err
	}
	return s.end(s.q.WaitEvent(o, e))
}
