package wake

import (
	"context"
	"time"
)

// Pauses implements the pauses between the polls of a loop. They have three stages. First there are
// no pauses. Then the thread naps (Clock.Nap), if the system can. Later, pauses use timers. The
// zero Pauses begins with timers.
type Pauses struct {
	Clock Clock         // System if nil
	Poll  time.Duration // how long the first stage lasts
	Nap   time.Duration // the longest nap, or 0 for no naps; see Pause

	rounds int
	paused bool // the first stage is over
	since  time.Time
}

const (
	// Limits of one pause. Pauses grow with the time since the first poll. So the delay that a
	// pause adds is small compared with the duration of the work.
	shortest = 20 * time.Microsecond
	longest  = time.Millisecond
	longNap  = 250 * time.Microsecond // longer pauses use timers instead of naps

	// The longest pause in a testing/synctest bubble. There a pause takes no real time, and it
	// costs the same processor time whether it is short or long.
	stillLongest = 100 * time.Millisecond
)

// Pauses returns the Pauses with which the Poller polls a device.
func (p *Policy) Pauses() Pauses { return Pauses{Clock: p.clock(), Poll: p.Poll, Nap: longNap} }

// Reset goes back to the first stage, without pauses.
func (p *Pauses) Reset() { *p = Pauses{Clock: p.Clock, Poll: p.Poll, Nap: p.Nap} }

// Began reports whether Pause has been called since the last Reset.
func (p *Pauses) Began() bool { return p.rounds > 0 }

// Without reports whether the loop is in the first stage, in which it polls without pauses.
func (p *Pauses) Without() bool { return p.rounds > 0 && !p.paused && p.Poll > 0 }

// Pause is called after each poll. It pauses, or yields, or only returns, depending on the stage.
// Pause reports whether it has received from the channel wake. A send to the channel ends a pause
// with a timer, but does not end a nap.
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

// Until calls holds(), with growing pauses in between, until the result is true. Until returns
// false if the context ends first. It uses timers and does not nap, because a napping thread keeps
// its processor (P) from the goroutines that must make holds() true.
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

// Lock locks a mutex that other goroutines may hold during a call of a driver or a library. Lock
// returns false if the context ends first. Mutex.Lock is no alternative: it cannot give up, and a
// goroutine blocked in it stops the time of a testing/synctest bubble.
func Lock(ctx context.Context, mu interface{ TryLock() bool }) bool { return Until(ctx, mu.TryLock) }
