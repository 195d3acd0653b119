package engine

import (
	"time"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// parking is the part of a submission's record that is in use while it is parked, or a host call that is running.
type parking struct {
	before, after *Submission       // in a list of the device
	Since         Moment            // since when
	tp            sema.Timepoint    // the first of the timepoints given to semaphores
	tps           []*sema.Timepoint // all of them; all but the first go back to the pool with the record
}

// A Moment is a point in time of this process. To note one reads one clock, where [time.Now] reads
// two, which would be a quarter of what it costs to park.
type Moment time.Duration // since moment0

var moment0 = time.Now()

func Now() Moment { return Moment(time.Since(moment0)) }

// park notes a submission that waits for something nobody has issued. It returns why the device takes no more of them: then
// nobody would look for it. The caller holds a count of it, so that it does not become ready.
func (d *Device) park(s *Submission) error {
	if s.Mode != passing {
		s.Since = Now()
		if s.Seen != nil {
			s.Seen.Parks()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.link(&d.pending.parked)
	if s.Mode == passing { // it will be done by itself, and Close waits for it
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

// link puts a submission at the end of a list.
func (s *Submission) link(head *Submission) {
	s.before, s.after = head.before, head
	s.before.after, s.after.before = s, s
}

// unlink takes a submission off its list.
func (s *Submission) unlink() {
	s.before.after, s.after.before = s.after, s.before
	s.before, s.after = nil, nil
}

// unlink takes a submission off the list of parked ones. The caller holds mu.
func (d *Device) unlink(s *Submission) {
	s.unlink()
	if s.Mode != passing {
		d.pending.nparked--
	}
}

// unpark undoes park, if it was done, which it reports; but a barrier counts until it is done.
func (d *Device) unpark(s *Submission) (parked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parked = s.after != nil; parked {
		d.unlink(s)
	}
	return parked
}

// toIssue reports whether submissions are ready, and the thread has not issued them.
func (d *Device) toIssue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending.runnow != nil || d.pending.running.Load() > 0
}

// cancelParked makes the submissions that still wait ready, as failed ones; barriers that pass behind work in flight only if all are meant.
func (d *Device) cancelParked(err error, all bool) {
	d.cancelThose(err, func(s *Submission) bool { return all || s.Mode != passing })
}

// cancelThose is cancelParked for some of them.
func (d *Device) cancelThose(err error, which func(*Submission) bool) {
	d.mu.Lock()
	var list []*Submission
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if which(s) && s.grab() { // else it is ready, and about to be unlinked
			list = append(list, s)
		}
	}
	d.mu.Unlock()
	for _, s := range list {
		s.cancel(err)
	}
}

// CancelParked makes the timeline's parked submissions fail.
func (tl *Timeline) CancelParked(err error) {
	tl.Device.cancelThose(err, func(s *Submission) bool { return s.Timeline == tl })
}

// wantPassing has the work asked for that barriers wait for.
func (d *Device) wantPassing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.Mode == passing {
			s.wantDeps()
		}
	}
}

// timepoint takes a timepoint for the submission.
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
