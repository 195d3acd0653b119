package wake

import (
	"runtime"
	"time"
)

// A Clock tells the time and lets it pass. Nap returns false if a thread cannot sleep for less than
// a millisecond.
type Clock interface {
	Now() time.Time
	Since(t time.Time) time.Duration // costs half as much as Now
	Still(now time.Time) bool        // time passes only while no goroutine runs
	Yield()                          // lets other goroutines run
	Nap(d time.Duration) bool        // sleeps in the thread; false if it cannot

	// Sleep waits for d, or until woken.
	Sleep(d time.Duration, wake <-chan struct{}) (woken bool)
}

// System is Go's clock.
type System struct{}

func (System) Now() time.Time { return time.Now() }

func (System) Since(t time.Time) time.Duration { return time.Since(t) }

// Still recognizes a testing/synctest bubble by its times: they have no monotonic clock reading.
func (System) Still(now time.Time) bool { return now == now.Round(0) }

func (System) Yield() { runtime.Gosched() }

func (System) Nap(d time.Duration) bool {
	if canNap {
		nap(d)
	}
	return canNap
}

// Sleep uses a timer. On Linux it is up to a millisecond late if the process has nothing else to
// do.
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

// Bubbled reports whether the caller is in a testing/synctest bubble. Things made there, such as
// channels, must not be used outside.
func Bubbled() bool { return System{}.Still(time.Now()) }

// known returns c, or Go's clock if c is nil.
func known(c Clock) Clock {
	if c == nil {
		return System{}
	}
	return c
}
