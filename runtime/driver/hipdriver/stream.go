package hipdriver

import (
	"fmt"
	"runtime"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

// defaultStreams is the highest of HIP's handles for default streams: null, legacy and per thread.
// Which stream such a handle means depends on the calling thread and its device, so methods refuse
// these handles.
const defaultStreams = 2

func (d *device) noStream(op string, s driver.Stream) error {
	return d.refuse(op, fmt.Errorf("not a stream that NewStream or AdoptStream accepts: %w", hip.ErrorInvalidHandle), "stream %#x", uintptr(s))
}

func (d *device) NewStream() (driver.Stream, error) {
	s, err := d.lib.StreamCreateWithFlags(hip.StreamNonBlocking)
	if err != nil {
		return 0, d.fail("new stream", err, "create a stream")
	}
	d.setCaptured(driver.Stream(s), false)
	return driver.Stream(s), nil
}

// setCaptured adds a stream to the device's streams, and records whether it is being captured.
func (d *device) setCaptured(s driver.Stream, is bool) {
	d.mu.Lock()
	d.streams[s] = is
	d.mu.Unlock()
}

var _ driver.Priorities = (*device)(nil)

func (d *device) NewPriorityStream(priority int) (driver.Stream, error) {
	priority = d.caps.ClampPriority(priority)
	s, err := d.lib.StreamCreateWithPriority(hip.StreamNonBlocking, int32(priority))
	if err != nil {
		return 0, d.fail("new stream", err, "create a stream of priority %d", priority)
	}
	d.setCaptured(driver.Stream(s), false)
	return driver.Stream(s), nil
}

func (d *device) DestroyStream(s driver.Stream) error {
	if s <= defaultStreams {
		return d.noStream("destroy stream", s)
	}
	d.mu.Lock() // meanwhile no goroutine may query the stream, or order a launch after a launch in it
	defer d.mu.Unlock()
	// HIP itself would destroy a stream with pending work, and let the work run on.
	if !d.streams[s] && d.lib.StreamQuery(hip.Stream(s)) == hip.ErrorNotReady {
		if d.reminds {
			d.lib.GetLastError()
		}
		return d.fail("destroy stream", driver.ErrBusy, "stream %#x", uintptr(s))
	}
	if err := d.lib.StreamDestroy(hip.Stream(s)); err != nil {
		return d.fail("destroy stream", err, "stream %#x", uintptr(s))
	}
	delete(d.streams, s)
	for _, l := range d.execs {
		if l.stream == s {
			l.stream = 0 // the launch is complete, so no later launch waits for it
		}
	}
	return nil
}

// NewEvent makes an event with HIP's default fences. Without them the host could read stale data
// after the event.
func (d *device) NewEvent() (driver.Event, error) {
	e, err := d.lib.EventCreateWithFlags(hip.EventDisableTiming)
	if err != nil {
		return 0, d.fail("new event", err, "create an event")
	}
	return driver.Event(e), nil
}

func (d *device) DestroyEvent(e driver.Event) error {
	if err := d.lib.EventDestroy(hip.Event(e)); err != nil {
		return d.fail("destroy event", err, "event %#x", uintptr(e))
	}
	return nil
}

func (d *device) Record(e driver.Event, s driver.Stream) error {
	if s <= defaultStreams {
		return d.noStream("record", s)
	}
	return d.submit("record", func() error {
		if err := d.lib.EventRecord(hip.Event(e), hip.Stream(s)); err != nil {
			return d.fail("record", err, "event %#x in stream %#x", uintptr(e), uintptr(s))
		}
		return nil
	})
}

func (d *device) Query(e driver.Event) (done bool, err error) {
	err = d.submit("query", func() (err error) {
		done, err = d.query(e)
		return err
	})
	return done, err
}

func (d *device) query(e driver.Event) (bool, error) {
	if d.reminds { // an error and the call that clears it must be on the same thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	err := d.lib.EventQuery(hip.Event(e))
	if err == nil {
		return true, nil
	}
	if err == hip.ErrorNotReady { // the usual case; the library returns this error unwrapped
		if d.reminds {
			d.lib.GetLastError()
		}
		return false, nil
	}
	return false, d.fail("query", err, "event %#x", uintptr(e))
}

func (d *device) StreamWait(s driver.Stream, e driver.Event) error {
	if s <= defaultStreams {
		return d.noStream("wait", s)
	}
	return d.submit("wait", func() error {
		if err := d.lib.StreamWaitEvent(hip.Stream(s), hip.Event(e), 0); err != nil {
			return d.fail("wait", err, "stream %#x for event %#x", uintptr(s), uintptr(e))
		}
		return nil
	})
}
