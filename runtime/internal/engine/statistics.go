package engine

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Statistics are counts of a device's objects and submissions.
type Statistics struct {
	Events, Timepoints, Records sema.PoolStats
	Parked                      int // parked submissions, without published barriers
	InFlight                    int // submissions in flight that have not failed, and published barriers
	Issuing                     int // goroutines that issue a submission that was parked, or wait for an event for such a submission
}

// Statistics returns the current counts.
func (d *Device) Statistics() Statistics {
	s := Statistics{Events: d.Events.statistics(), Timepoints: d.timepoints.Stats(), InFlight: d.inFlight(),
		Issuing: int(d.pending.running.Load())}
	d.mu.Lock()
	s.Parked = d.pending.nparked
	d.mu.Unlock()
	for _, tl := range d.All() {
		tl.free.addTo(&s)
	}
	return s
}

// addTo adds the counts of this list's Submissions to s. An event that an unused Submission keeps
// for its next use counts as a free event.
func (r *records) addTo(s *Statistics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events.Free += r.kept
	s.Records.Made += r.stats.Made
	s.Records.Held += r.stats.Held
	s.Records.Free += r.stats.Free
}

// An OpenState is a state of a submission that was accepted and is neither in a stream nor done.
type OpenState int

const (
	IsParked  OpenState = iota // parked: one of its waits is open
	isRunning                  // an operation of the host that is running
	isBehind                   // ready, but still in the lane's queue
)

// String returns the state as text for diagnostics, such as "parked".
func (s OpenState) String() string {
	return [...]string{"parked", "running", "behind other groups"}[s]
}

// EachOpen calls fn for each submission in one of the states of OpenState, except barriers in mode
// published. fn may run under d.mu, so it must not lock a mutex. During the call of fn the
// submission's Waits and Signals do not change.
func (d *Device) EachOpen(fn func(*Submission, OpenState)) {
	d.mu.Lock()
	for s := range d.pending.parked.all() {
		if s.Mode != published {
			fn(s, IsParked)
		}
	}
	for s := range d.pending.called.all() {
		fn(s, isRunning)
	}
	lanes := slices.Clone(d.lanes)
	d.mu.Unlock()
	for _, l := range lanes {
		l.EachReady(func(s *Submission) { fn(s, isBehind) })
	}
}

// FindProducer returns the timeline of the work that gives the signal p. If a barrier gives the
// signal, FindProducer returns the timeline of work that the barrier waits for. If the work is in
// flight, FindProducer calls fn with the work's submission. fn runs under the ring's mu, so it must
// not lock a mutex.
func FindProducer(p sema.Signal, fn func(*Submission)) (tl *Timeline) {
	tl = p.Producer.(*Timeline)
	tl.inFlightAt(p.Seq, fn)
	return tl
}

// IsListed reports whether the timeline is in its device's list. A closed timeline is removed from
// the list by the first call of removeSpent after the timeline's work is done.
func (tl *Timeline) IsListed() bool { return slices.Contains(tl.Device.All(), tl) }
