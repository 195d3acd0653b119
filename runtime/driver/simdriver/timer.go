package simdriver

import (
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Timers = (*device)(nil)

// A timer holds the time of an event of NewTimer. A driver numbers the records of all its timers. A
// later record of a timer has a higher number.
type timer struct {
	record uint64 // number of the last record; protected by the event's mu
	marks  uint64 // number of marks that complete the last record; protected by the event's mu

	mu     sync.Mutex
	marked uint64    // the newest record that a mark was made for
	count  uint64    // number of marks of that record so far
	at     time.Time // time of the last mark
}

// unmarked is the value of timer.marks for a record that Record has put into a stream. Such a
// record is complete when the stream has executed it; marks do not complete it. A record by nodes
// of a graph is complete when each of these nodes has made a mark.
const unmarked = ^uint64(0)

// mark makes a mark at the current time: a stream or a node of a graph has reached the record.
func (e *event) mark(record uint64) {
	t, now := e.timer, time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if record > t.marked {
		t.marked, t.count = record, 0
	}
	if record == t.marked {
		t.count++
		t.at = now
	}
}

// passed reports whether a record has the given number of marks, and so is complete. It returns
// false if a later record has marks, even if this record is complete.
func (e *event) passed(record, marks uint64) bool {
	t := e.timer
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marked == record && t.count >= marks
}

// NewTimer makes an event that holds the time at which a stream or a graph reaches the event's
// record.
func (v *device) NewTimer() (driver.Event, error) {
	if err := v.enter(codeNewTimer, true); err != nil {
		return 0, err
	}
	if !v.d.caps.Timers {
		return 0, v.cannot(codeNewTimer)
	}
	return v.newEvent(codeNewTimer, &event{dev: v, timer: new(timer)})
}

// Elapsed returns the time between two timers' last records.
func (v *device) Elapsed(from, to driver.Event) (time.Duration, error) {
	if _, err := v.submit(codeElapsed); err != nil {
		return 0, err
	}
	if !v.d.caps.Timers {
		return 0, v.cannot(codeElapsed)
	}
	a, err := v.reachedAt(from)
	if err != nil {
		return 0, err
	}
	b, err := v.reachedAt(to)
	if err != nil {
		return 0, err
	}
	return b.Sub(a), nil
}

// reachedAt returns the time at which the device reached a timer's last record.
func (v *device) reachedAt(h driver.Event) (time.Time, error) {
	e, err := v.event(codeElapsed, h)
	if err != nil {
		return time.Time{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.timer
	switch {
	case t == nil:
		return time.Time{}, failf(codeElapsed, "event %#x: %w: it has no time, because it was made by NewEvent, not by NewTimer", uint64(h), ErrInvalidHandle)
	case e.stream == nil:
		return time.Time{}, failf(codeElapsed, "event %#x: %w: it was never recorded", uint64(h), ErrInvalidHandle)
	case !e.reached():
		return time.Time{}, failf(codeElapsed, "event %#x: %w", uint64(h), ErrNotReady)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at, nil
}
