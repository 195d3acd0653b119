package gpu

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// complete does the signals of a submission that is done, returns what that releases, and recycles the record.
func (d *nativeDevice) complete(s *submission) *sema.Timepoint {
	released := d.signal(s)
	d.recycle(s)
	return released
}

// signal does the signals of a submission that is done and returns what that releases.
func (d *nativeDevice) signal(s *submission) *sema.Timepoint {
	s.touch.over()
	if s.op.Kind == work.Download && s.host != nil && s.seq != 0 {
		land(s.host, s.stage.bytes())
	}
	at := sema.Signal{Producer: s.q.tl, Seq: s.seq}
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
				wrong = s.submitError(err)
			}
		}
		if wrong != nil {
			list = p.Semaphore.Fail(wrong)
		}
		released.Join(list)
	}
	return released.First()
}

// submitError makes what a submission's signals fail with.
func (s *submission) submitError(err error) error {
	return s.q.submitError(s.op.Kind, s.kernelName(), s.label, err)
}

// submitError makes the error of an operation. What it fails with because of another one is passed on as it is.
func (q *Queue) submitError(op work.Kind, kernel, label string, err error) error {
	if _, ok := err.(*SubmitError); ok {
		return err
	}
	return &SubmitError{op.String(), kernel, label, q.mention(), q.tl.dev.info.Name, err, q.dev.receipt(err)}
}

// failSignals fails what a submission would have signalled and returns what that releases.
func (d *nativeDevice) failSignals(s *submission, err error) *sema.Timepoint {
	err = s.submitError(err)
	s.span.failed(err)
	s.touch.over()
	var released sema.List
	for _, p := range s.signals {
		if p.Semaphore.Tag.Load() == isStream {
			s.noteFailure(p.Semaphore, err)
		}
		released.Join(p.Semaphore.Fail(err))
	}
	clear(s.signals)
	s.signals, s.host = s.signals[:0], nil
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
	var held bufferRun
	d.letGo(s, &held)
	held.release()
	s.q.tl.putAll(s, s)
}

// letGo lets go of all that a submission held, but of the event only if somebody else has it too. Buffers it puts into a run.
func (d *nativeDevice) letGo(s *submission, held *bufferRun) {
	if s.span != nil {
		s.letGoSpan()
	}
	if s.event != nil && !s.event.alone() {
		s.event.drop()
		s.event = nil
	}
	s.letGoAll()
	if s.act != nil {
		s.act.release(s)
	}
	for _, e := range s.held {
		e.drop()
	}
	for b := range s.named {
		held.add(b)
	}
	if s.cold {
		s.letGoCold()
	}
	s.reset()
}

func (s *submission) letGoCold() {
	if s.kernel != nil {
		s.kernel.exe.release()
	}
	if s.run != nil { // it has not been issued
		s.leaveBlock(mark{})
	}
	if s.recording != nil {
		s.recording.release()
	}
	if s.shared != nil {
		s.shared.release()
	}
	if s.stage != nil {
		s.stage.free()
	}
	if s.lent != nil {
		s.lent.over(1)
	}
}
