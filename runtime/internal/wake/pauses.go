package wake

import (
	"context"
	"time"
)

// Pauses are the pauses between rounds of asking. At first there are none, then naps, if a thread
// can nap, and after a while timers. The zero value only uses timers.
type Pauses struct {
	Clock Clock         // nil is Go's
	Poll  time.Duration // how long there are no pauses; other goroutines may run in between
	Nap   time.Duration // the longest nap; nothing can wake a nap; 0: no naps

	rounds int
	paused bool // it has paused, or will from now on
	since  time.Time
}

const (
	// Pauses grow with the time that has passed, so that little time is lost however long the work
	// takes.
	shortest = 20 * time.Microsecond
	longest  = time.Millisecond
	longNap  = 250 * time.Microsecond // naps end when they would be longer than this

	// In a bubble a pause takes no time, but each costs the same work. A minute of pauses of a
	// millisecond would take seconds.
	stillLongest = 100 * time.Millisecond
)

// Pauses returns the pauses of asking a device on behalf of parked goroutines.
func (p *Policy) Pauses() Pauses { return Pauses{Clock: p.clock(), Poll: p.Poll, Nap: longNap} }

// Reset begins anew.
func (p *Pauses) Reset() { *p = Pauses{Clock: p.Clock, Poll: p.Poll, Nap: p.Nap} }

// Began reports whether Pause was called since the beginning.
func (p *Pauses) Began() bool { return p.rounds > 0 }

// Without reports whether the caller now asks without pauses.
func (p *Pauses) Without() bool { return p.rounds > 0 && !p.paused && p.Poll > 0 }

// Pause waits as long as is due, and reports whether it was woken.
func (p *Pauses) Pause(wake <-chan struct{}) (woken bool) {
	p.rounds++
	spins := p.Poll > 0 && !p.paused
	if spins && p.rounds%8 != 1 { // reading the clock costs as much as asking
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

// Until waits until holds returns true, which it calls after growing pauses. It returns false if
// the context ends first. It does not nap: a nap would keep the processor from the work that it
// waits for.
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
// if the context ends first. The mutex's own Lock could not give up. Also, a goroutine blocked in
// it keeps time from passing in a testing/synctest bubble, where such a call may sleep.
func Lock(ctx context.Context, mu interface{ TryLock() bool }) bool { return Until(ctx, mu.TryLock) }
