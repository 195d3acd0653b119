package wake

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPauses checks the pauses between polls: none at first, then growing naps, and finally timers.
func TestPauses(t *testing.T) {
	wake := make(chan struct{}, 1)
	c := newFake()
	p := Pauses{Clock: c, Poll: 10 * time.Millisecond, Nap: longNap}
	start := c.now
	for n := 0; len(c.naps) == 0; n++ {
		if without := p.Without(); without != (n > 0) {
			t.Fatalf("round %d is without a pause: %t", n, without)
		}
		if p.Pause(wake) {
			t.Fatal("woken by nobody")
		}
	}
	if past := c.now.Sub(start); past < p.Poll || past > p.Poll+time.Millisecond || c.yields < 1000 || p.Without() {
		t.Errorf("%v without a pause, %d yields, and so on: %t", past, c.yields, p.Without())
	}
	for len(c.sleeps) == 0 {
		p.Pause(wake)
	}
	if past := c.now.Sub(start); past < 1024*longNap || past > 1100*longNap {
		t.Errorf("it naps for %v", past)
	}
	for i, d := range c.naps {
		if d < shortest || d > longNap || i > 0 && d < c.naps[i-1] {
			t.Fatalf("a nap of %v", d)
		}
	}
	if c.sleeps[0] != longest {
		t.Errorf("then it sleeps for %v", c.sleeps[0])
	}
	p.Reset()
	if p.Began() || p.Pause(wake) || !p.Without() {
		t.Error("it does not begin anew")
	}
}

// TestPausesWoken sends to the channel before a pause. The pause must report the receipt, both with
// a nap and with a timer.
func TestPausesWoken(t *testing.T) {
	wake := make(chan struct{}, 1)
	for _, c := range []*fake{newFake(), {now: time.Now(), cannot: true}} {
		p := Pauses{Clock: c, Nap: longNap}
		for range 3 {
			Nudge(wake)
			if !p.Pause(wake) || len(wake) != 0 {
				t.Error("not woken")
			}
			if p.Pause(wake) {
				t.Error("woken by nobody")
			}
		}
		if c.cannot != (len(c.naps) == 0) || c.yields > 0 {
			t.Errorf("%d naps and %d timers of a thread that cannot nap: %t", len(c.naps), len(c.sleeps), c.cannot)
		}
	}
}

// TestPausesStill checks that pauses in a synctest bubble are few and use timers.
func TestPausesStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := Pauses{Nap: longNap}
		for range 10 {
			p.Pause(make(chan struct{}))
		}
		if d := time.Since(start); d < 10*shortest {
			t.Errorf("ten pauses took %v", d)
		}
		start = time.Now()
		p = Pauses{Poll: time.Hour, Nap: longNap}
		pauses := 0
		for ; time.Since(start) < time.Minute; pauses++ {
			p.Pause(make(chan struct{}))
		}
		if pauses > 2000 {
			t.Errorf("%d pauses in a minute", pauses)
		}
	})
}

// TestPausesPass checks that a pause takes time.
func TestPausesPass(t *testing.T) {
	for _, p := range []Pauses{{Nap: longNap}, {}} {
		start := time.Now()
		if p.Pause(nil) || time.Since(start) == 0 {
			t.Error("a pause took no time, or nobody woke it")
		}
	}
}

// TestUntil checks that a wait ends when a condition holds or the context ends.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := 0
		if !Until(ctx, func() bool { n++; return n == 100 }) || n != 100 || ctx.Err() != nil {
			t.Errorf("%d times", n)
		}
		if Until(ctx, func() bool { return false }) || ctx.Err() == nil {
			t.Error("the context has not ended")
		}
		if !Until(ctx, func() bool { return true }) {
			t.Error("it holds, though the context has ended")
		}
	})
}

// TestLock checks that Lock gives up when the context ends, and that Lock succeeds as soon as the
// holder has unlocked the mutex.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		mu.Lock()
		time.AfterFunc(time.Hour, mu.Unlock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if Lock(ctx, &mu) || ctx.Err() == nil {
			t.Error("Lock took a mutex that is held")
		}
		start := time.Now()
		if !Lock(t.Context(), &mu) || mu.TryLock() {
			t.Error("it is not locked")
		}
		if took := time.Since(start); took < 58*time.Minute || took > time.Hour {
			t.Errorf("it took %v", took)
		}
	})
}
