// Package closer closes things that may take long to close, such as devices and communicators.
package closer

import (
	"context"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/internal/errs"
)

const closeTime = 10 * time.Second // the deadline of Close methods without a context, such as gpu.Device.Close

// InTime is for Close methods without a context: it calls shutdown with a context that ends after
// closeTime.
func InTime(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return shutdown(ctx)
}

// A Closer closes something once for all callers.
type Closer struct {
	// mu protects done and giveUp, which are set once. No other lock is taken while it is held.
	mu     sync.Mutex
	done   chan struct{} // closed when err is set; nil until somebody closes
	giveUp context.CancelCauseFunc
	err    error
}

// A closing is the context that a Closer passes to the function. It ends as soon as the context of
// any caller of Close has ended. Its Err returns the error of that context.
type closing struct{ context.Context }

func (c closing) Err() error { return context.Cause(c.Context) }

// Close calls fn once, on a goroutine of its own, waits for it, and returns its error. After the
// context has ended, Close waits at most for another duration of grace(). The result returned says
// whether fn has returned.
func (c *Closer) Close(ctx context.Context, fn func(context.Context) error, grace func() time.Duration) (err error, returned bool) {
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
