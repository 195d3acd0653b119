package engine

import "time"

// An Observer follows one submission, for a tracer or for a Timing. The methods must not block. The
// goroutine that submits or issues the submission calls Parks, Begins, Begun and Recorded.
type Observer interface {
	// Parks is called each time the submission is parked, but not for a published barrier.
	Parks()

	// Begins is called right before the native calls of the operation, with the timeline locked.
	// The parameter waits says whether the stream has got native waits for the submission. Begins
	// may record events, and may set s.Timed.
	Begins(s *Submission, waits bool)

	// Begun is called right after the native calls of the operation, with the timeline locked. The
	// parameter some says whether the stream has got any of these calls. If the stream has got
	// none, Begins may be called again. Begun may record events, and may clear s.Timed.
	Begun(s *Submission, some bool)

	// Recorded is called, with the timeline locked, when issuing the submission has recorded an
	// event right behind the submission. Recorded is not called if a native call of the submission
	// has failed, or if the event is recorded later.
	Recorded(e *Event)

	// EventBehind returns the event behind the submission, with a reference for the caller. It
	// returns nil if the observer has no event, or if the stream may have been idle after the
	// submission's work. The parameter now is the present time. The observer of the next submission
	// takes the time of the returned event as the time at which the stream became free. The caller
	// holds a ring's mu.
	EventBehind(now time.Duration) *Event

	// Fails is called when the signals fail. Fails may be called more than once.
	Fails(err error)

	// Ends is called last, before the submission releases anything that it holds. The caller may
	// hold a retireMu.
	Ends(s *Submission)
}

// InFront returns the event behind the submission issued last, with a reference for the caller. It
// returns nil if that submission has been retired, or if EventBehind of each of its observers
// returns nil. Observers take the time of the returned event as the time at which the stream is
// free for the work that is being issued. The caller holds tl.mu.
func (tl *Timeline) InFront(now time.Duration) *Event {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	if last < tl.ring.head { // the submission has been retired
		return nil
	}
	for _, o := range tl.ring.at(last).Observers {
		if e := o.EventBehind(now); e != nil {
			return e
		}
	}
	return nil
}

// RecordTime records a spare event (EventPool.Spare) in the stream and returns it, with a reference
// for the caller. It returns nil if there is no spare event, or if the driver refuses to record the
// event. The caller holds tl.mu.
func (tl *Timeline) RecordTime() *Event {
	e := tl.Device.Events.Spare()
	if e == nil {
		return nil
	}
	if tl.Device.Native.Record(e.Handle, tl.Stream) != nil {
		e.Drop()
		return nil
	}
	e.SinceRef = 0
	return e
}
