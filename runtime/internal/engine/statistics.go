package engine

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// objects counts native objects, or records.
type objects struct {
	Made int // so far
	Held int // now
	Free int // of those that are held
}

// Statistics counts what a device has.
type Statistics struct {
	Events, Timepoints, Records objects
	Parked                      int // submissions that wait for something that nobody has issued
	InFlight                    int // submissions that have been issued and are not known to be done
	Issuing                     int // goroutines that issue what was ready
}

// Statistics counts what the device has now.
func (d *Device) Statistics() Statistics {
	s := Statistics{Events: d.Events.statistics(), Timepoints: objects(d.timepoints.Stats()), InFlight: d.inFlight(),
		Issuing: int(d.pending.running.Load())}
	d.mu.Lock()
	s.Parked = d.pending.nparked
	d.mu.Unlock()
	for _, tl := range d.All() {
		tl.free.addTo(&s)
	}
	return s
}

// addTo adds the records, and the events that they keep.
func (r *records) addTo(s *Statistics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Events.Free += r.kept
	s.Records.Made += r.stats.Made
	s.Records.Held += r.stats.Held
	s.Records.Free += r.stats.Free
}

// An OpenState says why a submission has not been issued.
type OpenState int

const (
	IsParked  OpenState = iota // a wait has no producer
	isRunning                  // it is a host call
	isBehind                   // its lane has not come so far
)

// String returns what a program calls it: "parked".
func (s OpenState) String() string {
	return [...]string{"parked", "running", "behind other groups"}[s]
}

// EachOpen calls a function for the submissions that the device has been given and has not issued. The
// function must lock nothing. The lists of a submission stay as they are meanwhile.
func (d *Device) EachOpen(fn func(*Submission, OpenState)) {
	d.mu.Lock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.Mode != passing {
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

// FindProducer returns the timeline behind a point, and calls a function for the submission if it is in flight. The
// function must lock nothing.
func FindProducer(p sema.Signal, fn func(*Submission)) (tl *Timeline) {
	tl = p.Producer.(*Timeline)
	tl.inFlightAt(p.Seq, fn)
	return tl
}

// IsListed reports whether the device still knows the timeline.
func (tl *Timeline) IsListed() bool { return slices.Contains(tl.Device.All(), tl) }
