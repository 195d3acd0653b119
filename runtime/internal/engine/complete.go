package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// complete gives the signals of a submission that is done, and recycles the record. It returns the
// timepoints to release.
func (d *Device) complete(s *Submission) *sema.Timepoint {
	released := d.signal(s)
	d.Recycle(s)
	return released
}

// signal gives the signals of a submission that is done, after Rest.Deliver if that must be called.
// It returns the timepoints to release.
func (d *Device) signal(s *Submission) *sema.Timepoint {
	if s.Delivers {
		s.Rest.Deliver(nil)
	}
	at := sema.Signal{Producer: s.Timeline, Seq: s.Seq}
	if s.Mode == passing {
		at = sema.Signal{Producer: s.Deps[0].Timeline, Seq: s.Deps[0].Seq, Late: true}
	}
	var released sema.List
	var wrong error
	for _, p := range s.Signals {
		var list *sema.Timepoint
		if wrong == nil {
			var err error
			at.Value = p.Value
			list, err = p.Semaphore.Arrive(at, at)
			if err != nil && p.Semaphore.Failed() == nil { // only this submission fails
				wrong = d.Owner.Failure(s, err)
			}
		}
		if wrong != nil {
			list = p.Semaphore.Fail(wrong)
		}
		released.Join(list)
	}
	return released.First()
}

// failSignals fails the semaphores that a submission signals, and returns the timepoints to
// release. It clears s.Signals, so that they are not given again. The submission keeps what it
// holds.
func (d *Device) failSignals(s *Submission, err error) *sema.Timepoint {
	err = d.Owner.Failure(s, err)
	for _, o := range s.Observers {
		o.Fails(err)
	}
	if s.Delivers {
		s.Delivers = false
		s.Rest.Deliver(err)
	}
	var released sema.List
	for _, p := range s.Signals {
		if p.Semaphore.Tag.Load() == IsStream {
			d.Owner.StreamFailed(s, p.Semaphore, err)
		}
		released.Join(p.Semaphore.Fail(err))
	}
	clear(s.Signals)
	s.Signals = s.Signals[:0]
	return released.First()
}

// FailSubmission fails the semaphores that a submission signals, and recycles the record.
func (d *Device) FailSubmission(s *Submission, err error) {
	released := d.failSignals(s, err)
	d.Recycle(s)
	sema.Release(released)
}

// Recycle releases everything that a submission holds, and puts the record back.
func (d *Device) Recycle(s *Submission) {
	var held holderRun
	d.letGo(s, &held)
	held.release()
	s.Timeline.putAll(s, s)
}

// letGo releases everything that a submission holds, and resets the record. The record keeps its
// event for its next use, unless the event has another owner too. letGo adds the Holders to held,
// which releases them in batches.
func (d *Device) letGo(s *Submission, held *holderRun) {
	if len(s.Observers) > 0 {
		for _, o := range s.Observers {
			o.Ends(s)
		}
		clear(s.Observers)
		s.Observers, s.Timed = s.Observers[:0], false
	}
	if s.event != nil && !s.event.alone() {
		s.event.Drop()
		s.event = nil
	}
	s.DropDeps()
	if s.Action != nil {
		s.Action.Release(s)
	}
	for _, e := range s.kept {
		e.Drop()
	}
	for _, h := range s.Holds {
		held.add(h)
	}
	if s.Cold {
		s.Rest.LetGo()
	}
	s.reset()
}

// Values of Semaphore.Tag. The tag of any other semaphore is 0.
const (
	IsStream       = 1 + iota // the semaphore of a Stream
	IsStreamFailed            // the same, after the Owner has recorded that the Stream failed
)
