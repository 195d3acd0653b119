package gpu

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

// statistics counts what a native device has.
type statistics struct {
	events, timepoints, records objects
	parked                      int // submissions that wait for something that nobody has issued
	inFlight                    int // submissions that have been issued and are not known to be done
}

func (d *nativeDevice) statistics() statistics {
	s := statistics{events: d.events.statistics(), timepoints: objects(d.timepoints.Stats()), inFlight: d.inFlight()}
	d.mu.Lock()
	s.parked = d.pending.nparked
	d.mu.Unlock()
	for _, tl := range d.all() {
		tl.free.addTo(&s)
	}
	return s
}

// addTo adds the records, and the events that they keep.
func (r *records) addTo(s *statistics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.events.Free += r.kept
	s.records.Made += r.stats.Made
	s.records.Held += r.stats.Held
	s.records.Free += r.stats.Free
}

// An openState says why a submission has not been issued.
type openState int

const (
	isParked  openState = iota // a wait has no producer
	isRunning                  // it is a host call
	isBehind                   // its lane has not come so far
)

// String returns what a program calls it: "parked".
func (s openState) String() string {
	return [...]string{"parked", "running", "behind other groups"}[s]
}

// eachOpen calls a function for the submissions that the device has been given and has not issued. The
// function must lock nothing. The lists of a submission stay as they are meanwhile.
func (d *nativeDevice) eachOpen(fn func(*submission, openState)) {
	d.mu.Lock()
	for s := d.pending.parked.after; s != &d.pending.parked; s = s.after {
		if s.mode != passing {
			fn(s, isParked)
		}
	}
	for s := d.pending.called.after; s != &d.pending.called; s = s.after {
		fn(s, isRunning)
	}
	lanes := slices.Clone(d.lanes)
	d.mu.Unlock()
	for _, l := range lanes {
		l.eachReady(func(s *submission) { fn(s, isBehind) })
	}
}

// find returns the timeline behind a point, and calls a function for the submission if it is in flight. The
// function must lock nothing.
func find(p sema.Signal, fn func(*submission)) (tl *timeline) {
	tl = p.Producer.(*timeline)
	tl.inFlightAt(p.Seq, fn)
	return tl
}

// isListed reports whether the device still knows the timeline.
func (tl *timeline) isListed() bool { return slices.Contains(tl.dev.all(), tl) }
