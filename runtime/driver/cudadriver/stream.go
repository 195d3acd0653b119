package cudadriver

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

// defaultStreams is the highest of CUDA's handles for default streams: null, legacy and per thread.
// Which stream such a handle means depends on the calling thread and its context, so methods refuse
// these handles.
const defaultStreams = 2

func (d *device) noStream(op string, s driver.Stream) error {
	return d.fail(op, fmt.Errorf("not a stream that NewStream or AdoptStream accepts: %w", cuda.ErrorInvalidHandle), "stream %#x", uintptr(s))
}

func (d *device) NewStream() (driver.Stream, error) {
	s, err := d.lib.StreamCreate(cuda.StreamNonBlocking)
	if err != nil {
		return 0, d.fail("new stream", err, "create a stream")
	}
	return d.newStream(s), nil
}

// newStream adds a new stream to d.streams.
func (d *device) newStream(s cuda.Stream) driver.Stream {
	d.streamsMu.Lock()
	d.streams[s] = struct{}{}
	d.streamsMu.Unlock()
	return driver.Stream(s)
}

func (d *device) DestroyStream(s driver.Stream) error {
	if s <= defaultStreams {
		return d.noStream("destroy stream", s)
	}
	// CUDA itself would destroy a stream with pending work, and let the work run on.
	if d.lib.StreamQuery(cuda.Stream(s)) == cuda.ErrorNotReady {
		return d.fail("destroy stream", driver.ErrBusy, "stream %#x", uintptr(s))
	}
	d.streamsMu.Lock()
	_, known := d.streams[cuda.Stream(s)]
	delete(d.streams, cuda.Stream(s)) // before StreamDestroy, after which another stream can get the handle
	d.streamsMu.Unlock()
	if err := d.lib.StreamDestroy(cuda.Stream(s)); err != nil {
		if known {
			d.streamsMu.Lock()
			d.streams[cuda.Stream(s)] = struct{}{}
			d.streamsMu.Unlock()
		}
		return d.fail("destroy stream", err, "stream %#x", uintptr(s))
	}
	return nil
}

func (d *device) NewEvent() (driver.Event, error) {
	e, err := d.lib.EventCreate(cuda.EventDisableTiming) // recording times would make each record slower
	if err != nil {
		return 0, d.fail("new event", err, "create an event")
	}
	return driver.Event(e), nil
}

func (d *device) DestroyEvent(e driver.Event) error {
	if err := d.lib.EventDestroy(cuda.Event(e)); err != nil {
		return d.fail("destroy event", err, "event %#x", uintptr(e))
	}
	return nil
}

func (d *device) Record(e driver.Event, s driver.Stream) error {
	if s <= defaultStreams {
		return d.noStream("record", s)
	}
	if err := d.submit(func() error { return d.lib.EventRecord(cuda.Event(e), cuda.Stream(s)) }); err != nil {
		return d.fail("record", err, "event %#x in stream %#x", uintptr(e), uintptr(s))
	}
	return nil
}

func (d *device) Query(e driver.Event) (bool, error) {
	err := d.submit(func() error { return d.lib.EventQuery(cuda.Event(e)) })
	if err == nil {
		return true, nil
	}
	if err == cuda.ErrorNotReady { // the usual case; the library returns this error unwrapped
		return false, nil
	}
	return false, d.fail("query", err, "event %#x", uintptr(e))
}

func (d *device) StreamWait(s driver.Stream, e driver.Event) error {
	if s <= defaultStreams {
		return d.noStream("wait", s)
	}
	if err := d.submit(func() error { return d.lib.StreamWaitEvent(cuda.Stream(s), cuda.Event(e), 0) }); err != nil {
		return d.fail("wait", err, "stream %#x for event %#x", uintptr(s), uintptr(e))
	}
	return nil
}
