package gpu

import (
	"context"
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
	for {
		if wait.rounds == 0 {
			select {
			case <-d.asker.wake: // whoever it was for is seen now
			default:
			}
		}
		if d.asker.stopped.Load() {
			return
		}
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
			if wait.pause(d.opt.Poll, 0, longNap, d.asker.wake) {
				wait = patience{} // somebody new has parked
			}
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
		if wanted := q.tl.wanted.Load(); q.tl.busy() && q.tl.done.Load() < wanted && !q.tl.crowded(again, askerLeaves) {
			further, asked = q.tl.poll(wanted, 1) || further, true
		}
	}
	return further, asked
}

// leaveOut is for how many rounds a waiter does not ask a timeline to which somebody is giving work. Drivers let one call in at a
// time, and to ask takes as long as to issue.
const leaveOut = 16

// askerLeaves is that for who asks for longer.
const askerLeaves = 4 * leaveOut

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
	still  bool      // time does not pass while a thread sleeps, as in a bubble of testing/synctest
	exact  int       // timers in a row that were not late at all, as they are in a bubble alone
}

const (
	maxRounds = 1 << 14                // without a pause, at most: where time stands still it would go on
	slice     = 100 * time.Microsecond // how long a device's thread keeps its processor, or sleeps

	// Pauses grow with the time that has passed, so that little is lost however long the work takes.
	shortest = 20 * time.Microsecond
	longest  = time.Millisecond
	longNap  = 250 * time.Microsecond // napping, who waits cannot be woken

	// In a bubble a pause takes no time, but each costs the same work: a minute of pauses of a millisecond would be seconds.
	bubbleLongest = 100 * time.Millisecond
	bubbleExact   = 8 // timers in a row by which a bubble is told
)

// pause waits, at first not at all; after each slice it lets others run. From a locked thread that takes much longer than to
// ask. Then it naps, where the system has that, for not longer than the limit, and after a while it takes a timer, which on Linux
// is late by up to a millisecond. It reports whether it was woken.
func (p *patience) pause(poll, slice, limit time.Duration, wake <-chan struct{}) (woken bool) {
	if p.rounds++; p.rounds < maxRounds && poll > 0 {
		if p.rounds%8 != 1 {
			return false
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
			return false
		}
		p.rounds = maxRounds
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	past := now.Sub(p.since)
	if fine := past / 1024; canNap && !p.still && fine < longNap {
		nap(min(max(fine, shortest), limit))
		p.still = time.Since(now) == 0
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	most := longest
	if p.exact >= bubbleExact {
		most = bubbleLongest
	}
	d := min(max(past/64, shortest), most)
	t := time.NewTimer(d)
	select {
	case <-wake:
		t.Stop()
		return true
	case <-t.C:
		if p.exact++; time.Since(now) != d {
			p.exact = 0
		}
		return false
	}
}

// until waits until a condition holds, which it checks after pauses that grow, and reports false if the context ends before.
func until(ctx context.Context, holds func() bool) bool {
	wait := patience{still: true} // without naps, which would keep the processor from those who are waited for
	for !holds() {
		if ctx.Err() != nil {
			return false
		}
		wait.pause(0, 0, 0, ctx.Done())
	}
	return true
}
