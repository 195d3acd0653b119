package engine

import "github.com/puregpu/puregpu/runtime/internal/wake"

// Wanted reports whether somebody is parked until a timeline has passed more than it is known to have.
func (d *Device) Wanted() bool {
	for _, tl := range d.All() {
		if tl.Busy() && tl.passed.Load() < tl.wanted.Load() {
			return true
		}
	}
	return false
}

// askWanted asks the timelines for which somebody is parked. It reports whether one has come further,
// and whether any was asked. With again, which says that the caller asks without a pause, it leaves out
// those to which somebody is giving work.
func (d *Device) askWanted(again bool) (further, asked bool) {
	for _, tl := range d.All() {
		if wanted := tl.wanted.Load(); tl.Busy() && tl.passed.Load() < wanted && !tl.crowded(again, wake.PollerRests) {
			further, asked = tl.Poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// crowded reports whether a caller that asks again, without a pause, must leave the driver to those who
// give the timeline work, for this round.
func (tl *Timeline) crowded(again bool, rounds int32) bool {
	return tl.crowd.Rests(again, tl.issued.Load(), tl.Device.pending.running.Load() > 0, rounds)
}

// AskAll has devices asked about all work that they have been given, or are being given, which may use
// memory of this one. They are asked about later work as long as somebody waits for memory to come back
// (short).
func (d *Device) AskAll() {
	for _, tl := range d.All() {
		tl.want(tl.issued.Load() + 1)
	}
	d.lent.any(func(m Mark) bool {
		m.Timeline.want(m.Seq)
		return false
	})
}
