package gpu

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience waits between rounds of asking: not at all, then for moments without a timer where the system has that, and with
// timers in the end, and where time stands still while a thread sleeps; and ends a wait when woken.
func TestPatience(t *testing.T) {
	wake := make(chan struct{}, 1)
	var p patience
	for range maxRounds - 1 {
		if p.pause(time.Hour, 0, longNap, wake) {
			t.Fatal("woken by nobody")
		}
	}
	if now := time.Now(); now.Sub(p.since) > time.Minute || p.still {
		t.Errorf("%v without a pause, still %v", now.Sub(p.since), p.still)
	}
	for range 3 { // too many rounds, so it pauses
		start := time.Now()
		if p.pause(time.Hour, 0, longNap, wake) {
			t.Error("woken by nobody")
		}
		if d := time.Since(start); canNap && d == 0 || p.still {
			t.Errorf("a pause took %v, still %v", d, p.still)
		}
	}
	for _, past := range []time.Duration{0, time.Hour} { // napping, and not
		nudge(wake)
		p.since = time.Now().Add(-past)
		for !p.pause(-1, 0, longNap, wake) { // a nap ends by itself
			t.Error("not woken")
		}
		if len(wake) != 0 {
			t.Error("to be woken again")
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var p patience
		start := time.Now()
		for range 10 {
			p.pause(-1, 0, longNap, make(chan struct{}))
		}
		if d := time.Since(start); d < 9*shortest {
			t.Errorf("ten pauses took %v of the bubble's time", d)
		}
		pauses := 0
		for ; time.Since(start) < time.Minute; pauses++ {
			p.pause(-1, 0, longNap, make(chan struct{}))
		}
		if pauses > 2000 {
			t.Errorf("%d pauses in a minute of the bubble's time", pauses)
		}
	})
	p = patience{still: true}
	p.pause(-1, 0, 0, wake)
	p.since = time.Now().Add(-time.Hour)
	for range 2 * bubbleExact {
		start := time.Now()
		p.pause(-1, 0, 0, wake)
		if d := time.Since(start); p.exact > 1 || d >= bubbleLongest && p.exact > 0 {
			t.Errorf("a pause took %v outside of a bubble, which looks like one", d)
		}
	}
}
