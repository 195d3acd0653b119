package wake

import "time"

// A Waiter is a goroutine that waits by asking, as long as that makes sense. The zero value has not asked yet. End must be called when
// it has waited.
type Waiter struct {
	start  time.Time
	still  bool
	rounds int
	stands *Policy       // for the poller of this device
	keeps  *Processors   // one of these
	next   time.Duration // after the start, when it lets others run
}

// hope is how long a waiter does not park though there is nobody to ask yet: for a channel's thread to issue a group takes about that.
const hope = 50 * time.Microsecond

const (
	firstTurn = Slice / 2
	dearTurn  = Slice / 20 // many times what it takes on a goroutine that is not locked, if nobody else wants to run
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
	now := clock.Now()
	if w.start.IsZero() {
		w.start, w.still = now, clock.Still(now)
	}
	if w.rounds++; w.still {
		clock.Yield()
		return w.rounds < stillRounds
	}
	switch past := now.Sub(w.start); {
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
		w.yield(p, clock, now)
	}
	return true
}

// yield lets others run: each time, but where that took long the last time, and processors are left, at first not, and then once in a
// slice, until it is seen to take little again. Of a locked goroutine it takes as long as many a piece of work of a device.
func (w *Waiter) yield(p *Policy, clock Clock, now time.Time) {
	if w.keeps == nil && p.dear.Load() && p.Processors.keep(briefKeep) {
		w.keeps = p.Processors
		w.next = max(w.next, firstTurn)
	}
	if w.keeps != nil && now.Sub(w.start) < w.next {
		return
	}
	clock.Yield()
	after := clock.Now()
	dear := after.Sub(now) > dearTurn
	if dear != p.dear.Load() {
		p.dear.Store(dear)
	}
	if w.next = after.Sub(w.start) + Slice; !dear {
		w.giveUp()
	}
}

// Asked returns how often it has asked before.
func (w *Waiter) Asked() int { return w.rounds }

// Stands reports whether it stands for a poller.
func (w *Waiter) Stands() bool { return w.stands != nil }

// End says that it does not ask any more.
func (w *Waiter) End() {
	w.leave()
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
		w.keeps.give()
		w.keeps = nil
	}
}
