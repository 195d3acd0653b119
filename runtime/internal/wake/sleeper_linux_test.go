package wake

import (
	"runtime"
	"testing"
	"time"
)

func TestSleeper(t *testing.T) {
	t.Run("no waiter keeps sleeping", func(t *testing.T) {
		processors(t, 8)
		const n = 20000
		s, of := sleeper{limit: time.Hour}, new(Processors)
		wake, seen := make(chan struct{}, 1), make(chan bool)
		go func() {
			for range n {
				seen <- s.sleep(wake, of)
			}
		}()
		for i := range n {
			if i%1000 == 0 {
				// Sometimes wait until the thread sleeps; mostly it is only about to sleep.
				for s.word.Load() == 0 {
					runtime.Gosched()
				}
			}
			Nudge(wake)
			s.rouse()
			if !<-seen {
				t.Fatal("it did not sleep")
			}
		}
		if n := of.Kept(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
	t.Run("no waiter sleeps for long", func(t *testing.T) {
		processors(t, 8)
		of := new(Processors)
		if new(sleeper).sleep(make(chan struct{}), of) {
			t.Error("it was woken")
		}
		if n := of.Kept(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
	t.Run("few sleep", func(t *testing.T) {
		processors(t, 3)
		of := new(Processors)
		if new(sleeper).sleep(nil, of) {
			t.Error("it slept, of three processors")
		}
		if n := of.Kept(); n != 0 {
			t.Errorf("%d processors are kept", n)
		}
	})
}
