package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/engine"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/fakemodel"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

const vocab = 50

var small = model.Info{Slots: 4, Pages: 20, PageTokens: 4, MaxTokens: 64, ChunkTokens: 8, Vocab: vocab}

// bubble runs a test with an engine on a fake model. Afterwards no goroutine may be left, no page
// used, and no plan wrong.
func bubble(t *testing.T, i model.Info, o engine.Options, test func(t *testing.T, m *fakemodel.Model, e *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := fakemodel.New(i)
		m.Step = func(model.Plan) (time.Duration, error, error) { return time.Millisecond, nil, nil }
		e := engine.New(m, o)
		test(t, m, e)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Waiting != 0 || s.Running != 0 || s.PagesUsed != 0 {
			t.Errorf("at the end %d requests wait, %d run, and %d pages are used", s.Waiting, s.Running, s.PagesUsed)
		}
		if err := m.Err(); err != nil {
			t.Error(err)
		}
	})
}

// collect returns all tokens of a request.
func collect(ctx context.Context, e *engine.Engine, r engine.Request) (tokens []int32, err error) {
	for token, err := range e.Generate(ctx, r) {
		if err != nil {
			return tokens, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// request makes a random request. The request needs at most 10 pages of 4 tokens.
func request(r *rand.Rand) engine.Request {
	q := engine.Request{
		Prompt:    make([]int32, 1+r.IntN(20)),
		MaxTokens: 1 + r.IntN(20),
		Sampling:  model.Sampling{Temperature: float32(r.IntN(2)), TopP: 1, Seed: r.Uint64()},
	}
	for i := range q.Prompt {
		q.Prompt[i] = r.Int32N(vocab)
	}
	if r.IntN(2) == 0 {
		q.Stop = []int32{r.Int32N(vocab), r.Int32N(vocab)}
	}
	return q
}

func want(q engine.Request) []int32 {
	return fakemodel.Answer(q.Prompt, q.Sampling, vocab, q.MaxTokens, q.Stop...)
}

// TestRandom checks the tokens of random requests at random times. Readers cancel some requests,
// leave some early, and read some slowly. With some seeds the model refuses some plans. Each
// request must get the tokens that the model yields for the request alone. A request that ends
// early must get the beginning of these tokens.
func TestRandom(t *testing.T) {
	refused := fmt.Errorf("%w: by the test", model.ErrPlan)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			info := small
			r := rand.New(rand.NewPCG(seed, 1))
			info.Slots, info.Pages, info.ChunkTokens = 1+r.IntN(8), 10+r.IntN(40), 4*(1+r.IntN(4))
			bubble(t, info, engine.Options{Queue: 1000}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
				steps := rand.New(rand.NewPCG(seed, 2))
				m.Step = func(model.Plan) (time.Duration, error, error) {
					if seed%4 == 3 && steps.IntN(20) == 0 {
						return 0, refused, nil
					}
					return time.Duration(steps.IntN(2000)) * time.Microsecond, nil, nil
				}
				var all sync.WaitGroup
				for i := range 150 {
					r := rand.New(rand.NewPCG(seed, uint64(100+i)))
					all.Go(func() {
						time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
						check(t, e, r, refused)
					})
				}
				all.Wait()
				if err := e.Shutdown(t.Context()); err != nil { // cancelled requests may still be in a step
					t.Error(err)
				}
				s := e.Stats()
				if n := s.Stopped + s.Complete + s.Cancelled + s.Failed; n != 150 || s.Refused != 0 {
					t.Errorf("%d requests have ended, and %d were refused; want 150 and 0", n, s.Refused)
				}
				if seed%4 != 3 && s.Failed != 0 {
					t.Errorf("%d requests have failed", s.Failed)
				}
			})
		})
	}
}

func check(t *testing.T, e *engine.Engine, r *rand.Rand, refused error) {
	q := request(r)
	ctx, leave, slow := t.Context(), -1, time.Duration(0)
	switch r.IntN(4) {
	case 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(40))*time.Millisecond)
		defer cancel()
	case 1:
		leave = r.IntN(q.MaxTokens + 1)
	case 2:
		slow = time.Duration(r.IntN(10)) * time.Millisecond
	}
	var got []int32
	var failed error
	for token, err := range e.Generate(ctx, q) {
		if err != nil {
			failed = err
			break
		}
		got = append(got, token)
		if len(got) == leave {
			break
		}
		time.Sleep(slow)
	}
	want := want(q)
	early := len(got) == leave || failed != nil
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || len(got) < len(want) && !early {
		t.Errorf("prompt %v: tokens %v, want %v (error %v)", q.Prompt, got, want, failed)
	}
	if failed != nil && !errors.Is(failed, refused) && !(errors.Is(failed, context.DeadlineExceeded) && ctx.Err() != nil) {
		t.Errorf("prompt %v: error %v", q.Prompt, failed)
	}
}

