package simdriver

import (
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Timers = (*device)(nil)

// A timer is what an event has that notes times. All records of timers are numbered, those of one timer in their order.
type timer struct {
	record uint64 // the number of the last one, and how many marks complete it; under the event's mu
	marks  uint64

	mu     sync.Mutex
	marked uint64    // the latest one that has marked it
	count  uint64    // how often
	at     time.Time // when last
}

// unmarked are the marks of a record that is complete when the stream has executed it: nodes of a graph mark a timer while
// the launch goes on.
const unmarked = ^uint64(0)

// mark notes that the device has come to a record.
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

// passed reports whether a record's marks have completed it. It may be false although they have, if a later one has made
// some.
func (e *event) passed(record, marks uint64) bool {
	t := e.timer
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.marked == record && t.count >= marks
}

// NewTimer makes an event that notes the time at which a stream, or a graph, comes to its record.
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

// reachedAt returns when the last record of a timer was come to.
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
		return time.Time{}, failf(codeElapsed, "event %#x: %w: it notes no times, for NewEvent made it, not NewTimer", uint64(h), ErrInvalidHandle)
	case e.stream == nil:
		return time.Time{}, failf(codeElapsed, "event %#x: %w: it was never recorded", uint64(h), ErrInvalidHandle)
	case !e.reached():
		return time.Time{}, failf(codeElapsed, "event %#x: %w", uint64(h), ErrNotReady)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at, nil
}
