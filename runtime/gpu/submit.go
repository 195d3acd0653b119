package gpu

import (
	"errors"
	"log/slog"
	"runtime"

	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// take issues a submission in the caller, passes it to others, or parks it. If the submission has failed
// by the time that take returns, the outcome is refused or notIssued, and the error says why.
func (tl *timeline) take(s *submission) (outcome, error) {
	if s.op.Kind != work.Barrier && !s.byLane() && s.mode != untilReached {
		if how, err := tl.issue(s); how != early {
			return how, err
		}
	}
	return tl.takeLater(s)
}

// takeLater passes a barrier, has a submission issued by others, or parks it.
func (tl *timeline) takeLater(s *submission) (outcome, error) {
	switch {
	case s.byLane():
		if err := tl.lane.take(s); err != nil {
			tl.dev.failSubmission(s, err)
			return refused, err
		}
	case s.op.Kind == work.Barrier && s.mode != untilReached:
		if how, _ := s.gather(); how == sema.Ordered {
			tl.passOn(s)
			return issuedWork, nil
		}
	}
	if tl.enlist(s) {
		tl.run(s)
	}
	if l := tl.lane; l != nil && l.threadState() == laneAsleep {
		runtime.Gosched() // else its thread would get a processor only when the caller gives this one up
	}
	return issuedWork, nil
}

// enlistAgain is enlist for a submission that turned out to have to wait while it was being issued,
// perhaps on a thread that may not block. If nothing is left to wait for, the pending-queue thread
// issues it.
func (tl *timeline) enlistAgain(s *submission) {
	s.again = true
	if tl.enlist(s) {
		tl.dev.ready(s)
	}
}

// enlist registers the waits of a submission. It reports true if there is nothing to wait for: then
// the caller must run it.
func (tl *timeline) enlist(s *submission) (isReady bool) {
	s.open.Store(1) // our own, until all are registered
	registered := len(s.tps)
	for _, w := range s.waits {
		if w.Reached() {
			continue
		}
		t := s.timepoint()
		s.open.Add(1)
		how := w.Semaphore.Register(w.Value, t, s.mode.until())
		if how == sema.Unknown {
			s.tps = append(s.tps, t)
			continue
		}
		s.open.Add(-1)
		s.putTimepoint(t)
		if how == sema.Failed {
			s.err.CompareAndSwap(nil, &failure{w.Semaphore.Failed()})
		}
	}
	parked := len(s.tps) > registered
	if parked {
		if err := tl.dev.park(s); err != nil {
			s.err.CompareAndSwap(nil, &failure{err})
		}
	}
	var released *sema.Timepoint
	switch {
	case s.err.Load() != nil: // no use in waiting for the others
		s.takeBack()
	case s.mode == passing:
		released = s.handOn()
	}
	if s.open.Add(-1) == 0 {
		switch {
		case s.mode == passing:
			var end sema.List
			end.Join(released)
			end.Join(tl.completeBarrier(s))
			released = end.First()
		default:
			if parked {
				tl.dev.unpark(s)
			}
			isReady = true
		}
	}
	if released != nil {
		sema.Release(released)
	}
	return isReady
}

// run issues a submission that has nothing left to wait for, or fails it.
func (tl *timeline) run(s *submission) {
	f := s.err.Load()
	switch {
	case s.byLane():
		if err := tl.lane.ready(s); err != nil {
			tl.dev.failSubmission(s, err)
		}
	case f != nil:
		tl.dev.failSubmission(s, f.err)
	case s.op.Kind.OnHost():
		tl.dev.calls.Add(1) // which Close looks at after it has said that nothing begins any more
		if err := tl.dev.halted(); err != nil {
			tl.dev.leave()
			tl.dev.failSubmission(s, err)
			return
		}
		go tl.call(s)
	case s.op.Kind == work.Barrier:
		err := tl.dev.halted()
		if err == nil {
			_, err = s.gatherAll()
		}
		if err != nil {
			tl.dev.failSubmission(s, err)
			return
		}
		tl.passOn(s)
	default:
		tl.issueReady(s)
	}
}

// call runs a host call, on a goroutine of its own.
func (tl *timeline) call(s *submission) {
	d := tl.dev
	defer d.leave()
	if s.op.Kind == work.Notify {
		fn := s.rest.notice()
		sema.Release(d.complete(s))
		if err := fn(); err != nil { // nothing is left that it could fail
			slog.Error("gpu: a notified function went wrong", "device", d.info.Name, "err", err)
		}
		return
	}
	s.since = now()
	d.mu.Lock()
	s.link(&d.pending.called)
	d.mu.Unlock()
	err := errGoexit
	defer func() {
		d.mu.Lock()
		s.unlink()
		d.mu.Unlock()
		if err != nil {
			d.failSubmission(s, err)
		} else {
			sema.Release(d.complete(s))
		}
	}()
	err = s.rest.call()
}

var errGoexit = errors.New("the function ended its goroutine")
