package engine

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// parking is the part of a Submission that is used while the submission is parked or runs as a host
// call.
type parking struct {
	// open is the number of timepoints that cancelTimepoints or TimepointReleased has yet to
	// subtract, plus one for each goroutine that keeps the submission from becoming ready.
	open     atomic.Int32
	reparked bool // ParkAgain was called: the caller of Submit does not issue the submission any more

	// Device.mu protects the fields in, before and after.
	in            *submissionList // the list that has the submission, or nil
	before, after *Submission     // neighbours in that list

	since Moment // when the submission was parked, or the host call began
	// tps are all timepoints that were registered, &tp first. When the Submission is recycled, all
	// but tp go back to the pool.
	tps []*sema.Timepoint
	tp  sema.Timepoint // the first timepoint, so that a submission with one wait needs none from the pool
}

// A submissionList is a doubly linked list of submissions. Device.mu protects it.
type submissionList struct{ first, last *Submission }

// add adds a submission at the end.
func (l *submissionList) add(s *Submission) {
	p := &s.parking
	if p.in, p.before = l, l.last; p.before == nil {
		l.first = s
	} else {
		p.before.parking.after = s
	}
	l.last = s
}

// remove removes a submission that is in the list.
func (l *submissionList) remove(s *Submission) {
	p := &s.parking
	if p.before == nil {
		l.first = p.after
	} else {
		p.before.parking.after = p.after
	}
	if p.after == nil {
		l.last = p.before
	} else {
		p.after.parking.before = p.before
	}
	p.in, p.before, p.after = nil, nil, nil
}

// all returns the submissions, the oldest first.
func (l *submissionList) all() iter.Seq[*Submission] {
	return func(yield func(*Submission) bool) {
		for s := l.first; s != nil && yield(s); s = s.parking.after {
		}
	}
}

// A Moment is a point in time, counted from the start of the process. Now is faster than
// [time.Now], because it reads only one clock.
type Moment time.Duration // time since moment0

var moment0 = time.Now()

// Now returns the current Moment.
func Now() Moment { return Moment(time.Since(moment0)) }

// park adds a submission that has open waits to the list of parked submissions. If the device, the
// queue or the lane accepts no more work, park returns an error. Then the caller must make the
// submission fail, because the call that fails all parked submissions may already be over. The
// caller has added one to parking.open, so that the submission does not become ready during park.
func (d *Device) park(s *Submission) error {
	if s.Mode != published {
		s.parking.since = Now()
		for _, o := range s.Observers {
			o.Parks()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending.parked.add(s)
	if s.Mode == published { // a published barrier is still accepted during Close, which waits for it
		d.pending.npublished.Add(1)
		return d.halted()
	}
	d.pending.nparked++
	if l := s.Timeline.Lane; l != nil {
		err, _ := l.Halted()
		return err
	}
	return s.Timeline.FailedBy()
}

// unlink removes a submission from the list of parked submissions. The caller holds d.mu.
func (d *Device) unlink(s *Submission) {
	d.pending.parked.remove(s)
	if s.Mode != published {
		d.pending.nparked--
	}
}

// unpark removes a submission from the list of parked submissions, and reports whether it was
// there. A published barrier still counts in pendingQueue.npublished until the barrier is complete.
func (d *Device) unpark(s *Submission) (parked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parked = s.parking.in != nil; parked {
		d.unlink(s)
	}
	return parked
}

// toIssue reports whether ready submissions wait for the pending-queue thread. It also returns true
// while a goroutine issues a ready submission, or waits for an event that a ready submission needs.
func (d *Device) toIssue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending.runnow != nil || d.pending.running.Load() > 0
}

// cancelParked makes the parked submissions fail with err, except those that have become ready.
// Published barriers fail only if the parameter all is true.
func (d *Device) cancelParked(err error, all bool) {
	d.cancelMatching(err, func(s *Submission) bool { return all || s.Mode != published })
}

// cancelMatching makes the parked submissions for which match returns true fail with err, except
// those that have become ready. It calls match with d.mu locked.
func (d *Device) cancelMatching(err error, match func(*Submission) bool) {
	d.mu.Lock()
	var list []*Submission
	for s := range d.pending.parked.all() {
		if match(s) && s.keepParked() { // if keepParked returns false, s is ready, and another goroutine is about to unlink it
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range list {
		s.cancel(err)
	}
}

// CancelParked makes the parked submissions of the timeline fail with err, except those that have
// become ready.
func (tl *Timeline) CancelParked(err error) {
	tl.Device.cancelMatching(err, func(s *Submission) bool { return s.Timeline == tl })
}

// wantPublished requests polling of the work that published barriers wait for.
func (d *Device) wantPublished() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.pending.parked.all() {
		if s.Mode == published {
			s.wantDeps()
		}
	}
}

// isParked reports whether the submission is in the list of parked submissions. If so,
// registerWaits has registered all its timepoints. The caller, TimepointReleased, has not yet
// subtracted the released timepoint from parking.open, so the submission does not become ready
// meanwhile.
func (s *Submission) isParked() bool {
	s.Timeline.Device.mu.Lock()
	defer s.Timeline.Device.mu.Unlock()
	return s.parking.in != nil
}

// keepParked adds one to parking.open, so that a parked submission stays parked. It returns false
// if the submission is ready. The caller holds Device.mu and has found the submission in the list
// of parked submissions.
func (s *Submission) keepParked() bool {
	for {
		n := s.parking.open.Load()
		if n == 0 {
			return false
		}
		if s.parking.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// cancel makes a parked submission fail with err. The caller has called keepParked.
func (s *Submission) cancel(err error) {
	s.Err.CompareAndSwap(nil, &Failure{err})
	s.cancelTimepoints()
	if s.parking.open.Add(-1) == 0 {
		if s.Mode == published {
			sema.Release(s.Timeline.completeBarrier(s))
			return
		}
		s.Timeline.Device.ready(s)
	}
}

// cancelTimepoints cancels all timepoints of the submission that have not been released.
func (s *Submission) cancelTimepoints() {
	for _, t := range s.parking.tps {
		if t.Cancel() {
			s.parking.open.Add(-1)
		}
	}
}

// timepoint returns a timepoint for a wait of the submission: parking.tp if the submission has no
// timepoint yet, otherwise a timepoint of the pool.
func (s *Submission) timepoint() *sema.Timepoint {
	if len(s.parking.tps) > 0 {
		return s.Timeline.Device.timepoints.Get(s)
	}
	s.parking.tp.Init(s)
	return &s.parking.tp
}

// putTimepoints returns the submission's timepoints to the pool, and clears parking.tp.
func (s *Submission) putTimepoints() {
	for _, t := range s.parking.tps {
		s.putTimepoint(t)
	}
	clear(s.parking.tps)
	s.parking.tps = s.parking.tps[:0]
}

func (s *Submission) putTimepoint(t *sema.Timepoint) {
	if t == &s.parking.tp {
		*t = sema.Timepoint{}
	} else {
		s.Timeline.Device.timepoints.Put(t)
	}
}

// Since returns when the submission was parked, or when its host call began.
func (s *Submission) Since() Moment { return s.parking.since }
