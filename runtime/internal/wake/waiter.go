package wake

import "time"

// A Waiter is a goroutine that waits by asking, as long as that is worth it. The zero Waiter has
// not asked yet. Call End after the wait.
type Waiter struct {
	start  time.Time
	still  bool
	rounds int
	stands *Policy // the waiter stands for the poller of this device
	keeps  *Policy // the waiter keeps a processor because of this device
	// tried says that the waiter kept a processor, that its last yield took long, and that it has
	// not asked since.
	tried bool
	next  time.Duration // when it yields, counted from start
}

// hope is how long a waiter asks although there is no producer to ask yet. A channel's thread takes
// about that long to issue a group.
const hope = 50 * time.Microsecond

const (
	dearTurn = Slice / 50 // many times the cost of a yield on an unlocked goroutine
	tryAgain = 64         // slow yields until waiters keep a processor again
)

// Again reports whether a waiter that has asked in vain must ask again, and first lets others run
// if that is due. Otherwise the waiter must park. p is the policy of the device that it has asked,
// with several devices the one with the longest Spin. p is nil if there is no device to ask yet,
// but soon will be.
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
		w.leave() // the other device, for which nothing is left to wait for
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

// yield lets others run. On a locked goroutine a yield takes as long as many pieces of a device's
// work. So if yields take long and processors are free, waiters keep their processors, and yield
// once in a Slice. But a yield may take long because others run, and the wait may be for them. If a
// wait with a kept processor ends as soon as it yields, waiters yield each time again. They keep
// processors again after more than tryAgain slow yields.
func (w *Waiter) yield(p *Policy, clock Clock, past time.Duration) {
	if w.keeps == nil && p.keep.Load() == 1 && p.Processors.keep(briefKeep) {
		w.keeps = p
		w.next = max(w.next, Slice)
	}
	if w.keeps != nil && past < w.next {
		return
	}
	clock.Yield()
	if w.keeps == nil && w.rounds%8 != 1 { // reading the clock costs as much as a yield
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

// Asked returns how often the waiter has asked.
func (w *Waiter) Asked() int { return w.rounds }

// Stands reports whether the waiter stands for a poller.
func (w *Waiter) Stands() bool { return w.stands != nil }

// End says that the waiter does not ask any more.
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
