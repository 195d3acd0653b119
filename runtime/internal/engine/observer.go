package engine

import "time"

// An Observer follows one submission, for a trace or a timing. The methods must not block, and must
// call no method of the submission. The goroutine that submits or issues the submission calls the
// methods from Parks to Recorded.
type Observer interface {
	// Parks says that the submission is parked. It may be called again.
	Parks()

	// Begins is called right before the native calls, with the timeline locked. waits says whether
	// the stream has got native waits for the submission.
	Begins(s *Submission, waits bool)

	// Begun is called right after the native calls, with the timeline locked. some says whether the
	// stream has got any of these calls.
	Begun(s *Submission, some bool)

	// Timed reports whether an event must be recorded behind the submission at once.
	Timed() bool

	// Recorded is called when an event has been recorded behind the submission at once.
	Recorded(e *Event)

	// EventBehind returns the event behind the submission, with a reference for the caller, or nil.
	// The observer of the next submission takes the time of that event as the time at which the
	// stream became free. The caller holds a ring's mu.
	EventBehind(now time.Duration) *Event

	// Fails says that the signals fail. It may be called again.
	Fails(err error)

	// Ends is the last call, before the record is recycled.
	Ends(s *Submission)
}

// InFront returns the event behind the submission issued last, with a reference for the caller. It
// returns nil if that submission has been retired or its observer has no event. Observers take the
// time of that event as the time at which the stream is free for the work that is being issued. The
// caller holds mu.
func (tl *Timeline) InFront(now time.Duration) *Event {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	if last < tl.ring.head { // it has been retired
		return nil
	}
	if o := tl.ring.at(last).Observer; o != nil {
		return o.EventBehind(now)
	}
	return nil
}
