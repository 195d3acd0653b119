package gpu

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// complete does the signals of a submission that is done, returns what that releases, and recycles the record.
func (d *nativeDevice) complete(s *submission) *sema.Timepoint {
	released := d.signal(s)
	d.recycle(s)
	return released
}

// signal does the signals of a submission that is done and returns what that releases.
func (d *nativeDevice) signal(s *submission) *sema.Timepoint {
	if s.delivers {
		s.rest.deliver(nil)
	}
	at := sema.Signal{Producer: s.tl, Seq: s.seq}
	if s.mode == passing {
		at = sema.Signal{Producer: s.deps[0].tl, Seq: s.deps[0].seq, Late: true}
	}
	var released sema.List
	var wrong error
	for _, p := range s.signals {
		var list *sema.Timepoint
		if wrong == nil {
			var err error
			at.Value = p.Value
			list, err = p.Semaphore.Arrive(at, at)
			if err != nil && p.Semaphore.Failed() == nil { // this submission fails, and nothing else does
				wrong = d.owner.failure(s, err)
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
func (d *nativeDevice) failSignals(s *submission, err error) *sema.Timepoint {
	err = d.owner.failure(s, err)
	if s.seen != nil {
		s.seen.fails(err)
	}
	if s.delivers {
		s.delivers = false
		s.rest.deliver(err)
	}
	var released sema.List
	for _, p := range s.signals {
		if p.Semaphore.Tag.Load() == isStream {
			d.owner.streamFailed(s, p.Semaphore, err)
		}
		released.Join(p.Semaphore.Fail(err))
	}
	clear(s.signals)
	s.signals = s.signals[:0]
	return released.First()
}

// failSubmission fails what a submission would have signalled, and recycles the record.
func (d *nativeDevice) failSubmission(s *submission, err error) {
	released := d.failSignals(s, err)
	d.recycle(s)
	sema.Release(released)
}

// recycle lets go of all that a submission held, and puts the record back.
func (d *nativeDevice) recycle(s *submission) {
	var held holderRun
	d.letGo(s, &held)
	held.release()
	s.tl.putAll(s, s)
}

// letGo lets go of all that a submission held, but of the event only if somebody else has it too. What
// the work used it puts into a run.
func (d *nativeDevice) letGo(s *submission, held *holderRun) {
	if s.seen != nil {
		seen := s.seen
		s.seen = nil
		seen.ends(s)
	}
	if s.event != nil && !s.event.alone() {
		s.event.drop()
		s.event = nil
	}
	s.letGoAll()
	if s.act != nil {
		s.act.release(s)
	}
	for _, e := range s.kept {
		e.drop()
	}
	for _, h := range s.uses {
		held.add(h)
	}
	if s.cold {
		s.rest.letGo()
	}
	s.reset()
}

// What the semaphore of a stream says of it.
const (
	isStream       = 1 + iota
	isStreamFailed // as the device has noted
)
