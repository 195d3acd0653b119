package engine

import (
	"time"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// parking has the fields of a Submission that are used while it is parked or runs as a host call.
type parking struct {
	before, after *Submission    // neighbours in a list of pendingQueue; protected by Device.mu
	Since         Moment         // when the submission was parked, or the host call began
	tp            sema.Timepoint // the first timepoint, so that one wait needs none from the pool
	// tps are all registered timepoints, &tp first. When the Submission is recycled, the others go
	// back to the pool.
	tps []*sema.Timepoint
}

// A Moment is a point in time, counted from the start of the process. To get one, Now reads one
// clock. [time.Now] reads two clocks, and would add 25 % to the cost of parking.
type Moment time.Duration // time since moment0

var moment0 = time.Now()

func Now() Moment { return Moment(time.Since(moment0)) }

// park adds a submission that has open waits to the list of parked submissions. If the device or
// the timeline accepts no more work, park returns an error. Then the caller must fail the
// submission, because nobody else will look for it in the list. The caller has added one to s.open,
// so that the submission does not become ready meanwhile.
func (d *Device) park(s *Submission) error {
	if s.Mode != published {
		s.Since = Now()
		for _, o := range s.Observers {
			o.Parks()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.link(&d.pending.parked)
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

// link adds a submission to the end of a list of pendingQueue. The caller holds Device.mu.
func (s *Submission) link(head *Submission) {
	s.before, s.after = head.before, head
	s.before.after, s.after.before = s, s
}

// unlink removes a submission from its list. The caller holds Device.mu.
func (s *Submission) unlink() {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after = nil, nil
}

// unlink removes a submission from the list of parked submissions. The caller holds d.mu.
func (d *Device) unlink(s *Submission) {
	s.unlink()
	if s.Mode != published {
		d.pending.nparked--
	}
}

// unpark removes a submission from the list of parked submissions, and reports whether it was
// there. A published barrier still counts in npublished until it is complete.
func (d *Device) unpark(s *Submission) (parked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parked = s.after != nil; parked {
		d.unlink(s)
	}
	return parked
}

// toIssue reports whether ready submissions are waiting for the pending-queue thread, or some
// goroutine is issuing ready submissions.
func (d *Device) toIssue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending.runnow != nil || d.pending.running.Load() > 0
}

// cancelParked makes all parked submissions fail with err. Published barriers fail only if all is
// set.
func (d *Device) cancelParked(err error, all bool) {
	d.cancelMatching(err, func(s *Submission) bool { return all || s.Mode != published })
}

// cancelMatching makes every parked submission for which match returns true fail with err. It calls
// match with d.mu locked.
func (d *Device) cancelMatching(err error, match func(*Submission) bool) {
	d.mu.Lock()
	var list []*Submission
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if match(s) && s.keepParked() { // if false, s is ready and another goroutine is about to unlink it
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range list {
		s.cancel(err)
	}
}

// CancelParked makes all parked submissions of the timeline fail with err.
func (tl *Timeline) CancelParked(err error) {
	tl.Device.cancelMatching(err, func(s *Submission) bool { return s.Timeline == tl })
}

// wantPublished requests polling of the work that published barriers wait for.
func (d *Device) wantPublished() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.Mode == published {
			s.wantDeps()
		}
	}
}

// timepoint returns a timepoint for a wait of the submission: &s.tp for the first wait, timepoints
// of the pool for the others.
func (s *Submission) timepoint() *sema.Timepoint {
	if len(s.tps) > 0 {
		return s.Timeline.Device.timepoints.Get(s)
	}
	s.tp.Init(s)
	return &s.tp
}

func (s *Submission) putTimepoint(t *sema.Timepoint) {
	if t == &s.tp {
		*t = sema.Timepoint{}
	} else {
		s.Timeline.Device.timepoints.Put(t)
	}
}
