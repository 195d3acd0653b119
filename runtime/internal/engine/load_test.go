package engine

import "testing"

// TestLoadWhilePassing checks Timeline.Load while another goroutine issues and completes work one
// by one.
func TestLoadWhilePassing(t *testing.T) {
	tl, end, done := NewTimeline(new(Device), nil), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			default:
				tl.passed.Store(tl.issued.Add(1))
			}
		}
	}()
	for range 2_000_000 { // so that most likely Load is interrupted at least once between its two atomic reads
		before := tl.passed.Load()
		if n, issued := tl.Load(), tl.issued.Load(); n > issued-before {
			t.Errorf("%d in flight; from the %dth on %d have been issued", n, before, issued)
			break
		}
	}
	close(end)
	<-done
}
