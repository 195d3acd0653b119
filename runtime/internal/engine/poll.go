package engine

import "github.com/puregpu/puregpu/runtime/internal/wake"

// Wanted reports whether the device must be polled: on some timeline, somebody waits for a number
// that the stream has not passed yet (see Timeline.wanted).
func (d *Device) Wanted() bool {
	for _, tl := range d.All() {
		if tl.Busy() && tl.passed.Load() < tl.wanted.Load() {
			return true
		}
	}
	return false
}

// Flush polls the timeline once. If the timeline has no work in flight, Flush queries a free event
// instead: the call returns an error if the device is lost. If no event is free, a refiller begins
// to make some and finds the loss, and a later Flush returns the loss. The caller holds no locks.
func (tl *Timeline) Flush() {
	d := tl.Device
	if tl.Load() > 0 {
		tl.Poll(tl.Latest(), 1)
		return
	}
	if d.lost.Load() != nil || d.Stay() != nil {
		return
	}
	defer d.Leave()
	if e := d.Events.take(); e != nil {
		_, err := d.Native.Query(e.Handle)
		e.Drop()
		if err != nil {
			d.Check(err)
		}
	}
}

// pollWanted polls the timelines that somebody waits for. The result further is true if a poll made
// progress: Timeline.Poll returned true. The result asked is true if any timeline was polled. If
// again is set, the caller polls without a pause, and pollWanted may skip timelines to which other
// goroutines are issuing work (see skipsPoll).
func (d *Device) pollWanted(again bool) (further, asked bool) {
	for _, tl := range d.All() {
		if wanted := tl.wanted.Load(); tl.Busy() && tl.passed.Load() < wanted && !tl.skipsPoll(again, wake.PollerSkips) {
			further, asked = tl.Poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// skipsPoll reports whether the caller must skip this poll, so that goroutines that issue work need
// not wait for the driver. If again is set, the caller polls without a pause. Only then may
// skipsPoll return true, at most rounds times in a row.
func (tl *Timeline) skipsPoll(again bool, rounds int32) bool {
	return tl.throttle.Skips(again, tl.issued.Load(), tl.Device.pending.running.Load() > 0, rounds)
}

// WantAll requests polling of all work that may use memory of this device. On timelines of this
// device, such work is everything issued, and the next submission, which a goroutine may be issuing
// now. On timelines of other devices, it is the work up to the marks in Device.lent. WantAll does
// not cover work that is issued after the call: Timeline.enter and Device.Borrow request polling of
// such work while Device.Short is above 0.
func (d *Device) WantAll() {
	for _, tl := range d.All() {
		tl.want(tl.issued.Load() + 1)
	}
	d.lent.any(func(m Mark) bool {
		m.Timeline.want(m.Seq)
		return false
	})
}
