package wake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestCount checks that a wait ends when the count is 0 or the context ends, and not before.
func TestCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Count
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if !c.Wait(ended) {
			t.Error("it waits for nothing")
		}
		for range 3 {
			c.Add(2)
			if c.Wait(ended) || c.Load() != 2 {
				t.Errorf("%d are under way, and the context has ended", c.Load())
			}
			time.AfterFunc(time.Minute, func() { c.Add(-1) })
			time.AfterFunc(time.Hour, func() { c.Add(-1) })
			start := time.Now()
			if !c.Wait(t.Context()) || time.Since(start) != time.Hour || c.Load() != 0 {
				t.Errorf("it waited for %v, and %d are under way", time.Since(start), c.Load())
			}
		}
	})
}

// TestCountAgain repeatedly lowers the count to 0 and raises it again while a goroutine waits. At
// the end the count must be 0.
func TestCountAgain(t *testing.T) {
	var c Count
	c.Add(1)
	go func() {
		for range 10000 {
			c.Add(-1)
			c.Add(1)
		}
		c.Add(-1)
	}()
	for c.Load() != 0 {
		if !c.Wait(t.Context()) {
			t.Fatal("the context has not ended")
		}
	}
}
