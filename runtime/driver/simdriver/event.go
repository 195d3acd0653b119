package simdriver

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
)

// An event refers to a position in a stream.
type event struct {
	dev    *device
	timer  *timer       // holds the time of the last record; nil unless NewTimer made the event
	waits  atomic.Int32 // number of operations in streams that wait for a record of the event
	opened bool         // another process has made the event
	*position
}

// A position is the place of an event's last record. Processes that share an event share its
// position.
type position struct {
	mu     sync.Mutex
	stream *stream  // stream of the last record; nil if there is none
	seq    uint64   // the record is complete when the stream has executed this many operations
	users  []*event // the event of each process that shares the position; nil if the position is not shared
	gone   bool     // the process that made the event has destroyed the event, so no other process may use it
}

// reached reports whether the event's last record is complete. An event that was never recorded
// counts as complete. The caller holds e.mu.
func (e *event) reached() bool {
	return e.stream == nil || e.stream.done.Load() >= e.seq || e.timer != nil && e.passed(e.timer.record, e.timer.marks)
}

// NewEvent makes an event.
func (v *device) NewEvent() (driver.Event, error) {
	if err := v.enter(codeNewEvent, true); err != nil {
		return 0, err
	}
	return v.newEvent(codeNewEvent, &event{dev: v})
}

func (v *device) newEvent(c code, e *event) (driver.Event, error) {
	if e.position == nil {
		e.position = new(position)
	}
	h := v.d.events.add(e)
	if h == 0 {
		return 0, fail(c, errTooMany)
	}
	return driver.Event(h), nil
}

// DestroyEvent destroys an event. It fails while an operation that may still execute waits for the
// event.
func (v *device) DestroyEvent(h driver.Event) error {
	err, ok := v.end(codeDestroyEvent)
	if !ok {
		return err
	}
	e, bad := v.event(codeDestroyEvent, h)
	if bad != nil {
		return bad
	}
	if err == nil {
		if n := e.awaited(); n > 0 {
			return failf(codeDestroyEvent, "event %#x of device %d: %d waits for it are pending: %w", uint64(h), v.index, n, ErrBusy)
		}
	}
	if v.d.events.remove(uintptr(h)) != nil {
		v.d.machine.destroyed(e)
	}
	return err
}

// Record adds a record of the event to the stream.
func (v *device) Record(h driver.Event, sh driver.Stream) error {
	later, err := v.submit(codeRecord)
	if err != nil {
		return err
	}
	e, err := v.event(codeRecord, h)
	if err != nil {
		return err
	}
	s, err := v.working(codeRecord, sh)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.recordable(h); err != nil {
		return fail(codeRecord, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.timer != nil:
		o := s.slot(codeRecord)
		o.fail, o.event, o.record = later, e, v.d.records.Add(1)
		e.timer.record, e.timer.marks = o.record, unmarked
		s.publish()
	case later != nil || !s.idle(codeRecord):
		o := s.slot(codeRecord)
		o.fail = later
		s.publish()
	}
	e.stream, e.seq = s, s.tail.Load()
	return nil
}

// recordable returns an error if the event cannot be recorded now. The caller holds e.mu.
func (e *event) recordable(h driver.Event) error {
	if err := e.usable(h); err != nil || e.dev.d.caps.RerecordEvents {
		return err
	}
	n := e.waits.Load()
	for _, o := range e.users {
		if o != e {
			n += o.waits.Load()
		}
	}
	if n > 0 {
		return fmt.Errorf("event %#x of device %d: %d waits for its last record are pending; this device can record it again only after them: %w",
			uint64(h), e.dev.index, n, ErrBusy)
	}
	if !e.reached() {
		return fmt.Errorf("event %#x of device %d: its last record is pending; this device can record it again only when it is complete: %w", uint64(h), e.dev.index, ErrBusy)
	}
	return nil
}

// Query reports whether the event's last record is complete.
func (v *device) Query(h driver.Event) (done bool, err error) {
	if _, err := v.submit(codeQuery); err != nil {
		return false, err
	}
	e, err := v.event(codeQuery, h)
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	err = e.usable(h)
	done = err == nil && e.reached()
	e.mu.Unlock()
	if err != nil {
		return false, fail(codeQuery, err)
	}
	if done && v.tight.Load() > 0 {
		v.tighten()
	}
	return done, nil
}

// StreamWait makes the stream wait for the event's last record.
func (v *device) StreamWait(sh driver.Stream, h driver.Event) error {
	later, err := v.submit(codeStreamWait)
	if err != nil {
		return err
	}
	s, err := v.working(codeStreamWait, sh)
	if err != nil {
		return err
	}
	e := v.d.events.get(uintptr(h))
	if e == nil {
		return failf(codeStreamWait, "event %#x: %w: no such event, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	// The event must not be recorded again before the wait is counted.
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usable(h); err != nil {
		return fail(codeStreamWait, err)
	}
	if v.d.pooled.Load() && e.stream != nil && e.stream != s {
		s.mu.Lock()
		s.note(e.stream, e.seq)
		s.mu.Unlock()
	}
	if later == nil && (e.stream == s || e.reached()) {
		return nil
	}
	e.waits.Add(1)
	s.mu.Lock()
	o := s.slot(codeStreamWait)
	o.fail, o.event, o.source, o.seq = later, e, e.stream, e.seq
	if e.timer != nil {
		o.record, o.n = e.timer.record, e.timer.marks
	}
	s.publish()
	s.mu.Unlock()
	return nil
}

// event finds an event of the device by handle.
func (v *device) event(c code, h driver.Event) (*event, error) {
	e := v.d.events.get(uintptr(h))
	if e == nil {
		return nil, failf(c, "event %#x: %w: no such event, or it was destroyed", uint64(h), ErrInvalidHandle)
	}
	if e.dev != v {
		return nil, failf(c, "event %#x: %w: it belongs to device %d, not %d", uint64(h), ErrInvalidHandle, e.dev.index, v.index)
	}
	return e, nil
}
