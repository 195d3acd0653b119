package gpu

import (
	"fmt"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// A SharedEvent orders work of several processes of the machine, without the host of any of them waiting for a device. One process
// makes it ([Device.NewSharedEvent]) and exports it, others import it ([Device.ImportSharedEvent]), and each may record it ([Queue.RecordEvent])
// and wait for it ([Queue.WaitEvent]). Points of semaphores do not leave their process: to hand one on, record an event behind it.
//
// A wait is for the last record, of whatever process, that was issued before the wait was; if there is none it is for nothing. So the processes
// have to tell each other, by a pipe, say: who records waits until the record is issued ([Semaphore.WaitIssued]), and then tells who is to
// wait; who waits tells, when the wait is issued, that the event may be recorded anew. Where a device cannot record an event anew
// before that is over ([driver.Caps].RerecordEvents) both must have been reached instead.
//
// The process that has made it must keep it until the others have given theirs back: to use an event that its process has destroyed is
// undefined, says CUDA. If a process ends before its record is complete a wait for that may never be over. Then nobody hangs but
// what comes behind the wait on the same queue's stream: fail the semaphore that it signals ([Semaphore.Fail]), and close the device,
// which gives it up after ten seconds ([CloseError]). Let waits for other processes have a queue of their own.
//
// All methods may be called concurrently. A zero SharedEvent was neither made nor imported: [ErrArgument].
type SharedEvent struct {
	dev    *Device
	h      driver.Event
	freed  func() // to be called when it is destroyed
	refs   atomic.Int32
	closed atomic.Bool
}

// NewSharedEvent makes an event (C: cuEventCreate with CU_EVENT_INTERPROCESS). It blocks while the driver does. Where the device
// cannot do that, as with HIP, whose events of this kind cannot be relied on, the error is [driver.ErrUnsupported].
func (d *Device) NewSharedEvent() (*SharedEvent, error) {
	return d.sharedEvent("make a shared event", nil, func() (driver.Event, error) { return d.ipcEvents.NewIPCEvent() })
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
	return d.sharedEvent(op, freed, func() (driver.Event, error) { return d.ipcEvents.OpenEvent(h.Handle) })
}

// sharedEvent makes what a native event is for.
func (d *Device) sharedEvent(op string, freed func(), native func() (driver.Event, error)) (*SharedEvent, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if d.ipcEvents == nil {
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.info.Name, driver.ErrUnsupported)
	}
	e := &SharedEvent{dev: d, freed: freed}
	e.refs.Store(1)
	err := d.do(func() (err error) {
		if e.h, err = native(); err == nil {
			d.mu.Lock()
			d.shared[e] = struct{}{}
			d.mu.Unlock()
		}
		return err
	})
	if err != nil {
		d.check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.info.Name, err)
	}
	return e, nil
}

// Device returns the event's device, on whose queues it can be used.
func (e *SharedEvent) Device() *Device {
	if e == nil {
		return nil
	}
	return e.dev
}

// Export names the event for other processes (C: cuIpcGetEventHandle). It blocks while the driver does. One that was imported is for its own
// process to export.
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
	h := EventHandle{Driver: d.of.Name(), Device: d.info.UUID}
	err := d.do(func() (err error) {
		h.Handle, err = d.ipcEvents.ExportEvent(e.h)
		return err
	})
	if err != nil {
		d.check(err)
		return EventHandle{}, fmt.Errorf("gpu: %s of %s: %w", op, d.info.Name, err)
	}
	return h, nil
}

// Close lets go of the event, and returns nil; operations that are under way still use it. Closing again does nothing.
func (e *SharedEvent) Close() error {
	if e != nil && e.dev != nil && e.closed.CompareAndSwap(false, true) {
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
	d.reclaim(func() {
		d.mu.Lock()
		delete(d.shared, e)
		d.mu.Unlock()
		d.notTaken(d.drv.DestroyEvent(e.h))
		e.over()
	})
}

// over tells who has imported the event that the driver has it back.
func (e *SharedEvent) over() {
	if e.freed != nil {
		go e.freed()
	}
}

// RecordEvent records a shared event of the queue's device behind what the operation waits for, and behind all that the queue's native
// stream has been given before: waits for the event that are issued from then on, in any process, wait for that. [Semaphore.WaitIssued] of
// a point that it signals tells when that is. Its signals are reached when the record is complete.
func (q *Queue) RecordEvent(o Order, e *SharedEvent) error {
	return q.withEvent(o, e, work.EventRecord)
}

// WaitEvent waits for the last record of a shared event of the queue's device, as it is when the operation is issued: in the call if what
// it waits for is issued, else later; [Semaphore.WaitIssued] of a point that it signals tells. What comes after the operation comes
// after the work behind which the event was recorded, and so does all that the queue's native stream is given later.
func (q *Queue) WaitEvent(o Order, e *SharedEvent) error {
	return q.withEvent(o, e, work.EventWait)
}

func (q *Queue) withEvent(o Order, e *SharedEvent, kind work.Kind) error {
	switch {
	case q.dev == nil:
		return errZero
	case e != nil && e.dev != nil && e.dev != q.dev:
		return argument(kind.String(), "the event is of device %s, and the queue of %s", e.dev.info.Name, q.dev.info.Name)
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
