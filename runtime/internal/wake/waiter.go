package wake

import "time"

// A Waiter decides how long a waiting goroutine polls before it parks, and when it yields between
// polls. The goroutine calls Again after each poll, and End after the last. The zero Waiter is
// ready for use.
type Waiter struct {
	start  time.Time
	still  bool
	rounds int
	stands *Policy // not nil if the waiter stands in for the Poller of the device with this Policy
	keeps  *Policy // not nil if the waiter keeps a processor, counted in this Policy's Processors
	// tried says that the waiter keeps a processor, that the waiter's last yield took long, and
	// that the waiter has not polled since.
	tried bool
	next  time.Duration // time of the next yield, counted from start
}

// spinForIssue is how long a waiter spins if the work has not been issued yet, so that there is no
// device to poll. A communicator's thread takes about that long to issue a group.
const spinForIssue = 50 * time.Microsecond

const (
	// slowYield is the least time of a yield that counts as slow. It is many times the cost of a
	// yield on a goroutine that is not locked to its thread.
	slowYield = Slice / 50
	// keepAgainAfter is the number of slow yields after which waiters try again to keep a
	// processor.
	keepAgainAfter = 64
)

// Again is called after a poll that found nothing done. It returns true if the caller must poll
// again, and yields first if a yield is due. It returns false if the caller must park. p is the
// Policy of the polled device, or the one with the longest Spin if there are several devices. p is
// nil if there is no device to poll yet but soon will be.
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
		w.leave() // the waiter no longer stands in for the Poller of another device
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

// yield calls Clock.Yield if that is due. On a goroutine that is locked to its thread, one yield
// may take more time than several operations of a device. So if yields are slow, and not too many
// processors are kept (see Processors), a waiter keeps its processor: it yields only once in the
// time Slice.
//
// But a yield may also be slow because other goroutines run meanwhile, and the wait may depend on
// them. This is the likely reason if a wait on a kept processor ends right after a yield. Then
// waiters yield after each poll again, until more than keepAgainAfter of the yields that they
// measure were slow.
func (w *Waiter) yield(p *Policy, clock Clock, past time.Duration) {
	if w.keeps == nil && p.keep.Load() == 1 && p.Processors.keep(briefKeep) {
		w.keeps = p
		w.next = max(w.next, Slice)
	}
	if w.keeps != nil && past < w.next {
		return
	}
	clock.Yield()
	// A waiter that keeps no processor measures only every eighth yield, because reading the clock
	// takes as long as a yield.
	if w.keeps == nil && w.rounds%8 != 1 {
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

// Asked returns the number of polls that found nothing done.
func (w *Waiter) Asked() int { return w.rounds }

// Stands reports whether the waiter stands in for a Poller.
func (w *Waiter) Stands() bool { return w.stands != nil }

// End must be called when the wait is over or the goroutine parks.
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
