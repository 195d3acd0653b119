package engine

import (
	"math"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Work may fail while a stream still has it: its device is lost, its lane has failed, the driver took only a part of it, or one of the
// semaphores that it signals is failed for another reason. Its signals fail then, but the device may go on with it. So that its signals
// have failed, or have been reached, says nothing about the stream: what the work holds (buffers, executables, recordings, staging memory,
// events) it holds until the stream has passed it, and what comes after it in other streams still comes after it.

// A failedRange is work of a timeline that failed before the stream had passed it.
type failedRange struct {
	from, to uint64 // the first and the last number
	err      error
}

// failed returns why the work at a mark failed, if it did before its stream had passed it. It may have been passed since.
func (m Mark) failed() error {
	ranges := m.Timeline.failures.Load()
	if ranges == nil {
		return nil
	}
	for _, r := range *ranges {
		if r.from <= m.Seq && m.Seq <= r.to {
			return r.err
		}
	}
	return nil
}

// status reports whether the stream has passed a mark, and why the work there failed, if it has. Who needs both asks here, for only in this order
// do the answers belong together: work fails before its stream is known to have passed it, or never.
func (m Mark) status() (passed bool, err error) {
	passed = m.Timeline.passed.Load() >= m.Seq
	return passed, m.failed()
}

// over reports whether the work at a mark has been passed, or has failed: whether its signals are out, or about to be.
func (m Mark) over() bool {
	passed, err := m.status()
	return passed || err != nil
}

// Lost returns why the stream will never be known to have passed the work at a mark, if it is not known now.
func (m Mark) Lost() error {
	if f := m.Timeline.Device.lost.Load(); f != nil && m.Timeline.passed.Load() < m.Seq {
		return f.Err
	}
	return nil
}

// addFailed notes that work has failed. It comes before the failure of any of its signals. The caller holds retireMu.
func (tl *Timeline) addFailed(from, to uint64, err error) {
	var all []failedRange
	if known := tl.failures.Load(); known != nil {
		all = *known
	}
	grown := make([]failedRange, 0, len(all)+1)
	grown = append(grown, all...)
	if n := len(grown); n > 0 && grown[n-1].to+1 == from && grown[n-1].err == err {
		grown[n-1].to = to
	} else {
		grown = append(grown, failedRange{from, to, err})
	}
	tl.failures.Store(&grown)
}

// FailInFlight fails the signals of all work that the stream has been given and has not passed, and returns what that releases. The
// work stays in the ring.
func (tl *Timeline) FailInFlight(err error) *sema.Timepoint {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	if tl.Device.lost.Load() != nil {
		tl.tell(math.MaxUint64)
	}
	from, last := tl.passed.Load(), tl.issued.Load()
	if ranges := tl.failures.Load(); ranges != nil {
		from = max(from, (*ranges)[len(*ranges)-1].to)
	}
	if from >= last {
		return nil
	}
	tl.addFailed(from+1, last, err)
	tl.ring.mu.Lock()
	all := make([]*Submission, 0, last-from)
	for seq := from + 1; seq <= last; seq++ {
		all = append(all, tl.ring.at(seq))
	}
	tl.ring.mu.Unlock()
	var released sema.List
	for _, s := range all {
		released.Join(tl.Device.failSignals(s, err))
	}
	return released.First()
}

// cause returns why a submission that its stream has passed has failed all the same: because of what it waits for.
func (s *Submission) cause() error {
	failed := s.late || s.Timeline.failures.Load() != nil // a barrier may fail though the work in front of it does not
	for _, m := range s.Follows {
		failed = failed || m.Timeline.failures.Load() != nil
	}
	if !failed {
		return nil
	}
	return s.waitFailed()
}

// waitFailed returns why work that a submission waits for has failed, also if its semaphores are about
// to fail. A submission also comes after the last use of its memory and of its block. That work may
// fail: it only has to be over.
func (s *Submission) waitFailed() error {
	for _, w := range s.Waits { // some of which needed nothing, for what came before in the stream has waited for it
		var joined Frontier
		switch how, p := w.Semaphore.Next(w.Value, joined.Join); how {
		case sema.Failed:
			if err := w.Semaphore.Failed(); s.Timeline.Device.Owner.OfWork(err) { // and not because the program failed the semaphore
				return err
			}
		case sema.Ordered:
			joined.Add(MarkOf(p))
			for _, m := range joined {
				if err := m.failed(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
