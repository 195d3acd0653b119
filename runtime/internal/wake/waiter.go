package wake

import "time"

// A Waiter decides how long a goroutine waits by polling before it parks, and when it yields in
// between. The goroutine calls Again after each poll and End after the wait. The zero Waiter has
// not polled yet.
type Waiter struct {
	start  time.Time
	still  bool
	rounds int
	stands *Policy // the waiter stands in for the poller of this device
	keeps  *Policy // the waiter keeps a processor because of this device
	// tried says that the waiter kept a processor, that its last yield took long, and that it has
	// not polled since.
	tried bool
	next  time.Duration // when it yields next, counted from start
}

// hope is how long a waiter spins although there is no producer to poll yet. A channel's thread
// takes about that long to issue a group.
const spinForIssue = 50 * time.Microsecond

const (
	slowYield      = Slice / 50 // many times the cost of a yield on an unlocked goroutine
	keepAgainAfter = 64         // how many slow yields it takes until waiters keep a processor again
)

// Again is called after a poll that found nothing. It returns true if the waiter must poll again,
// and yields first if a yield is due. It returns false if the waiter must park. p is the policy of
// the polled device; with several devices, the policy with the longest Spin. p is nil if there is
// no device to poll yet but soon will be.
func (w *Waiter) Again(p *Policy) bool {
	spin, clock := spinForIssue, p.clock()
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
		w.leave() // the device of the earlier policy: nothing is left to wait for there
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

// yield lets other goroutines run, if that is due. On a locked goroutine a yield takes as long as
// many pieces of a device's work. So if yields take long and processors are free, waiters keep
// their processors and yield only once in a Slice.
//
// But a yield may also take long because other goroutines run, and the wait may be for their work.
// So if a wait with a kept processor ends right after a yield, waiters yield after each poll again.
// They keep processors again after more than keepAgainAfter slow yields.
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
	switch dear := now-past > slowYield; {
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

// Asked returns how often the waiter has polled in vain.
func (w *Waiter) Asked() int { return w.rounds }

// Stands reports whether the waiter stands in for a poller.
func (w *Waiter) Stands() bool { return w.stands != nil }

// End says that the waiter does not poll any more.
func (w *Waiter) End() {
	w.leave()
	if w.tried {
		w.keeps.keep.Store(-keepAgainAfter)
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
