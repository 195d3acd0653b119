package engine

import "time"

// An Observer is told what becomes of one submission. The methods must not block, and call nothing of the
// submission. Those up to recorded are called by the goroutine that issues it.
type Observer interface {
	// Parks says that the submission waits for something that nobody has issued. It may be called again.
	Parks()

	// Begins is called right before the native calls, with the timeline locked. waits says that the stream
	// has been made to wait for the submission.
	Begins(s *Submission, waits bool)

	// Begun is called right behind the native calls, and told whether the stream has got any.
	Begun(s *Submission, some bool)

	// Timed reports whether an event is to be recorded behind the submission at once.
	Timed() bool

	// Recorded is called when that event has been recorded.
	Recorded(e *Event)

	// End returns the event that was recorded behind the submission, held, for an observer that wants to
	// know from when on the stream has been free. It may return nil. The caller holds a ring's mu.
	End(now time.Duration) *Event

	// Fails says that the signals fail. It may be called again.
	Fails(err error)

	// Ends is the last call: the record is let go of.
	Ends(s *Submission)
}

// InFront returns the event behind the last submission, held, if there is one: the stream goes from that
// event to what it is given now. The caller holds mu.
func (tl *Timeline) InFront(now time.Duration) *Event {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	if last < tl.ring.head { // it has been passed
		return nil
	}
	if o := tl.ring.at(last).Seen; o != nil {
		return o.End(now)
	}
	return nil
}
