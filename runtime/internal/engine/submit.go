package engine

import (
	"errors"
	"log/slog"
	"runtime"

	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Submit issues a submission, hands it to the timeline's lane, or parks it. Submit starts an
// operation of the host if all waits of the operation are reached. Submit starts a barrier
// (startBarrier) if the work for all waits of the barrier has been issued. If the outcome is
// Refused or NotIssued, the submission has failed and the error says why. With any other outcome
// the caller ignores the error: the signals tell whether the submission succeeds.
func (tl *Timeline) Submit(s *Submission) (Outcome, error) {
	if s.Op.Kind != work.Barrier && !s.ByLane() && s.Mode != UntilReached {
		if how, err := tl.issue(s); how != Early {
			return how, err
		}
	}
	return tl.takeLater(s)
}

// takeLater does the work of Submit for submissions that Submit does not issue itself: barriers,
// operations of lanes, submissions in mode UntilReached (such as operations of the host), and
// submissions for which Timeline.issue has returned Early.
func (tl *Timeline) takeLater(s *Submission) (Outcome, error) {
	switch {
	case s.ByLane():
		if err := tl.Lane.Take(s); err != nil {
			tl.Device.FailSubmission(s, err)
			return Refused, err
		}
	case s.Op.Kind == work.Barrier && s.Mode != UntilReached:
		if how, _ := s.gather(); how == sema.Ordered {
			tl.startBarrier(s)
			return Issued, nil
		}
	}
	if tl.registerWaits(s) {
		tl.run(s)
	}
	if l := tl.Lane; l != nil && l.ThreadState() == LaneAsleep {
		runtime.Gosched() // otherwise the lane's thread might not run before the caller blocks
	}
	return Issued, nil
}

// ParkAgain parks a submission once more, because an attempt to issue it has shown that it must
// wait longer. If nothing is left to wait for by now, the submission goes to the pending-queue
// thread. The caller does not issue the submission, because the caller may have other work to do.
func (tl *Timeline) ParkAgain(s *Submission) {
	s.parking.reparked = true
	if tl.registerWaits(s) {
		tl.Device.ready(s)
	}
}

// registerWaits registers a timepoint for each open wait of a submission, and parks the submission
// if it has an open wait. If a wait has failed or no more work is accepted, registerWaits sets
// s.Err and cancels the timepoints. Otherwise, if the submission is a published barrier (s.Mode is
// published), registerWaits publishes its signals.
//
// registerWaits returns false if the submission stays parked. If there is no open wait, or if all
// timepoints have been released or cancelled before registerWaits ends, the submission does not
// stay parked: registerWaits completes a published barrier and returns false. For any other
// submission registerWaits returns true, and the caller must start the submission.
func (tl *Timeline) registerWaits(s *Submission) (isReady bool) {
	s.parking.open.Store(1) // one more, so that s cannot become ready before all waits are registered
	registered := len(s.parking.tps)
	for _, w := range s.Waits {
		if w.Reached() {
			continue
		}
		t := s.timepoint()
		s.parking.open.Add(1)
		how := w.Semaphore.Register(w.Value, t, s.Mode.until())
		if how == sema.Unknown {
			s.parking.tps = append(s.parking.tps, t)
			continue
		}
		s.parking.open.Add(-1)
		s.putTimepoint(t)
		if how == sema.Failed {
			s.Err.CompareAndSwap(nil, &Failure{w.Semaphore.Failed()})
		}
	}
	parked := len(s.parking.tps) > registered
	if parked {
		if err := tl.Device.park(s); err != nil {
			s.Err.CompareAndSwap(nil, &Failure{err})
		}
	}
	var released *sema.Timepoint
	switch {
	case s.Err.Load() != nil: // s will fail, so the other waits do not matter
		s.cancelTimepoints()
	case s.Mode == published:
		released = s.publishBarrier()
	}
	if s.parking.open.Add(-1) == 0 {
		switch {
		case s.Mode == published:
			var end sema.List
			end.Join(released)
			end.Join(tl.completeBarrier(s))
			released = end.First()
		default:
			if parked {
				tl.Device.unpark(s)
			}
			isReady = true
		}
	}
	if released != nil {
		sema.Release(released)
	}
	return isReady
}

// run starts a submission that has no open waits. It hands a group of collectives to the lane. It
// runs an operation of the host on a new goroutine. It calls startBarrier for a barrier, and
// IssueReady for any other submission. If s.Err is set, run fails the submission instead. A group
// of collectives goes to the lane even then, and the lane fails it.
func (tl *Timeline) run(s *Submission) {
	f := s.Err.Load()
	switch {
	case s.ByLane():
		if err := tl.Lane.Ready(s); err != nil {
			tl.Device.FailSubmission(s, err)
		}
	case f != nil:
		tl.Device.FailSubmission(s, f.Err)
	case s.Op.Kind.OnHost():
		if err := s.failedStream(); err != nil {
			tl.Device.FailSubmission(s, err)
			return
		}
		// Count the call before checking whether the device issues work. Close first stops the
		// device, then waits until the count is 0. So either Close waits for this call, or this
		// call fails here.
		tl.Device.calls.Add(1)
		if err := tl.Device.halted(); err != nil {
			tl.Device.Leave()
			tl.Device.FailSubmission(s, err)
			return
		}
		go tl.call(s)
	case s.Op.Kind == work.Barrier:
		err := tl.Device.halted()
		if err == nil {
			_, err = s.gatherAll()
		}
		if err != nil {
			tl.Device.FailSubmission(s, err)
			return
		}
		tl.startBarrier(s)
	default:
		tl.IssueReady(s)
	}
}

// failedStream returns the error of a failed Stream that the submission waits for, or nil. It
// returns the error even if the submission's wait was reached before the Stream failed.
func (s *Submission) failedStream() error {
	for _, w := range s.Waits {
		if w.Semaphore.Tag.Load() == IsStream {
			if err := w.Semaphore.Failed(); err != nil {
				return err
			}
		}
	}
	return nil
}

// call runs an operation of the host, such as a host call or a notification, on the goroutine that
// Timeline.run has started for the operation.
func (tl *Timeline) call(s *Submission) {
	d := tl.Device
	defer d.Leave()
	if s.Op.Kind == work.Notify {
		fn := s.Rest.Notice()
		sema.Release(d.complete(s))
		if err := fn(); err != nil { // the signals have been given, so the error can only be logged
			slog.Error("gpu: a notified function went wrong", "device", d.Info.Name, "err", err)
		}
		return
	}
	s.parking.since = Now()
	d.mu.Lock()
	d.pending.called.add(s)
	d.mu.Unlock()
	err := errGoexit
	defer func() {
		d.mu.Lock()
		d.pending.called.remove(s)
		d.mu.Unlock()
		if err != nil {
			d.FailSubmission(s, err)
		} else {
			sema.Release(d.complete(s))
		}
	}()
	err = s.Rest.Call()
}

var errGoexit = errors.New("the function ended its goroutine")
