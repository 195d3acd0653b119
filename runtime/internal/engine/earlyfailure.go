package engine

import (
	"math"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Work may fail while it is still in a stream: its device is lost, its lane fails, the driver took
// only a part of it, or one of its semaphores fails for another reason. Its signals fail then, but
// the device may still run it. So the state of its signals says nothing about the stream. Failed
// work keeps what it holds (buffers, executables, recordings, staging memory, events) until its
// stream has passed it. Other streams that wait for it go on waiting.

// A failedRange is a range of a timeline's work that failed before the stream had passed it.
type failedRange struct {
	from, to uint64 // the first and the last number
	err      error
}

// failed returns why the work at a mark failed before its stream had passed it, or nil. The stream
// may have passed the mark since.
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

// status reports whether the stream has passed a mark, and why the work at the mark failed, if it
// did. Callers that need both must use status, because the order of its two loads matters: a
// failure is always recorded before passed is raised. So whoever sees passed raised sees the
// failure too.
func (m Mark) status() (passed bool, err error) {
	passed = m.Timeline.passed.Load() >= m.Seq
	return passed, m.failed()
}

// over reports whether the stream has passed the work at a mark or the work has failed. If so, its
// signals have been given, or soon will be.
func (m Mark) over() bool {
	passed, err := m.status()
	return passed || err != nil
}

// Lost returns an error if the stream is not known to have passed the mark, and never will be
// because the device is lost.
func (m Mark) Lost() error {
	if f := m.Timeline.Device.lost.Load(); f != nil && m.Timeline.passed.Load() < m.Seq {
		return f.Err
	}
	return nil
}

// addFailed records that the work with the numbers from to to has failed with err. It must be
// called before any of its signals fail. The caller holds retireMu.
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

// FailInFlight fails the signals of all issued work that the stream has not passed, and returns the
// released timepoints. The work stays in the ring.
func (tl *Timeline) FailInFlight(err error) *sema.Timepoint {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	if tl.Device.lost.Load() != nil {
		tl.wakeAwaiters(math.MaxUint64)
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

// cause returns why a submission fails although its stream has passed it: work that it waits for
// has failed. It returns nil if the submission succeeds.
func (s *Submission) cause() error {
	// If late, a wait is for a barrier, which may fail although the work in front of it succeeds.
	failed := s.afterBarrier || s.Timeline.failures.Load() != nil
	for _, m := range s.Follows {
		failed = failed || m.Timeline.failures.Load() != nil
	}
	if !failed {
		return nil
	}
	return s.waitFailed()
}

// waitFailed returns why work that one of the submission's waits is for has failed, or nil. It
// finds a failure even if the semaphores of that work have not failed yet.
//
// It checks Waits and not Follows. Follows also has the last uses of the submission's memory and of
// its recording's block. If these fail, the submission does not.
func (s *Submission) waitFailed() error {
	// Check every wait: some made no native wait, because earlier work in the stream had waited
	// already.
	for _, w := range s.Waits {
		var joined Frontier
		switch how, p := w.Semaphore.Next(w.Value, joined.Join); how {
		case sema.Failed:
			// If the program failed the semaphore, no work has failed.
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
