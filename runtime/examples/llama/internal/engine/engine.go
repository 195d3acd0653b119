// Package engine serves many requests with one model: it decides which sequences take part in each
// step (continuous batching).
//
// Requests wait in a queue, first come, first served. The first one starts when a slot is free and
// the cache has enough free pages for its prompt and for all tokens that it may get. So a running
// sequence never lacks memory. A step has at most one chunk of one prompt, and decodes one token of
// each sequence whose prompt is done. The engine queues each step before it reads the tokens of the
// previous step, so the device does not wait for the host.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

var (
	// ErrBusy means that the queue is full. The client may try again later.
	ErrBusy = errors.New("too many requests are waiting")
	// ErrInvalid means that the model cannot serve the request, now or later.
	ErrInvalid = errors.New("invalid request")
	// ErrClosed means that Shutdown was called.
	ErrClosed = errors.New("the engine is shutting down")
	// ErrBroken means that the model can run no more steps, for example because a device is lost.
	ErrBroken = errors.New("the model has failed")
)

// A Request asks for the tokens that follow a prompt.
type Request struct {
	Prompt    []int32
	MaxTokens int // the largest number of tokens to return
	Sampling  model.Sampling
	Stop      []int32 // tokens that end the sequence; they are not returned
}

// Options configure an engine.
type Options struct {
	Queue int // the largest number of waiting requests; 0 means 256
}

// An Engine serves requests. Its methods may be called concurrently.
type Engine struct {
	runner model.Runner
	info   model.Info
	queue  int           // the largest number of waiting requests
	news   chan struct{} // has an element if the loop must look at the fields below
	ended  chan struct{} // closed at the end of the loop
	stop   func()        // makes the loop end at once

	mu      sync.Mutex // protects the following fields
	waiting []*sequence
	closed  error // why new requests are refused; nil while they are accepted
	stats   Stats
}

// A sequence is a request and its state. Only the engine's loop uses the field slot and the fields
// below.
type sequence struct {
	Request
	ctx      context.Context
	accepted time.Time
	tokens   chan int32 // has room for all tokens, so the loop never waits for a reader
	err      error      // why the sequence failed; set before tokens is closed

	slot   int
	pages  []int32
	fed    int       // tokens of the prompt in the steps queued so far
	issued int       // tokens that the steps queued so far compute for the sequence
	read   int       // tokens sent to the channel
	latest time.Time // when the latest token was sent
	ended  bool      // tokens of steps still in flight are dropped
}

// New returns an engine that runs its steps on a model. Shutdown ends the engine. The caller closes
// the model afterwards.
func New(r model.Runner, o Options) *Engine {
	if o.Queue == 0 {
		o.Queue = 256
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Engine{
		runner: r, info: r.Info(), queue: o.Queue, stop: stop,
		news: make(chan struct{}, 1), ended: make(chan struct{}), stats: newStats(),
	}
	e.stats.Pages = e.info.Pages
	go func() {
		defer close(e.ended)
		newSchedule(e).run(ctx)
	}()
	return e
}

// Info describes the model.
func (e *Engine) Info() model.Info { return e.info }

// Generate returns the tokens of a request, one by one. If there is an error, it is the last value.
// If the reader leaves the loop early or the context ends, the request is cancelled, and its pages
// are free before the engine begins to make another step. A slow reader delays no other request:
// its tokens wait in a buffer.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[int32, error] {
	return func(yield func(int32, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // makes the engine's loop end the sequence
		s, err := e.submit(ctx, r)
		if err != nil {
			yield(0, err)
			return
		}
		defer e.abandon(s)
		for {
			select {
			case token, ok := <-s.tokens:
				if ok && yield(token, nil) {
					continue
				}
				if !ok && s.err != nil {
					yield(0, s.err)
				}
			case <-ctx.Done():
				yield(0, context.Cause(ctx))
			}
			return
		}
	}
}

// submit puts a request into the queue.
func (e *Engine) submit(ctx context.Context, r Request) (*sequence, error) {
	err := e.check(&r)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
	case e.closed != nil:
		err = e.closed
	case len(e.waiting) >= e.queue:
		err = ErrBusy
	}
	if err != nil {
		e.stats.Refused++
		return nil, err
	}
	s := &sequence{Request: r, ctx: ctx, accepted: time.Now(), tokens: make(chan int32, r.MaxTokens)}
	e.waiting = append(e.waiting, s)
	e.wake()
	return s, nil
}

// check returns an error for a request that the model can never serve.
func (e *Engine) check(r *Request) error {
	n, m := len(r.Prompt), r.MaxTokens
	switch p := r.Sampling; {
	case n == 0:
		return fmt.Errorf("%w: the prompt is empty", ErrInvalid)
	case m < 1:
		return fmt.Errorf("%w: %d tokens are asked for: it must be 1 or more", ErrInvalid, m)
	case n > e.info.MaxTokens || m > e.info.MaxTokens-n:
		return fmt.Errorf("%w: the prompt of %d tokens and %d further tokens are longer than the model's %d", ErrInvalid, n, m, e.info.MaxTokens)
	case e.pagesFor(r) > e.info.Pages:
		return fmt.Errorf("%w: %d tokens do not fit into the cache, which has room for %d", ErrInvalid, n+m, e.info.Pages*e.info.PageTokens)
	case !(p.Temperature >= 0 && p.Temperature <= 100), !(p.TopP >= 0 && p.TopP <= 1), p.TopK < 0:
		return fmt.Errorf("%w: temperature %v, top-p %v or top-k %d is out of range", ErrInvalid, p.Temperature, p.TopP, p.TopK)
	}
	for _, t := range r.Prompt {
		if t < 0 || int(t) >= e.info.Vocab {
			return fmt.Errorf("%w: token %d of the prompt is not in the vocabulary of %d", ErrInvalid, t, e.info.Vocab)
		}
	}
	return nil
}

// pagesFor returns the number of pages that a request needs.
func (e *Engine) pagesFor(r *Request) int {
	return (len(r.Prompt) + r.MaxTokens + e.info.PageTokens - 1) / e.info.PageTokens
}

// abandon takes a sequence from the queue if it still waits. The engine's loop ends a sequence that
// is running.
func (e *Engine) abandon(s *sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.waiting, s); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.stats.Cancelled++
	}
	e.wake()
}

// wake makes the loop look at the queue.
func (e *Engine) wake() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// Shutdown refuses new requests, and waits until the accepted ones have ended. If the context ends
// first, Shutdown fails the accepted requests and returns the context's error.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	if e.closed == nil {
		e.closed = ErrClosed
	}
	e.mu.Unlock()
	e.wake()
	defer e.stop()
	select {
	case <-e.ended:
		return nil
	case <-ctx.Done():
		e.stop()
		<-e.ended
		return ctx.Err()
	}
}

// Err returns nil, or the reason why the engine takes no requests.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Stats returns a snapshot.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Waiting = len(e.waiting)
	for _, h := range []*Histogram{&s.Batch, &s.FirstToken, &s.NextToken} {
		h.Counts = slices.Clone(h.Counts)
	}
	return s
}
