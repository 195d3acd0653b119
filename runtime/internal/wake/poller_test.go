package wake

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestPoller checks that the poller polls only while a goroutine has parked.
func TestPoller(t *testing.T) {
	t.Run("keeps the device", func(t *testing.T) { testPoller(t, false) })
	t.Run("lets go of an idle device", func(t *testing.T) { testPoller(t, true) })
}

func testPoller(t *testing.T, letsGo bool) {
	synctest.Test(t, func(t *testing.T) {
		var parked, asked atomic.Int32
		p := newPolicy(nil)
		p.Parked = func() bool { return parked.Load() > 0 }
		poller := NewPoller(letsGo)
		polled := &Polled{p, func(again bool) (bool, bool) {
			switch n := asked.Add(1); {
			case n%10 == 0:
				parked.Add(-1)
				return true, true
			default:
				if again != (n%10 > 1) {
					t.Errorf("round %d again: %t", n, again)
				}
				return false, n%10 != 5
			}
		}}
		go poller.Run()
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("%d rounds for nobody", n)
		}
		for i := range int32(3) {
			parked.Add(1)
			poller.Signal(polled)
			synctest.Wait()
			if n := asked.Load(); n != 10*(i+1) || parked.Load() != 0 {
				t.Errorf("%d polls for %d parked goroutines", n, i+1)
			}
		}
		poller.Stop()
	})
}
