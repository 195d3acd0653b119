package simdriver

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestTouchWhileFreed frees memory at the very time at which it is touched first: who touches it gets some all the same.
func TestTouchWhileFreed(t *testing.T) {
	a := &allocation{size: 8}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			a.data.Store(nil) // as a free does
		}
	})
	for range 1000000 {
		if a.touch() == nil {
			t.Error("there is no memory")
			break
		}
	}
	stop.Store(true)
	wg.Wait()
}