// TestInvalid checks that requests that the model can never serve are refused.
func TestInvalid(t *testing.T) {
	info := small
	info.Pages = 10 // 40 tokens
	bubble(t, info, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		for name, q := range map[string]engine.Request{
			"no prompt":      {MaxTokens: 1},
			"no tokens":      {Prompt: []int32{1}},
			"negative":       {Prompt: []int32{1}, MaxTokens: -1},
			"too long":       {Prompt: make([]int32, 60), MaxTokens: 5},
			"overflow":       {Prompt: []int32{1}, MaxTokens: 1<<63 - 1},
			"too many pages": {Prompt: make([]int32, 30), MaxTokens: 11},
			"not a token":    {Prompt: []int32{vocab}, MaxTokens: 1},
			"negative token": {Prompt: []int32{-1}, MaxTokens: 1},
			"temperature":    {Prompt: []int32{1}, MaxTokens: 1, Sampling: model.Sampling{Temperature: -1}},
			"top-p":          {Prompt: []int32{1}, MaxTokens: 1, Sampling: model.Sampling{TopP: 1.5}},
			"top-k":          {Prompt: []int32{1}, MaxTokens: 1, Sampling: model.Sampling{TopK: -1}},
		} {
			if tokens, err := collect(t.Context(), e, q); !errors.Is(err, engine.ErrInvalid) || len(tokens) > 0 {
				t.Errorf("%s: tokens %v, error %v", name, tokens, err)
			}
		}
		if q := (engine.Request{Prompt: make([]int32, 30), MaxTokens: 10}); true {
			if got, err := collect(t.Context(), e, q); err != nil || !slices.Equal(got, want(q)) {
				t.Errorf("a request that fills the cache: tokens %v, error %v", got, err)
			}
		}
		if n := e.Stats().Refused; n != 11 {
			t.Errorf("%d requests are refused, want 11", n)
		}
	})
}

// TestBusy checks that a request is refused while the queue is full.
func TestBusy(t *testing.T) {
	info := small
	info.Slots = 1
	bubble(t, info, engine.Options{Queue: 2}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		q := engine.Request{Prompt: []int32{1}, MaxTokens: 20}
		var all sync.WaitGroup
		accepted := func() {
			all.Go(func() {
				if got, err := collect(t.Context(), e, q); err != nil || !slices.Equal(got, want(q)) {
					t.Errorf("tokens %v, error %v", got, err)
				}
			})
			time.Sleep(2 * time.Millisecond)
		}
		for range 3 { // one runs, two wait
			accepted()
		}
		if _, err := collect(t.Context(), e, q); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("error %v, want %v", err, engine.ErrBusy)
		}
		all.Wait()
		accepted()
		all.Wait()
	})
}

// TestCancelWaiting checks that a request in the queue ends at once when it is cancelled, and that
// a later request can take its place.
func TestCancelWaiting(t *testing.T) {
	info := small
	info.Slots = 1
	bubble(t, info, engine.Options{Queue: 1}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		var all sync.WaitGroup
		all.Go(func() { collect(t.Context(), e, engine.Request{Prompt: []int32{1}, MaxTokens: 40}) })
		time.Sleep(3 * time.Millisecond)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			begin := time.Now()
			if _, err := collect(ctx, e, engine.Request{Prompt: []int32{2}, MaxTokens: 1}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
			}
			if d := time.Since(begin); d != 5*time.Millisecond {
				t.Errorf("the cancelled request ended after %v", d)
			}
			cancel()
		}
		all.Wait()
	})
}

// TestOrder checks that requests start first come, first served, even if a later one would fit.
func TestOrder(t *testing.T) {
	bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i, n := range []int{40, 60, 1, 1} { // the second request needs 16 pages, and 9 are free
			all.Go(func() {
				for _, err := range e.Generate(t.Context(), engine.Request{Prompt: []int32{1}, MaxTokens: n}) {
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					if !slices.Contains(order, i) {
						order = append(order, i)
					}
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Errorf("the first tokens came in the order %v", order)
		}
	})
}

// TestSteps checks the number of steps: sequences share them, and each step but the first is queued
// before the tokens of the step before are read.
func TestSteps(t *testing.T) {
	bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { collect(t.Context(), e, engine.Request{Prompt: []int32{int32(i)}, MaxTokens: 16}) })
		}
		all.Wait()
		// One step for each prompt, and 15 steps of all sequences together. There is one more if
		// the requests behind the first came after the second step was queued.
		if n, d := m.Plans(), time.Since(begin); n < 19 || n > 20 || d != time.Duration(n)*time.Millisecond {
			t.Errorf("%d steps in %v, want 19 or 20", n, d)
		}
		s := e.Stats()
		if s.Tokens != 64 || s.PromptTokens != 4 || s.Complete != 4 || s.Dropped != 0 {
			t.Errorf("the engine's stats are %+v", s)
		}
	})
}

