package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// complete does the signals of a submission that is done, returns what that releases, and recycles the record.
func (d *Device) complete(s *Submission) *sema.Timepoint {
	released := d.signal(s)
	d.Recycle(s)
	return released
}

// signal does the signals of a submission that is done and returns what that releases.
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
			if err != nil && p.Semaphore.Failed() == nil { // this submission fails, and nothing else does
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

// failSignals fails what a submission would have signalled and returns what that releases.
func (d *Device) failSignals(s *Submission, err error) *sema.Timepoint {
	err = d.Owner.Failure(s, err)
	if s.Seen != nil {
		s.Seen.Fails(err)
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

// FailSubmission fails what a submission would have signalled, and recycles the record.
func (d *Device) FailSubmission(s *Submission, err error) {
	released := d.failSignals(s, err)
	d.Recycle(s)
	sema.Release(released)
}

// Recycle lets go of all that a submission held, and puts the record back.
func (d *Device) Recycle(s *Submission) {
	var held holderRun
	d.letGo(s, &held)
	held.release()
	s.Timeline.putAll(s, s)
}

// letGo lets go of all that a submission held, but of the event only if somebody else has it too. What
// the work used it puts into a run.
func (d *Device) letGo(s *Submission, held *holderRun) {
	if s.Seen != nil {
		seen := s.Seen
		s.Seen = nil
		seen.Ends(s)
	}
	if s.event != nil && !s.event.alone() {
		s.event.Drop()
		s.event = nil
	}
	s.LetGoAll()
	if s.Action != nil {
		s.Action.Release(s)
	}
	for _, e := range s.kept {
		e.Drop()
	}
	for _, h := range s.Uses {
		held.add(h)
	}
	if s.Cold {
		s.Rest.LetGo()
	}
	s.reset()
}

// What the semaphore of a stream says of it.
const (
	IsStream       = 1 + iota
	IsStreamFailed // as the device has noted
)
