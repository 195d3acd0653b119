package gpu

import (
	"context"
	"sync"
	"time"
)

const (
	closeTime = 10 * time.Second // how long Close may take
	abortTime = 5 * time.Second  // how long in addition, to end the work of a communicator that was aborted
)

// closeInTime makes a Close of a Shutdown.
func closeInTime(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return shutdown(ctx)
}

// A closer closes something once for all who call it.
type closer struct {
	mu     sync.Mutex
	done   chan struct{} // closed when err is set; nil until somebody closes
	giveUp context.CancelCauseFunc
	err    error
}

// A closing is the context of what a closer calls. It ends with the first of the callers' contexts, and has its error.
type closing struct{ context.Context }

func (c closing) Err() error { return context.Cause(c.Context) }

// close calls fn on a goroutine of its own, once, waits for it, and returns its error. After the context has ended it waits for the
// grace period at most, and reports whether fn has returned.
func (c *closer) close(ctx context.Context, fn func(context.Context) error, grace func() time.Duration) (err error, returned bool) {
	if ctx == nil {
		return argument("shutdown", "no context"), true
	}
	c.mu.Lock()
	if c.done == nil {
		c.done = make(chan struct{})
		var all context.Context
		all, c.giveUp = context.WithCancelCause(context.Background())
		go func() {
			defer c.giveUp(nil)
			defer close(c.done)
			c.err = fn(closing{all})
		}()
	}
	c.mu.Unlock()
	select {
	case <-c.done:
		return c.err, true
	case <-ctx.Done():
	}
	c.giveUp(ctx.Err())
	late := time.NewTimer(grace())
	defer late.Stop()
	select {
	case <-c.done:
		return c.err, true
	case <-late.C:
		return nil, false
	}
}
