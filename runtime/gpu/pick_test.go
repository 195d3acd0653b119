package gpu

import "testing"

// TestPickWhilePassing asks how much a queue has in flight, which is what Pick goes by, while the work is issued and passed one by one.
func TestPickWhilePassing(t *testing.T) {
	q, end, done := &Queue{tl: newTimeline(new(nativeDevice), nil)}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			default:
				q.tl.passed.Store(q.tl.issued.Add(1))
			}
		}
	}()
	for range 10_000_000 { // so many that on a busy machine, too, one is interrupted where it matters
		before := q.tl.passed.Load()
		if n, issued := q.load(), q.tl.issued.Load(); n > issued-before {
			t.Errorf("%d in flight; from the %dth on %d have been issued", n, before, issued)
			break
		}
	}
	close(end)
	<-done
}
