package wake

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestThreadLingers checks how long a thread lingers, and that it lingers longer while it polls for
// a waiting goroutine.
func TestThreadLingers(t *testing.T) {
	processors(t, 8)
	c := newFake()
	p := newPolicy(c)
	th := NewThread(p)
	lingers := func(ask func() bool) time.Duration {
		start := c.now
		th.Wait(true, func() bool {
			if !th.Attends() || p.Processors.Kept() != 1 {
				t.Error("it does not attend, or keeps no processor")
			}
			return ask()
		})
		if th.Attends() || p.Processors.Kept() != 0 || th.Rests() {
			t.Error("it attends still, keeps a processor, or rests")
		}
		return c.now.Sub(start)
	}
	if d := lingers(func() bool { return false }); d < 4*p.Spin || d > 5*p.Spin {
		t.Errorf("it lingers for %v", d)
	}
	if d := lingers(func() bool { return true }); d < p.Poll || d > p.Poll+p.Spin {
		t.Errorf("it polls for %v", d)
	}
	n := 0
	if d := lingers(func() bool { n++; return n < 64 }); d < 4*p.Spin || d > 6*p.Spin {
		t.Errorf("it lingers for %v after its last poll", d)
	}
	th.Signal()
	if d := lingers(func() bool { return false }); d > 2*time.Microsecond {
		t.Errorf("it lingers for %v though it has been signalled", d)
	}
	processors(t, 1)
	start := c.now
	if th.Wait(true, nil); c.now.Sub(start) > 2*time.Microsecond {
		t.Error("it lingers on the only processor")
	}
}

// TestThreadParks checks that a thread parks if it neither lingers nor sleeps, and that Signal
// wakes the thread.
func TestThreadParks(t *testing.T) {
	processors(t, 1)
	for _, p := range []*Policy{newPolicy(nil), {Spin: -1}} {
		th := NewThread(p)
		woken := make(chan struct{})
		go func() {
			th.Wait(false, nil)
			close(woken)
		}()
		for !th.Parked() {
			runtime.Gosched()
		}
		th.Signal()
		<-woken
		if th.Rests() {
			t.Error("it rests still")
		}
	}
	synctest.Test(t, func(t *testing.T) {
		th := NewThread(newPolicy(nil))
		go th.Wait(true, nil)
		synctest.Wait()
		if !th.Parked() {
			t.Error("it does not park where time stands still")
		}
		th.Signal()
	})
}
