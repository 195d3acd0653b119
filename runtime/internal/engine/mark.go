package engine

import (
	"cmp"
	"runtime"
)

// Behind most submissions an event is recorded at once, by the goroutine that issues them. Behind
// two kinds of submissions the event is recorded later: behind work of a Stream, and behind
// allocations and frees that have no signals. Timeline.records has the exceptions. Behind these two
// kinds an event is recorded
//   - when somebody needs it: the program asks for a point of the Stream, a goroutine waits,
//     another timeline waits for the work, or Close of a device must know whether work of a lost
//     device still uses memory (Timeline.hasPassedIn);
//   - before the stream is made to wait, or is given work that may itself wait. An event recorded
//     later would also cover that wait, and native streams could wait for each other in a circle;
//   - at the latest after markEvery submissions, so that finished work is retired in small pieces.
//
// So the first event behind a submission covers no wait of a later submission. Native streams wait
// only for events behind work that was issued before, so no circle can arise.
//
// Points, waits and retiring refer to numbers, never to events. Code that needs an event looks it
// up by number. The lookup returns only recorded events: for an event that was never recorded,
// drivers report that it is complete. Each submission gets its event before it is issued, so
// recording the event later never needs a new one.

// markEvery is the largest number of submissions that share one event.
const markEvery = 64

// records reports whether an event must be recorded at once behind the submission s, which gets the
// number seq. The caller holds tl.mu.
func (tl *Timeline) records(s *Submission, seq uint64) bool {
	return tl.Adopted || tl.Lane != nil || s.abroad() || tl.awaiting.Load() == seq || s.Timed || s.Delivers || s.Lends ||
		seq-tl.marked.Load() >= markEvery || !s.onDemand()
}

// onDemand reports whether the submission signals only Streams, or allocates or frees memory and
// has no signals. Then the event behind the submission may be recorded later, when the event is
// needed. Timeline.records has the exceptions.
func (s *Submission) onDemand() bool {
	for i := range s.Signals {
		if s.Signals[i].Semaphore.Tag.Load() == 0 {
			return false
		}
	}
	return len(s.Signals) > 0 || s.Op.Kind.Unasked()
}

// mayHoldUp reports whether the submission may make the stream wait for anything: other streams,
// other devices, this program or another program.
func (s *Submission) mayHoldUp(tl *Timeline) bool {
	return len(s.Deps.marks) > 0 || s.Op.Kind.Waits() || s.Action != nil && s.Action.HoldsUp(s, tl) || s.Across
}

// mark records an event behind the last issued submission, unless one is recorded there already.
// The caller holds tl.mu.
func (tl *Timeline) mark() error {
	last := tl.issued.Load()
	if tl.marked.Load() == last || tl.ended.Load() { // after End, all work is passed or has failed
		return nil
	}
	// The submission with the number last is still in the ring: work without an event behind it is
	// not retired.
	tl.ring.mu.Lock()
	s := tl.ring.at(last)
	e := s.event
	e.Hold()
	tl.ring.mu.Unlock()
	defer e.Drop()
	if err := tl.Device.Native.Record(e.Handle, tl.Stream); err != nil {
		return err
	}
	tl.ring.mu.Lock()
	if last >= tl.ring.head {
		s.recorded = true
	}
	tl.ring.mu.Unlock()
	tl.marked.Store(last)
	return nil
}

// tryMark records an event behind the last issued submission if none is recorded behind seq. If
// another goroutine holds tl.mu, tryMark does nothing: a later poll tries again.
func (tl *Timeline) tryMark(seq uint64) (err error) {
	if last := min(seq, tl.issued.Load()); last > tl.marked.Load() && tl.mu.TryLock() {
		if last > tl.marked.Load() {
			err = tl.mark()
		}
		tl.mu.Unlock()
	}
	return err
}

// eventBehind returns the first event recorded behind seq, and adds a reference, which the caller
// must Drop. If the submission with the number seq has been retired, eventBehind returns nil and
// true. If no event is recorded behind seq yet, eventBehind returns nil and false.
func (tl *Timeline) eventBehind(seq uint64) (*Event, bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq < tl.ring.head {
		return nil, true
	}
	s := tl.ring.marked(seq, tl.issued.Load())
	if s == nil {
		return nil, false
	}
	s.event.Hold()
	return s.event, true
}

// event returns the first event recorded behind the mark, and adds a reference, which the caller
// must Drop. If no event is recorded behind the mark yet, the method records one. If the work has
// been retired, the method returns nil and no error. The caller holds no Timeline.mu.
func (m Mark) event() (*Event, error) {
	e, ok := m.Timeline.eventBehind(m.Seq)
	if ok {
		return e, nil
	}
	if err := m.Record(); err != nil {
		return nil, err
	}
	if e, ok = m.Timeline.eventBehind(m.Seq); ok {
		return e, nil
	}
	return nil, cmp.Or(m.Lost(), m.Timeline.Device.ClosedError()) // End was called
}

// Record records an event behind the mark, unless one is recorded there already. The caller holds
// no Timeline.mu.
func (m Mark) Record() error {
	// The lane's thread may hold m.Timeline.mu for long, so do not wait for that mutex. The thread
	// records an event behind everything that it issues.
	if m.Timeline.Lane != nil {
		m.untilIssued()
		return nil
	}
	for m.Seq > m.Timeline.marked.Load() {
		// Do not call Lock: a function of the program may be running with mu held, and may take
		// long. An event was recorded before that function was called, so this loop soon sees that
		// m.Timeline.marked has reached m.Seq.
		if !m.Timeline.mu.TryLock() {
			runtime.Gosched()
			continue
		}
		// mark records an event behind m.Seq or behind later work: whoever gave m.Seq to the stream
		// held mu, so by now m.Seq has been issued.
		err := m.Timeline.mark()
		m.Timeline.mu.Unlock()
		if err != nil {
			m.Timeline.Device.Check(err)
			return err
		}
		break // no second round: after End, mark does nothing, and the loop would never end
	}
	return nil
}

// untilIssued waits until the work at the mark is in the ring. The signals of that work have been
// published, so the goroutine that issues the work needs only a few more instructions and does not
// block. untilIssued does not lock Timeline.mu, because a lane's thread may hold that mutex for
// long, for its next group.
func (m Mark) untilIssued() {
	for m.Timeline.issued.Load() < m.Seq {
		runtime.Gosched()
	}
}
