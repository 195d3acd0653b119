package engine

import "github.com/puregpu/puregpu/runtime/internal/wake"

// Wanted reports whether the device must be polled: somebody waits until a timeline passes a number
// that it is not known to have passed.
func (d *Device) Wanted() bool {
	for _, tl := range d.All() {
		if tl.Busy() && tl.passed.Load() < tl.wanted.Load() {
			return true
		}
	}
	return false
}

// pollWanted polls the timelines that somebody waits for. further reports whether one of them has
// passed more than before, and asked whether any was polled. again says that the caller polls
// without a pause. Then pollWanted skips timelines on which other goroutines are issuing work (see
// skipsPoll).
func (d *Device) pollWanted(again bool) (further, asked bool) {
	for _, tl := range d.All() {
		if wanted := tl.wanted.Load(); tl.Busy() && tl.passed.Load() < wanted && !tl.skipsPoll(again, wake.PollerSkips) {
			further, asked = tl.Poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// skipsPoll reports whether the caller must skip this poll, to leave the driver to goroutines that
// issue work on the timeline. again says that the caller polls without a pause; only then may it
// have to skip. It skips at most rounds polls in a row.
func (tl *Timeline) skipsPoll(again bool, rounds int32) bool {
	return tl.throttle.Skips(again, tl.issued.Load(), tl.Device.pending.running.Load() > 0, rounds)
}

// WantAll requests polling of all work that may use memory of this device: on its own timelines all
// issued work and the submission that is being issued, on those of other devices the work up to the
// marks in lent. While Short is above 0, Timeline.enter requests polling of later work too.
func (d *Device) WantAll() {
	for _, tl := range d.All() {
		tl.want(tl.issued.Load() + 1)
	}
	d.lent.any(func(m Mark) bool {
		m.Timeline.want(m.Seq)
		return false
	})
}
