package wake

import (
	"context"
	"time"
)

// Pauses is how somebody waits between two rounds of asking: at first not at all, then with naps, where a thread can nap, and after a while
// with timers. The zero value has timers only.
type Pauses struct {
	Clock Clock         // nil is Go's
	Poll  time.Duration // for how long there are no pauses; others are let run in between
	Nap   time.Duration // the longest nap, in which nobody can wake it; 0: none

	rounds int
	paused bool // it has paused, or is to from now on
	since  time.Time
}

const (
	// Pauses grow with the time that has passed, so that little is lost however long the work takes.
	shortest = 20 * time.Microsecond
	longest  = time.Millisecond
	longNap  = 250 * time.Microsecond // when they would be longer than that, naps end

	// In a bubble a pause takes no time, but each costs the same work: a minute of pauses of a millisecond would be seconds.
	stillLongest = 100 * time.Millisecond
)

// Pauses returns the pauses with which a device is asked on behalf of parked goroutines.
func (p *Policy) Pauses() Pauses { return Pauses{Clock: p.clock(), Poll: p.Poll, Nap: longNap} }

// Reset begins anew.
func (p *Pauses) Reset() { *p = Pauses{Clock: p.Clock, Poll: p.Poll, Nap: p.Nap} }

// Began reports whether it has been called since the beginning.
func (p *Pauses) Began() bool { return p.rounds > 0 }

// Without reports whether it asks again and again without a pause.
func (p *Pauses) Without() bool { return p.rounds > 0 && !p.paused && p.Poll > 0 }

// Pause waits for as long as is due, and reports whether it was woken meanwhile.
func (p *Pauses) Pause(wake <-chan struct{}) (woken bool) {
	p.rounds++
	spins := p.Poll > 0 && !p.paused
	if spins && p.rounds%8 != 1 { // to look at the clock takes as long as to ask
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

// Until waits until a condition holds, which it checks after pauses that grow, and reports false if the context ends before. It does
// not nap, which would keep the processor from those who are waited for.
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

// Lock locks a mutex that others may hold for as long as a call of a driver or a library takes, and reports false if the context ends
// before. Whoever blocks in the mutex's own Lock cannot give up, and keeps the time of a bubble of testing/synctest from passing, in which
// such a call may sleep.
func Lock(ctx context.Context, mu interface{ TryLock() bool }) bool { return Until(ctx, mu.TryLock) }
