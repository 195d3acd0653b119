package wake

import (
	"context"
	"sync/atomic"
)

// A Count counts calls or work in progress. One goroutine at a time may wait until the count is 0.
// The zero Count is 0.
type Count struct {
	n    atomic.Int64
	none atomic.Pointer[chan struct{}] // wakes the goroutine in Wait
}

// Add adds n, which may be negative.
func (c *Count) Add(n int) {
	if c.n.Add(int64(n)) == 0 {
		if none := c.none.Load(); none != nil {
			Nudge(*none)
		}
	}
}

// Load returns the count.
func (c *Count) Load() int { return int(c.n.Load()) }

// Wait blocks until the count is 0. If the count grows meanwhile, Wait waits for that too. It
// returns false if the context ends first.
func (c *Count) Wait(ctx context.Context) bool {
	none := make(chan struct{}, 1)
	for c.none.Store(&none); c.n.Load() != 0; {
		select {
		case <-none:
		case <-ctx.Done():
			return c.n.Load() == 0
		}
	}
	return true
}
