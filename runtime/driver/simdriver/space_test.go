package simdriver

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestTouchWhileFreed frees an allocation while touch allocates its memory. touch must return
// memory nevertheless.
func TestTouchWhileFreed(t *testing.T) {
	a := &allocation{size: 8}
	var stop atomic.Bool
	var freed atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			if a.data.Swap(nil) != nil { // frees the memory as bury does
				freed.Add(1)
			}
		}
	})
	for freed.Load() < 100_000 {
		if a.touch() == nil {
			t.Error("there is no memory")
			break
		}
	}
	stop.Store(true)
	wg.Wait()
}