// TestSlowReader checks that a reader that stops reading delays no other request.
func TestSlowReader(t *testing.T) {
	bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		slow := engine.Request{Prompt: []int32{1}, MaxTokens: 30}
		var got []int32
		for token, err := range e.Generate(t.Context(), slow) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, token)
			if len(got) == 1 {
				q := engine.Request{Prompt: []int32{2}, MaxTokens: 50}
				if other, err := collect(t.Context(), e, q); err != nil || !slices.Equal(other, want(q)) {
					t.Errorf("tokens %v, error %v", other, err)
				}
			}
		}
		if !slices.Equal(got, want(slow)) {
			t.Errorf("tokens %v, want %v", got, want(slow))
		}
	})
}

// TestBroken checks that all requests, also later ones, fail with the model's error once the model
// has failed.
func TestBroken(t *testing.T) {
	lost := errors.New("the device fell off the bus")
	for name, step := range map[string]func() (error, error){
		"run":  func() (error, error) { return lost, nil },
		"done": func() (error, error) { return nil, lost },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
				left := 10
				m.Step = func(model.Plan) (time.Duration, error, error) {
					if left--; left > 0 {
						return time.Millisecond, nil, nil
					}
					run, done := step()
					return time.Millisecond, run, done
				}
				var all sync.WaitGroup
				for range 7 {
					all.Go(func() {
						q := engine.Request{Prompt: []int32{1}, MaxTokens: 30}
						got, err := collect(t.Context(), e, q)
						if !errors.Is(err, lost) || !errors.Is(err, engine.ErrBroken) || !slices.Equal(got, want(q)[:len(got)]) {
							t.Errorf("tokens %v, error %v", got, err)
						}
					})
				}
				all.Wait()
				if _, err := collect(t.Context(), e, engine.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err, lost) {
					t.Errorf("a later request: %v", err)
				}
				if err := e.Err(); !errors.Is(err, lost) {
					t.Errorf("Err returns %v", err)
				}
			})
		})
	}
}

// TestShutdown checks that accepted requests are served, also those that wait, and that new ones
// are refused.
func TestShutdown(t *testing.T) {
	bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() {
				q := engine.Request{Prompt: []int32{1}, MaxTokens: 20}
				if got, err := collect(t.Context(), e, q); err != nil || !slices.Equal(got, want(q)) {
					t.Errorf("tokens %v, error %v", got, err)
				}
			})
		}
		time.Sleep(3 * time.Millisecond)
		all.Go(func() {
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := collect(t.Context(), e, engine.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("a new request: %v, want %v", err, engine.ErrClosed)
		}
		all.Wait()
	})
}

// TestShutdownRace checks that each request is served or refused if the engine shuts down while a
// client sends one request after the other.
func TestShutdownRace(t *testing.T) {
	q := engine.Request{Prompt: []int32{1}, MaxTokens: 1}
	engines := 3000
	if testing.Short() {
		engines = 300
	}
	for i := range engines {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		e := engine.New(fakemodel.New(small), engine.Options{})
		ended := make(chan error, 1)
		go func() {
			for {
				if _, err := collect(ctx, e, q); err != nil {
					ended <- err
					return
				}
			}
		}()
		for range i % 50 {
			runtime.Gosched()
		}
		if err := e.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, engine.ErrClosed) {
			t.Fatalf("engine %d: the request during Shutdown ended with %v, want %v", i, err, engine.ErrClosed)
		}
		cancel()
	}
}

// TestShutdownDeadline checks that Shutdown fails the requests and returns when its context ends,
// although the model hangs.
func TestShutdownDeadline(t *testing.T) {
	bubble(t, small, engine.Options{}, func(t *testing.T, m *fakemodel.Model, e *engine.Engine) {
		m.Step = func(model.Plan) (time.Duration, error, error) { return time.Hour, nil, nil }
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := collect(t.Context(), e, engine.Request{Prompt: []int32{1}, MaxTokens: 5}); !errors.Is(err, engine.ErrClosed) {
					t.Errorf("error %v, want %v", err, engine.ErrClosed)
				}
			})
		}
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("Shutdown returned %v after %v", err, time.Since(begin))
		}
		all.Wait()
	})
}

// TestAllocations checks that a step of the engine allocates nothing. The fake model allocates, so
// the test compares requests of different lengths on a model that does not.
func TestAllocations(t *testing.T) {
	m := constant{model.Info{Slots: 1, Pages: 1000, PageTokens: 16, MaxTokens: 4096, ChunkTokens: 256, Vocab: 2}}
	e := engine.New(m, engine.Options{})
	defer e.Shutdown(t.Context())
	cost := func(n int) float64 {
		return testing.AllocsPerRun(20, func() {
			for range e.Generate(t.Context(), engine.Request{Prompt: []int32{1}, MaxTokens: n}) {
			}
		})
	}
	if few, many := cost(10), cost(2000); many > few+20 {
		t.Errorf("10 tokens cost %v allocations, 2,000 cost %v", few, many)
	}
}

// constant is a model that always yields token 0 at once.
type constant struct{ info model.Info }

func (c constant) Info() model.Info { return c.info }
func (c constant) Close() error     { return nil }
func (c constant) Run(p model.Plan, tokens []int32) (func(context.Context) error, error) {
	clear(tokens[:p.Tokens()])
	return done, nil
}

func done(context.Context) error { return nil }
