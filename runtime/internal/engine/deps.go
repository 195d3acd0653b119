package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Deps are the marks of the work that must be done before a submission's own work runs, or before a
// barrier's signals are given.
type Deps struct {
	marks Frontier
	// events is set by findEvents. It has one element for each mark: an event recorded behind the
	// mark, with a reference, or nil if the work at the mark is done.
	events       []*Event
	gathered     bool // gather has added the marks of all waits
	afterBarrier bool // a wait is for a barrier's signal, which may be given after the work at the marks is done
}

// Add adds a mark.
func (d *Deps) Add(m Mark) { d.marks.Add(m) }

// Marks returns the marks.
func (d *Deps) Marks() Frontier { return d.marks }

// Drop removes the marks and releases the references to events.
func (d *Deps) Drop() {
	if d.gathered = false; len(d.marks) > 0 {
		d.dropMarks()
	}
}

func (d *Deps) dropMarks() {
	clear(d.marks)
	d.marks = d.marks[:0]
	for _, e := range d.events {
		if e != nil {
			e.Drop()
		}
	}
	clear(d.events)
	d.events = d.events[:0]
}

// Follows has the marks of other timelines' work that an issued submission is ordered after.
type Follows struct {
	marks Frontier
	// kept has the events that the stream waits for, each with a reference. The field is used only
	// without driver.Caps.RerecordEvents: then an event must not be recorded again before all waits
	// for it are complete.
	kept []*Event
}

// Add adds a mark.
func (f *Follows) Add(m Mark) { f.marks.Add(m) }

// reset removes all marks and events. The caller has released the references to the events.
func (f *Follows) reset() {
	clear(f.marks)
	clear(f.kept)
	f.marks, f.kept = f.marks[:0], f.kept[:0]
}

// gather adds to s.Deps the marks of all waits that are not reached, and returns Ordered. If a wait
// has failed, gather returns Failed and the error. If the work for a wait has not been issued,
// gather returns Unknown. In both cases s.Deps is empty.
//
// Work on the submission's own timeline needs no mark, because a stream runs its work in order. So
// gather leaves out the mark of a wait for such work. If the submission is a barrier, gather adds
// the mark, because a barrier is not in the stream.
func (s *Submission) gather() (sema.WaitState, error) {
	s.Deps.afterBarrier = false
	for i := range s.Waits {
		w := &s.Waits[i]
		if w.Reached() {
			continue
		}
		how, p := w.Semaphore.Next(w.Value, s.Deps.marks.Join)
		switch how {
		case sema.Failed:
			s.Deps.Drop()
			return sema.Failed, w.Semaphore.Failed()
		case sema.Unknown:
			s.Deps.Drop()
			return sema.Unknown, nil
		case sema.Ordered:
			s.Deps.afterBarrier = s.Deps.afterBarrier || p.ByBarrier
			if p.Producer != s.Timeline || s.Op.Kind == work.Barrier {
				s.Deps.Add(MarkOf(p))
			}
		}
	}
	s.Deps.gathered = true
	return sema.Ordered, nil
}

// gatherAll calls gather for the goroutine that issues the submission. If a wait has failed, or the
// work for a wait has not been issued, gatherAll returns an error and the matching Outcome.
func (s *Submission) gatherAll() (Outcome, error) {
	switch how, err := s.gather(); how {
	case sema.Failed:
		return NotIssued, err
	case sema.Unknown:
		return Early, errEarly
	}
	return Issued, nil
}
