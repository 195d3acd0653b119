package wake

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestPoller checks that the poller polls only while a goroutine has parked.
func TestPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parked, asked atomic.Int32
		p := newPolicy(nil)
		p.Parked = func() bool { return parked.Load() > 0 }
		poller := NewPoller()
		go poller.Run(p, func(again bool) (bool, bool) {
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
		})
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("%d rounds for nobody", n)
		}
		for i := range int32(3) {
			parked.Add(1)
			poller.Signal()
			synctest.Wait()
			if n := asked.Load(); n != 10*(i+1) || parked.Load() != 0 {
				t.Errorf("%d rounds for %d who parked", n, i+1)
			}
		}
		poller.Stop()
	})
}
