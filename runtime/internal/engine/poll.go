package engine

import "github.com/puregpu/puregpu/runtime/internal/wake"

// Wanted reports whether somebody is parked until a timeline passes a number that it is not known
// to have passed.
func (d *Device) Wanted() bool {
	for _, tl := range d.All() {
		if tl.Busy() && tl.passed.Load() < tl.wanted.Load() {
			return true
		}
	}
	return false
}

// askWanted asks the timelines for which somebody is parked. It reports whether one has passed more
// than before, and whether any was asked. again says that the caller asks without a pause. Then
// askWanted leaves out timelines that others are giving work (crowded).
func (d *Device) askWanted(again bool) (further, asked bool) {
	for _, tl := range d.All() {
		if wanted := tl.wanted.Load(); tl.Busy() && tl.passed.Load() < wanted && !tl.crowded(again, wake.PollerRests) {
			further, asked = tl.Poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// crowded reports whether a caller must not ask in this round. If it asks again without a pause, it
// must leave the driver to goroutines that give the timeline work.
func (tl *Timeline) crowded(again bool, rounds int32) bool {
	return tl.crowd.Rests(again, tl.issued.Load(), tl.Device.pending.running.Load() > 0, rounds)
}

// AskAll has the device ask about all work that may use memory of this one: all issued work, and
// the submission that is being issued, of its own timelines, and the marks in lent of other
// devices. While Short is above 0, Timeline.enter has the device ask about later work too.
func (d *Device) AskAll() {
	for _, tl := range d.All() {
		tl.want(tl.issued.Load() + 1)
	}
	d.lent.any(func(m Mark) bool {
		m.Timeline.want(m.Seq)
		return false
	})
}
