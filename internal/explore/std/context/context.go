// Package context replaces Go's in rewritten programs: deadlines use the virtual clock.
package context

import (
	std "context"
	"errors"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/internal/explore/std/sync"
	"github.com/puregpu/puregpu/internal/explore/std/sync/atomic"
	"github.com/puregpu/puregpu/internal/explore/std/time"
)

type (
	Context         = std.Context
	CancelFunc      = std.CancelFunc
	CancelCauseFunc = std.CancelCauseFunc
)

var (
	Canceled         = std.Canceled
	DeadlineExceeded = std.DeadlineExceeded
)

func Background() Context                          { return std.Background() }
func WithValue(parent Context, key, v any) Context { return std.WithValue(parent, key, v) }

// A cancelCtx is a context that can be canceled or has a deadline.
type cancelCtx struct {
	Context // the parent
	done    chan struct{}
	err     atomic.Pointer[end]

	mu       sync.Mutex
	children []child // in the order of their creation; nil when the context has ended

	deadline    time.Time
	hasDeadline bool
	timer       *time.Timer
}

type end struct{ err, cause error }

type child interface{ parentEnded(*end) }

type key struct{}

func (c *cancelCtx) Value(k any) any {
	if k == any(key{}) {
		return c
	}
	return c.Context.Value(k)
}

func (c *cancelCtx) Done() <-chan struct{} { return c.done }

func (c *cancelCtx) Err() error {
	if e := c.err.Load(); e != nil {
		return e.err
	}
	return nil
}

func (c *cancelCtx) Deadline() (time.Time, bool) {
	if c.hasDeadline {
		return c.deadline, true
	}
	return c.Context.Deadline()
}

func (c *cancelCtx) parentEnded(e *end) { c.end(e) }

func (c *cancelCtx) end(e *end) {
	c.mu.Lock()
	if c.err.Load() != nil {
		c.mu.Unlock()
		return
	}
	c.err.Store(e)
	explore.Close(c.done)
	children := c.children
	c.children = nil
	timer := c.timer
	c.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	for _, x := range children {
		x.parentEnded(e)
	}
}

// cancel ends the context and removes it from its parent.
func (c *cancelCtx) cancel(e *end) {
	c.end(e)
	if p := of(c.Context); p != nil {
		p.drop(c)
	}
}

func (c *cancelCtx) drop(x child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, y := range c.children {
		if x == y {
			c.children = append(c.children[:i:i], c.children[i+1:]...)
			return
		}
	}
}

// of returns the cancelCtx whose end is also the end of c, or nil.
func of(c Context) *cancelCtx {
	p, _ := c.Value(key{}).(*cancelCtx)
	if p != nil && p.done != c.Done() {
		return nil
	}
	return p
}

// join calls x.parentEnded when the parent ends, or at once if the parent has ended.
func join(parent Context, x child) {
	p := of(parent)
	if p == nil {
		if parent.Done() != nil {
			panic(errors.New("explore: the parent is not a context of this package"))
		}
		return
	}
	p.mu.Lock()
	e := p.err.Load()
	if e == nil {
		p.children = append(p.children, x)
	}
	p.mu.Unlock()
	if e != nil {
		x.parentEnded(e)
	}
}

func with(parent Context) *cancelCtx {
	c := &cancelCtx{Context: parent, done: make(chan struct{})}
	join(parent, c)
	return c
}

func WithCancel(parent Context) (Context, CancelFunc) {
	c := with(parent)
	return c, func() { c.cancel(&end{Canceled, Canceled}) }
}

func WithCancelCause(parent Context) (Context, CancelCauseFunc) {
	c := with(parent)
	return c, func(cause error) {
		if cause == nil {
			cause = Canceled
		}
		c.cancel(&end{Canceled, cause})
	}
}

func WithDeadline(parent Context, d time.Time) (Context, CancelFunc) {
	return WithDeadlineCause(parent, d, nil)
}

func WithDeadlineCause(parent Context, d time.Time, cause error) (Context, CancelFunc) {
	if cur, ok := parent.Deadline(); ok && cur.Before(d) {
		return WithCancel(parent)
	}
	c := &cancelCtx{Context: parent, done: make(chan struct{}), deadline: d, hasDeadline: true}
	join(parent, c)
	if cause == nil {
		cause = DeadlineExceeded
	}
	over := func() { c.cancel(&end{DeadlineExceeded, cause}) }
	left := time.Until(d)
	if left <= 0 {
		over()
	} else {
		c.mu.Lock()
		if c.err.Load() == nil {
			c.timer = time.AfterFunc(left, over)
		}
		c.mu.Unlock()
	}
	return c, func() { c.cancel(&end{Canceled, Canceled}) }
}

func WithTimeout(parent Context, d time.Duration) (Context, CancelFunc) {
	return WithDeadline(parent, time.Now().Add(d))
}

func WithTimeoutCause(parent Context, d time.Duration, cause error) (Context, CancelFunc) {
	return WithDeadlineCause(parent, time.Now().Add(d), cause)
}

// Cause returns the reason why a context has ended, or nil if it has not ended.
func Cause(c Context) error {
	if p, _ := c.Value(key{}).(*cancelCtx); p != nil {
		if e := p.err.Load(); e != nil {
			return e.cause
		}
		return nil
	}
	return c.Err()
}

type withoutCancel struct{ Context }

func (withoutCancel) Deadline() (d time.Time, ok bool) { return }
func (withoutCancel) Done() <-chan struct{}            { return nil }
func (withoutCancel) Err() error                       { return nil }
func (c withoutCancel) Value(k any) any {
	if k == any(key{}) {
		return nil
	}
	return c.Context.Value(k)
}

func WithoutCancel(parent Context) Context { return withoutCancel{parent} }

// An after starts a goroutine with the function of AfterFunc when the context has ended.
type after struct {
	f    func()
	once sync.Once
}

func (a *after) parentEnded(*end) { a.once.Do(func() { explore.Go(a.f) }) }

func AfterFunc(ctx Context, f func()) (stop func() bool) {
	a := &after{f: f}
	join(ctx, a)
	return func() bool {
		stopped := false
		a.once.Do(func() { stopped = true })
		if p := of(ctx); p != nil {
			p.drop(a)
		}
		return stopped
	}
}
