package wake

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a clock on which each reading takes a microsecond. Yields take a set time, and naps and
// timers take exactly their duration.
type fake struct {
	now    time.Time
	yield  time.Duration // duration of a yield
	yields int
	naps   []time.Duration
	sleeps []time.Duration
	cannot bool // Nap returns false
}

func newFake() *fake { return &fake{now: time.Now()} }

func (f *fake) Now() time.Time {
	f.now = f.now.Add(time.Microsecond)
	return f.now
}

func (f *fake) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

func (f *fake) Still(time.Time) bool { return false }

func (f *fake) Yield() {
	f.yields++
	f.now = f.now.Add(f.yield)
}

func (f *fake) Nap(d time.Duration) bool {
	if f.cannot {
		return false
	}
	f.naps = append(f.naps, d)
	f.now = f.now.Add(d)
	return true
}

func (f *fake) Sleep(d time.Duration, wake <-chan struct{}) bool {
	select {
	case <-wake:
		return true
	default:
	}
	f.sleeps = append(f.sleeps, d)
	f.now = f.now.Add(d)
	return false
}

func processors(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestStill checks that Still recognizes a synctest bubble, also after the bubble's time has
// advanced.
func TestStill(t *testing.T) {
	still := func(want bool) {
		t.Helper()
		if got := (System{}).Still(time.Now()); got != want || Bubbled() != want {
			t.Errorf("time stands still: %t, %t, want %t", got, Bubbled(), want)
		}
	}
	still(false)
	synctest.Test(t, func(*testing.T) {
		still(true)
		time.Sleep(100 * 365 * 24 * time.Hour)
		still(true)
	})
	still(false)
}
