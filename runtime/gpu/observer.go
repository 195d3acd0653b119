package gpu

import "time"

// An observer is told what becomes of one submission. The methods must not block, and call nothing of the
// submission. Those up to recorded are called by the goroutine that issues it.
type observer interface {
	// parks says that the submission waits for something that nobody has issued. It may be called again.
	parks()

	// begins is called right before the native calls, with the timeline locked. waits says that the stream
	// has been made to wait for the submission.
	begins(s *submission, waits bool)

	// begun is called right behind the native calls, and told whether the stream has got any.
	begun(s *submission, some bool)

	// timed reports whether an event is to be recorded behind the submission at once.
	timed() bool

	// recorded is called when that event has been recorded.
	recorded(e *event)

	// end returns the event that was recorded behind the submission, held, for an observer that wants to
	// know from when on the stream has been free. It may return nil. The caller holds a ring's mu.
	end(now time.Duration) *event

	// fails says that the signals fail. It may be called again.
	fails(err error)

	// ends is the last call: the record is let go of.
	ends(s *submission)
}

// inFront returns the event behind the last submission, held, if there is one: the stream goes from that
// event to what it is given now. The caller holds mu.
func (tl *timeline) inFront(now time.Duration) *event {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	last := tl.issued.Load()
	if last < tl.ring.head { // it has been passed
		return nil
	}
	if o := tl.ring.at(last).seen; o != nil {
		return o.end(now)
	}
	return nil
}
