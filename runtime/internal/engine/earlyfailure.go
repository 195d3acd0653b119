package engine

import (
	"math"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Work may fail while it is still in a stream: its device is lost, its lane fails, or the driver
// took only a part of it. Then its signals fail at once, but the device may still run the work. A
// semaphore that work signals may also fail for another reason, for example because the program
// fails it. So a failed signal says nothing about the stream. Failed work keeps everything that it
// holds (buffers, modules, recordings, pinned memory, events) until its stream has passed the work.
// Other streams that wait for the work keep waiting.

// A failedRange is a range of a timeline's issued submissions that have failed. A submission with
// the outcome IssuedBroken needs no range, because its signals were not published.
type failedRange struct {
	first, last uint64 // numbers of the first and the last submission of the range
	err         error
}

// failed returns the error with which the issued work at a mark has failed, or nil if it has not
// failed. The stream may or may not have passed the mark.
func (m Mark) failed() error {
	ranges := m.Timeline.failures.Load()
	if ranges == nil {
		return nil
	}
	for _, r := range *ranges {
		if r.first <= m.Seq && m.Seq <= r.last {
			return r.err
		}
	}
	return nil
}

// status reports whether the stream has passed a mark, and returns the error if the work at the
// mark has failed. A caller that needs both must call status, because status loads Timeline.passed
// first. A failure is stored before Timeline.passed is raised, so a goroutine that sees the raised
// number also sees the failure.
func (m Mark) status() (passed bool, err error) {
	passed = m.Timeline.passed.Load() >= m.Seq
	return passed, m.failed()
}

// over reports whether the stream has passed the work at a mark or the work has failed. If so, the
// signals of that work have been given or have failed, or another goroutine is about to fail them.
func (m Mark) over() bool {
	passed, err := m.status()
	return passed || err != nil
}

// Lost returns the error with which the mark's device was lost, if that happened before the stream
// was known to have passed the mark. In that case nobody will ever know whether the stream has
// passed the mark. Otherwise Lost returns nil.
func (m Mark) Lost() error {
	if f := m.Timeline.Device.lost.Load(); f != nil && m.Timeline.passed.Load() < m.Seq {
		return f.Err
	}
	return nil
}

// addFailed records that the submissions with the numbers from first to last have failed with err.
// It must be called before their signals fail. The caller holds tl.retireMu.
func (tl *Timeline) addFailed(first, last uint64, err error) {
	var all []failedRange
	if known := tl.failures.Load(); known != nil {
		all = *known
	}
	grown := make([]failedRange, 0, len(all)+1)
	grown = append(grown, all...)
	if n := len(grown); n > 0 && grown[n-1].last+1 == first && grown[n-1].err == err {
		grown[n-1].last = last
	} else {
		grown = append(grown, failedRange{first, last, err})
	}
	tl.failures.Store(&grown)
}

// FailInFlight fails the signals of all issued work that the stream has not passed and that has not
// failed yet. If the device is lost, FailInFlight also wakes the goroutines that are blocked in
// Await. It returns the timepoints to release. The work stays in the ring, because the stream may
// still run it.
func (tl *Timeline) FailInFlight(err error) *sema.Timepoint {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	if tl.Device.lost.Load() != nil {
		tl.wakeAwaiters(math.MaxUint64)
	}
	from, last := tl.passed.Load(), tl.issued.Load()
	if ranges := tl.failures.Load(); ranges != nil {
		from = max(from, (*ranges)[len(*ranges)-1].last)
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

// If work that the submission waited for has failed, cause returns the error of that work,
// otherwise nil. cause is called when the stream has passed the submission.
func (s *Submission) cause() error {
	// If afterBarrier is set, the submission waits for a barrier. A barrier may fail even if the
	// work that the barrier waits for succeeds.
	failed := s.Deps.afterBarrier || s.Timeline.failures.Load() != nil
	for _, m := range s.Follows.marks {
		failed = failed || m.Timeline.failures.Load() != nil
	}
	if !failed {
		return nil
	}
	return s.waitFailed()
}

// If the work for one of the submission's waits has failed, waitFailed returns the error of that
// work, otherwise nil. waitFailed finds the failure even if the semaphores of that work have not
// failed yet.
//
// waitFailed checks Waits and not Follows. Follows also has marks of earlier work that used the
// same memory or the same instance of a recording. If that work fails, the submission does not
// fail.
func (s *Submission) waitFailed() error {
	// Check all waits, also those for which no native wait was made because earlier work in the
	// stream had waited already.
	for _, w := range s.Waits {
		var joined Frontier
		switch how, p := w.Semaphore.Next(w.Value, joined.Join); how {
		case sema.Failed:
			// Ignore a failure that the program caused: no work has failed then.
			if err := w.Semaphore.Failed(); s.Timeline.Device.Owner.OfWork(err) {
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
