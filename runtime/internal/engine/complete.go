package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// complete gives the signals of a submission that is done, and recycles the Submission. It returns
// the timepoints to release.
func (d *Device) complete(s *Submission) *sema.Timepoint {
	released := d.signal(s)
	d.Recycle(s)
	return released
}

// signal gives the signals of a submission that is done: it raises the semaphores. If s.Delivers is
// set it calls Rest.Deliver first. If Arrive refuses a signal because its value does not raise the
// semaphore, signal fails that semaphore and the semaphores of the remaining signals. It returns
// the timepoints to release.
func (d *Device) signal(s *Submission) *sema.Timepoint {
	if s.Delivers {
		s.Rest.Deliver(nil)
	}
	at := sema.Signal{Producer: s.Timeline, Seq: s.Seq}
	if s.Mode == published {
		at = sema.Signal{Producer: s.Deps.marks[0].Timeline, Seq: s.Deps.marks[0].Seq, ByBarrier: true}
	}
	var released sema.List
	var wrong error
	for _, p := range s.Signals {
		var list *sema.Timepoint
		if wrong == nil {
			var err error
			at.Value = p.Value
			list, err = p.Semaphore.Arrive(at, at)
			if err != nil && p.Semaphore.Failed() == nil {
				// The semaphore's value was p.Value or higher.
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
// release. It clears s.Signals, so that the signals are not given later. Buffers and other objects
// that the submission holds stay held.
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
		list, failed := p.Semaphore.TryFail(err)
		released.Join(list)
		if failed && p.Semaphore.Tag.Load() == IsStream {
			d.Owner.StreamFailed(s, err)
		}
	}
	clear(s.Signals)
	s.Signals = s.Signals[:0]
	return released.First()
}

// FailSubmission fails the semaphores that a submission signals, and recycles the Submission.
func (d *Device) FailSubmission(s *Submission, err error) {
	released := d.failSignals(s, err)
	d.Recycle(s)
	sema.Release(released)
}

// Recycle releases everything that a submission holds, and puts the Submission into its timeline's
// free list.
func (d *Device) Recycle(s *Submission) {
	var held holderRun
	d.releaseHeld(s, &held)
	held.release()
	s.Timeline.putAll(s, s)
}

// releaseHeld releases everything that a submission holds, except its Holders, and resets the
// Submission. The Submission keeps its event for its next use, unless there are other references to
// the event. releaseHeld adds the Holders to the parameter held, so that they are released in
// batches.
func (d *Device) releaseHeld(s *Submission, held *holderRun) {
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
	s.Deps.Drop()
	if s.Action != nil {
		s.Action.Release(s)
	}
	for _, e := range s.Follows.kept {
		e.Drop()
	}
	for _, h := range s.Holds {
		held.add(h)
	}
	if s.UsesRest {
		s.Rest.Release()
	}
	s.reset()
}

// IsStream is the Tag of a semaphore that belongs to a Stream. Other semaphores have the tag 0.
const IsStream = 1
