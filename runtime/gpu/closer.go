package gpu

import (
	"context"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/errs"
)

const (
	closeTime = 10 * time.Second // how long Close may take
	abortTime = 5 * time.Second  // how much longer, to end the work of an aborted communicator
)

// closeInTime calls shutdown with the context of Close.
func closeInTime(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return shutdown(ctx)
}

// A closer closes something once for all callers.
type closer struct {
	// mu protects done and giveUp, which are set once. It is a leaf.
	mu     sync.Mutex
	done   chan struct{} // closed when err is set; nil until somebody closes
	giveUp context.CancelCauseFunc
	err    error
}

// A closing is the context of the function that a closer calls. It ends with the first of the
// callers' contexts, and has its error.
type closing struct{ context.Context }

func (c closing) Err() error { return context.Cause(c.Context) }

// close calls fn once, on a goroutine of its own, waits for it, and returns its error. After the
// context has ended it waits at most grace longer. It reports whether fn has returned.
func (c *closer) close(ctx context.Context, fn func(context.Context) error, grace func() time.Duration) (err error, returned bool) {
	if ctx == nil {
		return errs.Argument("shutdown", "no context"), true
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
