package engine

import (
	"cmp"
	"runtime"
)

// Most submissions record an event behind themselves at once. Two kinds record it later, unless
// Timeline.records names another reason: work of a Stream, and operations that allocate or free
// memory and have no signals. Behind these an event is recorded
//   - when it is needed: for a point of the Stream, for a goroutine that waits, for another
//     timeline that waits for the work;
//   - before the stream is made to wait, or is given work that may itself wait for others. An event
//     recorded later would cover that wait too, and native streams could wait in a circle;
//   - at the latest behind every markEvery submissions, so that finished work is retired in small
//     pieces.
//
// So between a submission and the first event behind it, nothing waits for others, except perhaps
// the submission itself. Native streams wait only for work that was issued before. No circle can
// arise.
//
// Points, waits and retiring refer to numbers, never to events. Code that needs an event looks it
// up by number. The look-up returns only recorded events, because drivers report an event that was
// never recorded as complete. A submission gets its event before it is issued, so no event has to
// be made later.

// markEvery is the largest number of submissions that share one event.
const markEvery = 64

// records reports whether an event must be recorded behind a submission at once. The caller holds
// mu.
func (tl *Timeline) records(s *Submission, seq uint64) bool {
	return tl.Adopted || tl.Lane != nil || s.abroad() || tl.awaiting.Load() == seq || s.Timed || s.Delivers || s.Lends ||
		seq-tl.marked.Load() >= markEvery || !s.onDemand()
}

// onDemand reports whether the event behind a submission of this kind may be recorded later.
func (s *Submission) onDemand() bool {
	for i := range s.Signals {
		if s.Signals[i].Semaphore.Tag.Load() == 0 {
			return false
		}
	}
	return len(s.Signals) > 0 || s.Op.Kind.Unasked()
}

// mayHoldUp reports whether the submission may make the stream wait: for other streams, for other
// devices, or for this or another program to act.
func (s *Submission) mayHoldUp(tl *Timeline) bool {
	return len(s.Deps) > 0 || s.Op.Kind.Waits() || s.Action != nil && s.Action.HoldsUp(s, tl) || s.Across
}

// mark makes sure that an event is recorded behind everything that has been issued. The caller
// holds mu.
func (tl *Timeline) mark() error {
	last := tl.issued.Load()
	if tl.marked.Load() == last || tl.ended.Load() { // once ended, all work is passed or has failed
		return nil
	}
	tl.ring.mu.Lock() // last is still in the ring: nothing is retired without an event behind it
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

// tryMark records an event behind seq if there is none. It does nothing if another goroutine holds
// mu: that goroutine is issuing work. It records an event itself or soon unlocks mu.
func (tl *Timeline) tryMark(seq uint64) (err error) {
	if last := min(seq, tl.issued.Load()); last > tl.marked.Load() && tl.mu.TryLock() {
		if last > tl.marked.Load() {
			err = tl.mark()
		}
		tl.mu.Unlock()
	}
	return err
}

// eventBehind returns the first event recorded behind seq, with a reference for the caller. It
// returns nil and true if seq has been retired, and nil and false if no event is recorded behind
// seq yet.
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

// event returns the first event recorded behind the mark, with a reference for the caller. If there
// is none, it records one. It returns nil if the work has been retired. The caller holds no
// timeline's mu.
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
	return nil, cmp.Or(m.Lost(), m.Timeline.Device.ClosedError()) // the timeline has ended
}

// Record makes sure that an event is recorded behind the mark. The caller holds no timeline's mu.
func (m Mark) Record() error {
	if m.Timeline.Lane != nil { // its thread may hold mu for long, but records each time
		m.untilIssued()
		return nil
	}
	for m.Seq > m.Timeline.marked.Load() {
		// Not Lock: mu may be held while a function of the program runs. An event was recorded
		// before that call, so marked reaches m and the loop ends.
		if !m.Timeline.mu.TryLock() {
			runtime.Gosched()
			continue
		}
		err := m.Timeline.mark() // covers m: signals are published under mu too
		m.Timeline.mu.Unlock()
		if err != nil {
			m.Timeline.Device.Check(err)
			return err
		}
		break // not another round: if the timeline has ended, marked does not grow
	}
	return nil
}

// untilIssued waits until the work at the mark, whose signals have been published, is in its ring.
// That takes the holder of mu a few instructions, during which it does not block. untilIssued does
// not lock mu, because a lane's thread may have locked mu again and hold it for long.
func (m Mark) untilIssued() {
	for m.Timeline.issued.Load() < m.Seq {
		runtime.Gosched()
	}
}
