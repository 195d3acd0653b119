// Package events has native events that code outside the runtime uses as well: other processes, and
// code of this process that uses the driver's own API. Package interop documents them.
package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/faces"
)

// A Device has the events of a device.
type Device struct {
	Engine *engine.Device
	Faces  *faces.Faces

	mu  sync.Mutex // protects all; no other lock is taken while it is held
	all map[*Event]struct{}
}

// An Event is a native event. A zero Event was neither made nor imported.
type Event struct {
	dev     *Device
	h       driver.Event
	from    origin
	freed   func() // called when the runtime no longer uses the event
	refs    atomic.Int32
	closed  atomic.Bool
	awaited atomic.Bool // closed, and freed is to be called; counted in engine.Device.Short
}

// An origin says where an event comes from, and so which other code can use it and which code
// destroys it.
type origin uint8

const (
	forProcesses origin = iota // made for other processes or by another process; giveBack destroys it
	forProcess                 // made for this process alone; giveBack destroys it
	ofOthers                   // made and destroyed by other code
)

// ready returns an error if the device accepts no more work. A nil or zero Device accepts no work.
func (d *Device) ready(op string) error {
	if d == nil || d.Engine == nil {
		return errs.Zero(op, "Device")
	}
	return d.Engine.Failed()
}

// unsupported returns the error of a device that cannot do something.
func (d *Device) unsupported(op string) error {
	return fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, driver.ErrUnsupported)
}

// New makes an event for this process.
func (d *Device) New() (*Event, error) {
	const op = "make an event"
	if err := d.ready(op); err != nil {
		return nil, err
	}
	return d.add(op, forProcess, nil, d.Engine.Native.NewEvent)
}

// NewShared makes an event for other processes.
func (d *Device) NewShared() (*Event, error) {
	const op = "make a shared event"
	switch err := d.ready(op); {
	case err != nil:
		return nil, err
	case d.Faces.IPCEvents == nil:
		return nil, d.unsupported(op)
	}
	return d.add(op, forProcesses, nil, d.Faces.IPCEvents.NewIPCEvent)
}

// Import makes an event from another process's event. If the function freed is not nil, it is
// called when the driver has released the event.
func (d *Device) Import(op string, h driver.EventHandle, freed func()) (*Event, error) {
	switch err := d.ready(op); {
	case err != nil:
		return nil, err
	case d.Faces.IPCEvents == nil:
		return nil, d.unsupported(op)
	}
	return d.add(op, forProcesses, freed, func() (driver.Event, error) { return d.Faces.IPCEvents.OpenEvent(h) })
}

// Adopt makes an event from a native event of other code. If the function freed is not nil, it is
// called when the runtime no longer uses the event.
func (d *Device) Adopt(event driver.Event, freed func()) (*Event, error) {
	const op = "adopt an event"
	switch err := d.ready(op); {
	case err != nil:
		return nil, err
	case d.Faces.Natives == nil:
		return nil, d.unsupported(op)
	case event == 0:
		return nil, errs.Argument(op, "no event")
	}
	return d.add(op, ofOthers, freed, func() (driver.Event, error) { return event, nil })
}

// add makes an Event of the native event that the function native returns.
func (d *Device) add(op string, from origin, freed func(), native func() (driver.Event, error)) (*Event, error) {
	e := &Event{dev: d, from: from, freed: freed}
	e.refs.Store(1)
	err := d.Engine.Do(func() (err error) {
		if e.h, err = native(); err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.all == nil {
				d.all = map[*Event]struct{}{}
			}
			d.all[e] = struct{}{}
		}
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.Engine.Info.Name, err)
	}
	return e, nil
}

// Close destroys the remaining events when the device is closed. It runs on a bound thread.
func (d *Device) Close(ctx context.Context) (wrong []error) {
	d.mu.Lock()
	all := d.all
	d.all = nil
	d.mu.Unlock()
	for e := range all {
		e.closed.Store(true)
		wrong = append(wrong, d.Engine.Insist(ctx, e.giveBack))
		e.over()
	}
	return wrong
}

// Native returns the driver's event. For a nil or zero Event it is 0.
func (e *Event) Native() driver.Event {
	if e == nil {
		return 0
	}
	return e.h
}

// Device returns the event's device, or nil for a nil or zero Event.
func (e *Event) Device() *Device {
	if e == nil {
		return nil
	}
	return e.dev
}

// ForProcesses reports whether the event was made for other processes or by another process.
func (e *Event) ForProcesses() bool { return e.from == forProcesses }

// Export returns a handle of the event for other processes. It blocks while the driver does.
func (e *Event) Export() (h driver.EventHandle, err error) {
	const op = "export a shared event"
	if err := e.Hold(); err != nil {
		return h, fmt.Errorf("gpu: %s: %w", op, err)
	}
	defer e.Release()
	d := e.dev
	if err := d.ready(op); err != nil {
		return h, err
	}
	if e.from != forProcesses {
		return h, errs.Argument(op, "it was not made for other processes: NewSharedEvent makes one")
	}
	err = d.Engine.Do(func() (err error) {
		h, err = d.Faces.IPCEvents.ExportEvent(e.h)
		return err
	})
	if err != nil {
		d.Engine.Check(err)
		return driver.EventHandle{}, fmt.Errorf("gpu: %s of %s: %w", op, d.Engine.Info.Name, err)
	}
	return h, nil
}

// Close releases the event. Submissions that hold it still use it. Closing again does nothing.
func (e *Event) Close() {
	if e != nil && e.dev != nil && e.closed.CompareAndSwap(false, true) {
		if e.freed != nil { // the event's owner waits until no work uses it
			e.awaited.Store(true)
			e.dev.Engine.Short.Add(1)
			e.dev.Engine.WantAll()
		}
		e.Release()
	}
}

// Hold keeps the event until Release. It returns an error if the event has been closed.
func (e *Event) Hold() error {
	switch {
	case e == nil || e.dev == nil:
		return fmt.Errorf("no event: %w", errs.ErrArgument)
	case e.closed.Load() || !engine.HoldLive(&e.refs, 1):
		return fmt.Errorf("shared event: %w", errs.ErrClosed)
	}
	return nil
}

// Release ends a hold. After the last hold the event is destroyed, unless other code owns it. An
// event for which a stream still waits is destroyed when the device is closed.
func (e *Event) Release() {
	if e.refs.Add(-1) > 0 {
		return
	}
	d := e.dev
	if e.awaited.Load() {
		d.Engine.Short.Add(-1)
	}
	d.Engine.Reclaim(func() {
		err := e.giveBack()
		// If a stream still waits for the event, the event lives until the device is closed.
		if errors.Is(err, driver.ErrBusy) {
			return
		}
		d.mu.Lock()
		delete(d.all, e)
		d.mu.Unlock()
		d.Engine.NotTaken(err)
		e.over()
	})
}

// giveBack destroys the event, unless other code owns it. It runs on a bound thread.
func (e *Event) giveBack() error {
	if e.from == ofOthers {
		return nil
	}
	return e.dev.Engine.Native.DestroyEvent(e.h)
}

// over notifies the event's owner that the event is no longer used.
func (e *Event) over() {
	if e.freed != nil {
		go e.freed()
	}
}
