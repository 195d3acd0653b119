package wake

import "time"

// A Waiter is a goroutine that waits by asking, as long as that makes sense. The zero value has not asked yet. End must be called when
// it has waited.
type Waiter struct {
	start  time.Time
	still  bool
	rounds int
	stands *Policy       // for the poller of this device
	keeps  *Policy       // a processor, for this device's sake
	tried  bool          // it has kept one, and then yielded, for long; it has not asked since
	next   time.Duration // after the start, when it yields
}

// hope is how long a waiter does not park though there is nobody to ask yet: for a channel's thread to issue a group takes about that.
const hope = 50 * time.Microsecond

const (
	dearTurn = Slice / 50 // many times what it takes on a goroutine that is not locked, if nobody else wants to run
	tryAgain = 64         // after so many yields that took long
)

// Again reports whether a waiter that has asked in vain is to ask again, and lets others run before if that is due. Else it is to park.
// p is the policy of the device that it has asked, of several the one with the longest Spin; it is nil if there is none yet, but soon will be.
func (w *Waiter) Again(p *Policy) bool {
	spin, clock := hope, p.clock()
	if p != nil {
		spin = p.Spin
	}
	if spin <= 0 {
		return false
	}
	w.tried = false
	past := time.Duration(0)
	if w.rounds++; w.rounds == 1 {
		w.start = clock.Now()
		w.still = clock.Still(w.start)
	} else if !w.still {
		past = clock.Since(w.start)
	}
	switch {
	case w.still:
		clock.Yield()
		return w.rounds < stillRounds
	case past <= spin || w.stands != nil && w.stands == p && past <= p.Poll:
	case p != nil && w.stands != p && past <= p.Poll && p.stand():
		w.leave() // another one, for which there is nothing left to wait
		w.stands = p
	default:
		return false
	}
	if p == nil {
		clock.Yield()
	} else {
		w.yield(p, clock, past)
	}
	return true
}

// yield lets others run. On a locked goroutine that takes as long as many a piece of work of a device, so where it has taken long, and
// processors are left, a waiter keeps its own, and yields once in a slice. But to yield may have taken long because others
// ran, and they may be what is waited for: if a wait that began so ends as soon as it yields, waiters yield each time again, and try
// once more after many yields that take long.
func (w *Waiter) yield(p *Policy, clock Clock, past time.Duration) {
	if w.keeps == nil && p.keep.Load() == 1 && p.Processors.keep(briefKeep) {
		w.keeps = p
		w.next = max(w.next, Slice)
	}
	if w.keeps != nil && past < w.next {
		return
	}
	clock.Yield()
	if w.keeps == nil && w.rounds%8 != 1 { // to look at the clock takes as long as to yield when nobody else wants to run
		return
	}
	now := clock.Since(w.start)
	w.next = now + Slice
	switch dear := now-past > dearTurn; {
	case !dear:
		w.giveUp()
		if p.keep.Load() == 1 {
			p.keep.CompareAndSwap(1, 0)
		}
	case w.keeps != nil:
		w.tried = true
	default:
		if n := p.keep.Load(); n < 1 {
			p.keep.CompareAndSwap(n, n+1)
		}
	}
}

// Asked returns how often it has asked before.
func (w *Waiter) Asked() int { return w.rounds }

// Stands reports whether it stands for a poller.
func (w *Waiter) Stands() bool { return w.stands != nil }

// End says that it does not ask any more.
func (w *Waiter) End() {
	w.leave()
	if w.tried {
		w.keeps.keep.Store(-tryAgain)
	}
	w.giveUp()
}

func (w *Waiter) leave() {
	if w.stands != nil {
		w.stands.stood.Store(false)
		w.stands = nil
	}
}

func (w *Waiter) giveUp() {
	if w.keeps != nil {
		w.keeps.Processors.give()
		w.keeps = nil
	}
}
