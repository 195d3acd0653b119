package engine

import (
	"math"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Work may fail while it is still in a stream: its device is lost, its lane fails, the driver took
// only a part of it, or one of its semaphores fails for another reason. Its signals fail then, but
// the device may still run it. So signals, failed or reached, say nothing about the stream. Work
// keeps what it holds (buffers, executables, recordings, staging memory, events) until the stream
// has passed it. Work in other streams that comes after it still comes after it.

// A failedRange is a range of a timeline's work that failed before the stream had passed it.
type failedRange struct {
	from, to uint64 // the first and the last number
	err      error
}

// failed returns why the work at a mark failed before its stream had passed it, or nil. The stream
// may have passed it since.
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

// status reports whether the stream has passed a mark, and why the work there failed. Callers that
// need both must use status, because the order of its two loads matters: work fails before its
// stream is known to have passed it, or never.
func (m Mark) status() (passed bool, err error) {
	passed = m.Timeline.passed.Load() >= m.Seq
	return passed, m.failed()
}

// over reports whether the work at a mark was passed or has failed. Then its signals have been
// given, or soon will be.
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

// addFailed notes that work has failed. It must be called before any of its signals fail. The
// caller holds retireMu.
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

// cause returns why a submission fails although its stream has passed it: something that it waits
// for has failed. Otherwise it returns nil.
func (s *Submission) cause() error {
	// A barrier may fail although the work before it succeeds.
	failed := s.late || s.Timeline.failures.Load() != nil
	for _, m := range s.Follows {
		failed = failed || m.Timeline.failures.Load() != nil
	}
	if !failed {
		return nil
	}
	return s.waitFailed()
}

// waitFailed returns why work that the submission waits for has failed, even if the semaphores of
// that work have not failed yet. A submission also comes after the last uses of its memory and of
// its recording's block. That work may fail: it only has to be over.
func (s *Submission) waitFailed() error {
	// Some waits made no native wait, because earlier work in the stream had waited already.
	for _, w := range s.Waits {
		var joined Frontier
		switch how, p := w.Semaphore.Next(w.Value, joined.Join); how {
		case sema.Failed:
			// It is no failure of work if the program failed the semaphore.
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
