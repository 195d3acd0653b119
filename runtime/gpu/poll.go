package gpu

import "github.com/puregpu/puregpu/runtime/internal/wake"

// wanted reports whether somebody is parked until a timeline has passed more than it is known to have.
func (d *nativeDevice) wanted() bool {
	for _, tl := range d.all() {
		if tl.busy() && tl.passed.Load() < tl.wanted.Load() {
			return true
		}
	}
	return false
}

// askWanted asks the timelines for which somebody is parked. It reports whether one has come further,
// and whether any was asked. With again, which says that the caller asks without a pause, it leaves out
// those to which somebody is giving work.
func (d *nativeDevice) askWanted(again bool) (further, asked bool) {
	for _, tl := range d.all() {
		if wanted := tl.wanted.Load(); tl.busy() && tl.passed.Load() < wanted && !tl.crowded(again, wake.PollerRests) {
			further, asked = tl.poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// crowded reports whether a caller that asks again, without a pause, must leave the driver to those who
// give the timeline work, for this round.
func (tl *timeline) crowded(again bool, rounds int32) bool {
	return tl.crowd.Rests(again, tl.issued.Load(), tl.dev.pending.running.Load() > 0, rounds)
}

// askAll has devices asked about all work that they have been given, or are being given, which may use
// memory of this one. They are asked about later work as long as somebody waits for memory to come back
// (short).
func (d *nativeDevice) askAll() {
	for _, tl := range d.all() {
		tl.want(tl.issued.Load() + 1)
	}
	d.lent.any(func(m mark) bool {
		m.tl.want(m.seq)
		return false
	})
}
