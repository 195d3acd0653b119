package engine

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// Statistics are numbers about a device.
type Statistics struct {
	Events, Timepoints, Records sema.PoolStats
	Parked                      int // submissions that are parked, not counting passing barriers
	InFlight                    int // issued submissions not known to be done, and passing barriers
	Issuing                     int // goroutines that issue submissions that were parked
}

// Statistics returns the device's present numbers.
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

// addTo adds the records to s, and the events of free records to the free events.
func (r *records) addTo(s *Statistics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events.Free += r.kept
	s.Records.Made += r.stats.Made
	s.Records.Held += r.stats.Held
	s.Records.Free += r.stats.Free
}

// An OpenState says why a submission is neither in flight nor over.
type OpenState int

const (
	IsParked  OpenState = iota // it is parked
	isRunning                  // it is a host call that is running
	isBehind                   // it is ready, but others of its lane come first
)

// String returns the state in words that programs print: "parked".
func (s OpenState) String() string {
	return [...]string{"parked", "running", "behind other groups"}[s]
}

// EachOpen calls fn for the submissions that are parked, that run as host calls, or that wait
// behind others of their lane. fn may run under the device's mu, so it must lock nothing. The
// submission's Waits and Signals do not change during the call.
func (d *Device) EachOpen(fn func(*Submission, OpenState)) {
	d.mu.Lock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.Mode != published {
			fn(s, IsParked)
		}
	}
	for s := d.pending.called.after; s != &d.pending.called; s = s.after {
		fn(s, isRunning)
	}
	lanes := slices.Clone(d.lanes)
	d.mu.Unlock()
	for _, l := range lanes {
		l.EachReady(func(s *Submission) { fn(s, isBehind) })
	}
}

// FindProducer returns the timeline whose work gives the signal p, and calls fn for the submission
// if it is in flight. fn runs under the ring's mu, so it must lock nothing.
func FindProducer(p sema.Signal, fn func(*Submission)) (tl *Timeline) {
	tl = p.Producer.(*Timeline)
	tl.inFlightAt(p.Seq, fn)
	return tl
}

// IsListed reports whether the timeline is listed with its device.
func (tl *Timeline) IsListed() bool { return slices.Contains(tl.Device.All(), tl) }
