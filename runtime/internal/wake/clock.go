package wake

import (
	"runtime"
	"time"
)

// A Clock tells the time and sleeps. Tests use clocks of their own.
type Clock interface {
	Now() time.Time
	Since(t time.Time) time.Duration // takes half as long as Now
	// Still reports whether time stands still while a goroutine runs, as in a testing/synctest
	// bubble. The argument now is a result of the method Now.
	Still(now time.Time) bool
	Yield() // like runtime.Gosched
	// Nap blocks the OS thread for d. It returns false, without blocking, if the system cannot
	// sleep for less than a millisecond.
	Nap(d time.Duration) bool

	// Sleep blocks for d, or until it receives from wake. The result woken reports whether Sleep
	// has received.
	Sleep(d time.Duration, wake <-chan struct{}) (woken bool)
}

// System is the Clock that uses package time.
type System struct{}

func (System) Now() time.Time { return time.Now() }

func (System) Since(t time.Time) time.Duration { return time.Since(t) }

// Still recognizes a testing/synctest bubble: in a bubble, the argument now has no monotonic clock
// reading.
func (System) Still(now time.Time) bool { return now == now.Round(0) }

func (System) Yield() { runtime.Gosched() }

func (System) Nap(d time.Duration) bool {
	if canNap {
		nap(d)
	}
	return canNap
}

// Sleep uses a timer. On Linux, Go timers fire up to a millisecond late while the process is idle.
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

// Bubbled reports whether the caller runs in a testing/synctest bubble. A channel made in a bubble
// must not be used outside of it.
func Bubbled() bool { return System{}.Still(time.Now()) }

// known returns c, or System if c is nil.
func known(c Clock) Clock {
	if c == nil {
		return System{}
	}
	return c
}
