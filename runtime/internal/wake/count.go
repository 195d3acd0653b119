package wake

import (
	"context"
	"sync/atomic"
)

// A Count counts what is under way, and has one goroutine at a time wait until that is nothing. The zero value counts nothing yet.
type Count struct {
	n    atomic.Int64
	none atomic.Pointer[chan struct{}] // of who waits
}

// Add counts n more, or with a negative number less.
func (c *Count) Add(n int) {
	if c.n.Add(int64(n)) == 0 {
		if none := c.none.Load(); none != nil {
			Nudge(*none)
		}
	}
}

// Load returns how much is under way.
func (c *Count) Load() int { return int(c.n.Load()) }

// Wait waits until nothing is under way, also of what begins meanwhile, and reports false if the context ends before.
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
