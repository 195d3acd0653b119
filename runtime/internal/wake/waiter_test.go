package wake

import (
	"testing"
	"testing/synctest"
	"time"
)

// newPolicy returns a Policy with the default times.
func newPolicy(c Clock) *Policy {
	return &Policy{Spin: 50 * time.Microsecond, Poll: 10 * time.Millisecond, Parked: func() bool { return false },
		Processors: new(Processors), Clock: c}
}

// asksFor returns the time that a waiter polls if no work completes.
func asksFor(w *Waiter, p *Policy, c *fake) time.Duration {
	start := c.now
	for w.Again(p) {
	}
	return c.now.Sub(start)
}

// TestWaiterSpins checks how long waiters poll. A waiter that stands in for the Poller polls as
// long as the Poller would. Other waiters poll for a shorter time.
func TestWaiterSpins(t *testing.T) {
	c := newFake()
	within := func(what string, past, want time.Duration) {
		t.Helper()
		if past < want || past > want+5*time.Microsecond {
			t.Errorf("%s polls for %v, want %v", what, past, want)
		}
	}
	p := newPolicy(c)
	var first, second Waiter
	within("the only one", asksFor(&first, p, c), p.Poll)
	if !first.Stands() || !p.Stood() || first.Asked() == 0 {
		t.Error("the waiter does not stand in for the poller")
	}
	within("beside it one", asksFor(&second, p, c), p.Spin)
	first.End()
	second.End()
	if p.Stood() || first.Stands() {
		t.Error("the waiter still stands in for the poller")
	}
	p.Parked = func() bool { return true }
	var third Waiter
	within("beside one who has parked one", asksFor(&third, p, c), p.Spin)
	if p.Stood() || third.Stands() {
		t.Error("the waiter stands in for the poller")
	}
	for _, spin := range []time.Duration{0, -1} {
		if (&Waiter{}).Again(&Policy{Spin: spin, Poll: time.Hour, Clock: c}) {
			t.Error("the waiter polls, but must park at once")
		}
	}
}

// TestWaiterMoves checks that a waiter stands in for one poller at a time.
func TestWaiterMoves(t *testing.T) {
	c := newFake()
	a, b := newPolicy(c), newPolicy(c)
	var w Waiter
	for w.Again(a) && !w.Stands() {
	}
	if !a.Stood() {
		t.Fatal("the waiter does not stand in for the first poller")
	}
	if !w.Again(b) || a.Stood() || !b.Stood() {
		t.Error("the waiter does not stand in for the second poller only")
	}
	if w.End(); b.Stood() {
		t.Error("the waiter still stands in for a poller")
	}
}

// TestWaiterHopes checks that a waiter without a device to poll spins for a moment before it parks.
func TestWaiterHopes(t *testing.T) {
	var w Waiter
	defer w.End()
	start := time.Now()
	for w.Again(nil) {
	}
	if past := time.Since(start); past < spinForIssue {
		t.Errorf("the waiter spins for %v", past)
	}
}

// TestWaiterYields checks that waiters yield after each poll if a yield is cheap.
func TestWaiterYields(t *testing.T) {
	c := newFake()
	p := newPolicy(c)
	var w Waiter
	asksFor(&w, p, c)
	if w.End(); c.yields != w.Asked()-1 || p.Processors.Kept() != 0 {
		t.Errorf("%d yields in %d rounds", c.yields, w.Asked())
	}
}

// TestWaiterKeeps checks that waiters keep their processors for the time Slice if a yield is slow
// and enough processors are left.
func TestWaiterKeeps(t *testing.T) {
	processors(t, 4)
	c := newFake()
	c.yield = 2 * slowYield
	p := newPolicy(c)
	p.Poll = 10 * Slice
	p.keep.Store(1)
	waiters := make([]Waiter, 3)
	for i := range waiters {
		waiters[i].Again(p)
		if keeps := c.yields == 0; keeps != (i < 2) {
			t.Errorf("waiter %d of four processors keeps one: %t", i, keeps)
		}
	}
	for i := range waiters {
		waiters[i].End()
	}
	if n := p.Processors.Kept(); n != 0 {
		t.Errorf("%d processors are kept", n)
	}
	c.yields = 0
	var w Waiter
	start := c.now
	for w.Again(p) && c.yields == 0 {
	}
	if past := c.now.Sub(start) - c.yield; past < Slice || past > Slice+5*time.Microsecond {
		t.Errorf("it yields after %v", past)
	}
	asksFor(&w, p, c)
	if c.yields < 9 || c.yields > 11 || p.Processors.Kept() != 1 {
		t.Errorf("%d yields in %v, and %d processors are kept", c.yields, p.Poll, p.Processors.Kept())
	}
	w.End()
	c.yield = 0
	w = Waiter{}
	asksFor(&w, p, c)
	if p.Processors.Kept() != 0 || p.keep.Load() != 0 {
		t.Error("a waiter keeps its processor although yields are cheap again")
	}
	w.End()
}

// TestWaiterLetsRun checks that waiters go on yielding after each poll, although yields are slow, if
// waits on a kept processor end right after a yield. Only now and then may a waiter keep its
// processor.
func TestWaiterLetsRun(t *testing.T) {
	processors(t, 4)
	c := newFake()
	c.yield = 2 * slowYield
	p := newPolicy(c)
	const n = 1000
	kept := 0
	for range n {
		var w Waiter
		c.yields = 0
		if w.Again(p); c.yields == 0 {
			kept++
		}
		for c.yields == 0 && w.Again(p) {
		}
		w.End()
	}
	if most := n/keepAgainAfter + 1; kept == 0 || kept > most {
		t.Errorf("%d of %d waiters keep their processors, want 1 to %d", kept, n, most)
	}
	// If a wait on a kept processor ends without a yield, waiters keep their processors again.
	kept = 0
	for range n {
		var w Waiter
		if w.Again(p); p.Processors.Kept() > 0 {
			kept++
		}
		w.End()
	}
	if least := n - keepAgainAfter - 2; kept < least {
		t.Errorf("%d of %d waiters keep their processors, want %d", kept, n, least)
	}
}

// TestWaiterStill checks that a waiter parks soon in a synctest bubble.
func TestWaiterStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolicy(nil)
		p.Spin, p.Poll = time.Hour, time.Hour
		p.keep.Store(1)
		var w Waiter
		for w.Again(p) {
		}
		if w.Asked() != stillRounds || w.Stands() || p.Processors.Kept() != 0 {
			t.Errorf("the waiter polls %d times; it stands in for the poller: %t", w.Asked(), w.Stands())
		}
		w.End()
	})
}
