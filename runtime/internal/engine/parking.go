package engine

import (
	"time"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// parking is the part of a submission's record that is used while it is parked, or while it is a
// host call that runs.
type parking struct {
	before, after *Submission    // in a list of the device; under the device's mu
	Since         Moment         // when it was parked, or the call began
	tp            sema.Timepoint // the first of the timepoints given to semaphores
	// tps are all timepoints. All but the first go back to the pool with the record.
	tps []*sema.Timepoint
}

// A Moment is a time in this process. Taking one reads one clock. [time.Now] reads two, and would
// add 25 % to the cost of parking.
type Moment time.Duration // since moment0

var moment0 = time.Now()

func Now() Moment { return Moment(time.Since(moment0)) }

// park adds a submission that has open waits to the list of parked ones. It returns an error if the
// device or the timeline takes no more work: then nobody would find the submission in the list, so
// the caller must fail it. The caller has added one to s.open, so that the submission does not
// become ready meanwhile.
func (d *Device) park(s *Submission) error {
	if s.Mode != passing {
		s.Since = Now()
		for _, o := range s.Observers {
			o.Parks()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.link(&d.pending.parked)
	if s.Mode == passing { // a passing barrier completes by itself, and Close waits for it
		d.pending.npassing.Add(1)
		return d.halted()
	}
	d.pending.nparked++
	if l := s.Timeline.Lane; l != nil {
		err, _ := l.Halted()
		return err
	}
	return s.Timeline.FailedBy()
}

// link adds a submission to the end of a list. The caller holds the device's mu.
func (s *Submission) link(head *Submission) {
	s.before, s.after = head.before, head
	s.before.after, s.after.before = s, s
}

// unlink removes a submission from its list. The caller holds the device's mu.
func (s *Submission) unlink() {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after = nil, nil
}

// unlink removes a submission from the list of parked ones. The caller holds mu.
func (d *Device) unlink(s *Submission) {
	s.unlink()
	if s.Mode != passing {
		d.pending.nparked--
	}
}

// unpark removes a submission from the list of parked ones, and reports whether it was there. A
// passing barrier still counts in npassing, until it is complete.
func (d *Device) unpark(s *Submission) (parked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parked = s.after != nil; parked {
		d.unlink(s)
	}
	return parked
}

// toIssue reports whether the pending-queue thread has ready submissions to issue, or goroutines
// are issuing submissions that were ready.
func (d *Device) toIssue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending.runnow != nil || d.pending.running.Load() > 0
}

// cancelParked makes all parked submissions fail with err. It includes barriers that wait for work
// in flight only if all is set.
func (d *Device) cancelParked(err error, all bool) {
	d.cancelThose(err, func(s *Submission) bool { return all || s.Mode != passing })
}

// cancelThose is cancelParked for some submissions: it calls which for each, with mu locked.
func (d *Device) cancelThose(err error, which func(*Submission) bool) {
	d.mu.Lock()
	var list []*Submission
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if which(s) && s.grab() { // otherwise it is ready, and about to be unlinked
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range list {
		s.cancel(err)
	}
}

// CancelParked makes the timeline's parked submissions fail with err.
func (tl *Timeline) CancelParked(err error) {
	tl.Device.cancelThose(err, func(s *Submission) bool { return s.Timeline == tl })
}

// wantPassing requests polling of the work that passing barriers wait for.
func (d *Device) wantPassing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.Mode == passing {
			s.wantDeps()
		}
	}
}

// timepoint returns a timepoint for the submission: first the one in its record, then timepoints of
// the pool.
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
