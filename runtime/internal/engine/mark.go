package engine

import (
	"cmp"
	"runtime"
)

// An event is recorded behind a submission at once. The exceptions are work of a Stream, and allocas and
// deallocas without signals, unless records names another reason. Behind these it is recorded
//   - when somebody asks: Stream.Point, a wait, a timeline that is to come after the work;
//   - before the stream is made to wait, or is given work that may itself wait for others. An event
//     recorded later would cover that wait too, and native streams could wait in a circle;
//   - at the latest behind every markEvery submissions, so that what is done comes back in small pieces.
//
// So the first event behind a submission is behind nothing that waits for others, unless the submission
// itself does. Native streams wait only for work that was issued before. No circle can arise.
//
// Points, waits and retiring name numbers, never events. Whoever needs an event looks it up by number. A
// driver calls an unrecorded event complete, so the look-up finds recorded events only. A submission takes
// its event before it is issued, so recording it later needs no new one.

// markEvery is after how many submissions an event is recorded at the latest.
const markEvery = 64

// records reports whether an event is recorded behind a submission at once. The caller holds mu.
func (tl *Timeline) records(s *Submission, seq uint64) bool {
	return tl.Adopted || tl.Lane != nil || s.abroad() || tl.awaiting.Load() == seq || s.Seen != nil && s.Seen.Timed() || s.Delivers || s.Lends ||
		seq-tl.marked.Load() >= markEvery || !s.onDemand()
}

// onDemand reports whether the submission is one whose event may be recorded later.
func (s *Submission) onDemand() bool {
	for i := range s.Signals {
		if s.Signals[i].Semaphore.Tag.Load() == 0 {
			return false
		}
	}
	return len(s.Signals) > 0 || s.Op.Kind.Unasked()
}

// mayHoldUp reports whether the stream may come to wait for others at the submission: for other streams, for other
// devices, or for what only the program or other programs bring.
func (s *Submission) mayHoldUp(tl *Timeline) bool {
	return len(s.Deps) > 0 || s.Op.Kind.Waits() || s.Action != nil && s.Action.HoldsUp(s, tl) || s.Across
}

// mark puts an event behind all that has been issued. The caller holds mu.
func (tl *Timeline) mark() error {
	last := tl.issued.Load()
	if tl.marked.Load() == last || tl.ended.Load() { // then all has been passed, or has failed
		return nil
	}
	tl.ring.mu.Lock() // it is in there, for nothing else is retired without an event
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

// tryMark puts an event behind seq if there is none, unless somebody is issuing, who will see to that, or be done soon.
func (tl *Timeline) tryMark(seq uint64) (err error) {
	if last := min(seq, tl.issued.Load()); last > tl.marked.Load() && tl.mu.TryLock() {
		if last > tl.marked.Load() {
			err = tl.mark()
		}
		tl.mu.Unlock()
	}
	return err
}

// eventBehind returns the first event behind seq, held, or nil if the host has found that done. It reports false if there is
// none, or none yet.
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

// event returns the first event behind a mark, held, and records one if there is none. It returns nil if the work has been
// found done. The caller holds no timeline's mu.
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
	return nil, cmp.Or(m.Lost(), m.Timeline.Device.ClosedError()) // its stream has ended meanwhile
}

// Record makes sure that an event is recorded behind a mark. The caller holds no timeline's mu.
func (m Mark) Record() error {
	if m.Timeline.Lane != nil { // its thread may keep mu for long; but each submission has an event behind it
		m.untilIssued()
		return nil
	}
	for m.Seq > m.Timeline.marked.Load() {
		if !m.Timeline.mu.TryLock() { // who holds it for long, for a function of Native, has put an event there before
			runtime.Gosched()
			continue
		}
		err := m.Timeline.mark() // what has been published is issued
		m.Timeline.mu.Unlock()
		if err != nil {
			m.Timeline.Device.Check(err)
			return err
		}
		break // the stream may have ended
	}
	return nil
}

// untilIssued waits until work that has been published is in its ring. That is a few instructions
// later, in which the holder of mu waits for nothing. It does not lock mu to see that: the thread of
// a lane may hold mu again by then, for long.
func (m Mark) untilIssued() {
	for m.Timeline.issued.Load() < m.Seq {
		runtime.Gosched()
	}
}
