package gpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// An asker is a goroutine that asks a device how far it is on behalf of those who have parked. Where any thread may ask it is
// one of its own and not the device's thread: to wake a goroutine from a locked thread takes many times as long.
type asker struct {
	wake    chan struct{}
	ended   chan struct{}
	stopped atomic.Bool
}

func (a *asker) signal() { nudge(a.wake) }

// nudge wakes who waits for a channel that holds one element, now or when it waits next.
func nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// stop ends the goroutine.
func (a *asker) stop() {
	a.stopped.Store(true)
	a.signal()
	<-a.ended
}

// signalAsker makes whoever asks look what is wanted.
func (d *Device) signalAsker() {
	if d.asker != nil {
		d.asker.signal()
	} else {
		d.signalThread()
	}
}

// ask is the goroutine.
func (d *Device) ask() {
	defer close(d.asker.ended)
	var wait patience
	for !d.asker.stopped.Load() {
		if !d.wanted() {
			wait = patience{}
			<-d.asker.wake
			continue
		}
		switch further, asked := d.askWanted(wait.rounds > 0 && wait.rounds < maxRounds && d.opt.Poll > 0); {
		case further:
			wait = patience{}
			runtime.Gosched() // whoever was woken is next in this processor's queue
		case !asked:
			runtime.Gosched()
		default:
			wait.pause(d.opt.Poll, 0, d.asker.wake)
		}
	}
}

// wanted reports whether somebody is parked until a timeline comes further than it is known to be.
func (d *Device) wanted() bool {
	for _, q := range d.all() {
		if q.tl.busy() && q.tl.done.Load() < q.tl.wanted.Load() {
			return true
		}
	}
	return false
}

// askWanted asks the timelines for which somebody is parked, and reports whether one has come further, and whether any was asked:
// whoever goes on without a pause leaves out those to which somebody is giving work.
func (d *Device) askWanted(again bool) (further, asked bool) {
	for _, q := range d.all() {
		if wanted := q.tl.wanted.Load(); q.tl.busy() && q.tl.done.Load() < wanted && !q.tl.crowded(again, 4*leaveOut) {
			further, asked = q.tl.poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// leaveOut is for how many rounds a waiter does not ask a timeline to which somebody is giving work. Drivers let one call in at a
// time, and to ask takes as long as to issue.
const leaveOut = 16

// crowded reports whether whoever asks again, without a pause, is to leave the driver to those who give the timeline work, for
// this round. It does not do so for more than some rounds in a row.
func (tl *timeline) crowded(again bool, rounds int32) bool {
	issued := tl.issued.Load()
	if !again {
		tl.seen.Store(issued)
		return false
	}
	if issued != tl.seen.Load() || tl.dev.issuing.Load() {
		tl.seen.Store(issued)
		if tl.leave.Load() <= 0 {
			tl.leave.Store(rounds)
		}
	}
	return tl.leave.Load() > 0 && tl.leave.Add(-1) > 0
}

// patience is how to wait between two rounds of asking.
type patience struct {
	rounds int
	since  time.Time
	left   time.Time // when others were let run
}

const (
	maxRounds = 1 << 14                // without a pause, at most: where time stands still, as in a bubble of testing/synctest, it would go on
	slice     = 100 * time.Microsecond // how long a device's thread keeps its processor
)

// pause waits, at first not at all; after each slice it lets others run. From a locked thread that takes much longer than to
// ask.
func (p *patience) pause(poll, slice time.Duration, wake <-chan struct{}) {
	if p.rounds++; p.rounds < maxRounds && poll > 0 {
		if p.rounds%8 != 1 {
			return
		}
		now := time.Now()
		if p.since.IsZero() {
			p.since, p.left = now, now
		}
		if now.Sub(p.since) < poll {
			if now.Sub(p.left) >= slice {
				p.left = now
				runtime.Gosched()
			}
			return
		}
		p.rounds = maxRounds
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	t := time.NewTimer(min(max(time.Since(p.since)/64, 20*time.Microsecond), time.Millisecond))
	select {
	case <-wake:
		t.Stop()
	case <-t.C:
	}
}
