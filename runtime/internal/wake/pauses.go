package wake

import (
	"context"
	"time"
)

// Pauses makes the pauses between the polls of a loop. At first there are no pauses. Then the
// thread naps (Clock.Nap), if it can. After a while pauses use timers. The zero value only uses
// timers.
type Pauses struct {
	Clock Clock         // nil means System
	Poll  time.Duration // how long to poll without pauses, only yielding in between
	Nap   time.Duration // the longest nap, which nothing can wake; 0 means no naps

	rounds int
	paused bool // the time without pauses is over
	since  time.Time
}

const (
	// Limits of one pause. Pauses grow with the time that has passed, so that the delay is small
	// compared to the work.
	shortest = 20 * time.Microsecond
	longest  = time.Millisecond
	longNap  = 250 * time.Microsecond // naps end when they would be longer than this

	// The longest pause in a testing/synctest bubble. There a pause takes no real time, but the
	// same processor time however long it is. A minute of pauses of a millisecond would take
	// seconds.
	stillLongest = 100 * time.Millisecond
)

// Pauses returns the pauses for polling a device on behalf of parked goroutines.
func (p *Policy) Pauses() Pauses { return Pauses{Clock: p.clock(), Poll: p.Poll, Nap: longNap} }

// Reset starts over, without pauses.
func (p *Pauses) Reset() { *p = Pauses{Clock: p.Clock, Poll: p.Poll, Nap: p.Nap} }

// Began reports whether Pause was called since the last Reset.
func (p *Pauses) Began() bool { return p.rounds > 0 }

// Without reports whether the caller now polls without pauses.
func (p *Pauses) Without() bool { return p.rounds > 0 && !p.paused && p.Poll > 0 }

// Pause makes the next pause, if one is due. It reports whether wake ended the pause.
func (p *Pauses) Pause(wake <-chan struct{}) (woken bool) {
	p.rounds++
	spins := p.Poll > 0 && !p.paused
	if spins && p.rounds%8 != 1 { // reading the clock costs as much as a poll
		return false
	}
	clock := known(p.Clock)
	now := clock.Now()
	still := clock.Still(now)
	if p.since.IsZero() {
		p.since = now
	}
	past := now.Sub(p.since)
	if spins && past < p.Poll && (!still || p.rounds < stillRounds) {
		clock.Yield()
		return false
	}
	p.paused = true
	if fine := past / 1024; p.Nap > 0 && !still && fine < longNap && clock.Nap(min(max(fine, shortest), p.Nap)) {
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	most := longest
	if still {
		most = stillLongest
	}
	return clock.Sleep(min(max(past/64, shortest), most), wake)
}

// Until calls holds, with growing pauses in between, until holds returns true. It returns false if
// the context ends first. It does not nap, because a nap would keep the processor from the
// goroutines that holds depends on.
func Until(ctx context.Context, holds func() bool) bool {
	var pauses Pauses
	for !holds() {
		if ctx.Err() != nil {
			return false
		}
		pauses.Pause(ctx.Done())
	}
	return true
}

// Lock locks a mutex that others may hold during a call of a driver or a library. It returns false
// if the context ends first. The mutex's own Lock method could not give up. Also, a goroutine
// blocked in that method stops the time of a testing/synctest bubble, in which such a call may be
// sleeping.
func Lock(ctx context.Context, mu interface{ TryLock() bool }) bool { return Until(ctx, mu.TryLock) }
