package wake

import (
	"runtime"
	"time"
)

// A Clock returns the time and waits for time to pass. Tests replace it.
type Clock interface {
	Now() time.Time
	Since(t time.Time) time.Duration // costs half as much as Now
	Still(now time.Time) bool        // time passes only while no goroutine runs, as in a bubble
	Yield()                          // lets other goroutines run
	Nap(d time.Duration) bool        // blocks the thread for d; false if no nap is that short

	// Sleep waits for d, or until wake can be received from. Then woken is true.
	Sleep(d time.Duration, wake <-chan struct{}) (woken bool)
}

// System is Go's clock.
type System struct{}

func (System) Now() time.Time { return time.Now() }

func (System) Since(t time.Time) time.Duration { return time.Since(t) }

// Still recognizes a testing/synctest bubble by now: times in a bubble have no monotonic clock
// reading.
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

// Bubbled reports whether the caller is in a testing/synctest bubble. Channels made in a bubble
// must not be used outside.
func Bubbled() bool { return System{}.Still(time.Now()) }

// known returns c, or Go's clock if c is nil.
func known(c Clock) Clock {
	if c == nil {
		return System{}
	}
	return c
}
