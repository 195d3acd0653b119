package wake

import (
	"runtime"
	"time"
)

// A Clock tells the time and lets it pass.
type Clock interface {
	Now() time.Time
	Since(t time.Time) time.Duration                          // takes half as long as Now
	Still(now time.Time) bool                                 // time passes only while nobody runs
	Yield()                                                   // lets other goroutines run
	Nap(d time.Duration) bool                                 // has the thread sleep, and is false where it cannot for less than a millisecond
	Sleep(d time.Duration, wake <-chan struct{}) (woken bool) // waits for so long, or to be woken
}

// System is Go's clock.
type System struct{}

func (System) Now() time.Time { return time.Now() }

func (System) Since(t time.Time) time.Duration { return time.Since(t) }

// Still knows a bubble of testing/synctest by its times, which lack the reading of the monotonic clock that others have.
func (System) Still(now time.Time) bool { return now == now.Round(0) }

func (System) Yield() { runtime.Gosched() }

func (System) Nap(d time.Duration) bool {
	if canNap {
		nap(d)
	}
	return canNap
}

// Sleep takes a timer, which on Linux is late by up to a millisecond if the process has nothing else to do.
func (System) Sleep(d time.Duration, wake <-chan struct{}) (woken bool) {
	t := time.NewTimer(d)
	select {
	case <-wake:
		t.Stop()
		return true
	case <-t.C:
		return false
	}
}

// Bubbled reports whether the caller is in a bubble of testing/synctest. What it makes there must not be used outside.
func Bubbled() bool { return System{}.Still(time.Now()) }

// known returns Go's clock for none.
func known(c Clock) Clock {
	if c == nil {
		return System{}
	}
	return c
}
