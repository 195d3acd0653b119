package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

// A schedule is the state of the engine's loop, which one goroutine runs.
//
// A sequence's slot and pages are free as soon as it ends, even if steps in flight still use them:
// the model runs the steps in order, so a new sequence writes to the pages later.
type schedule struct {
	*Engine
	slots   []int   // free
	pages   []int32 // free
	running []*sequence
	steps   [2]step // used in turn
	flight  []*step // steps whose tokens are not delivered yet, the oldest first
	turn    int
}

// A step is a plan with the memory that it uses.
type step struct {
	plan   model.Plan
	chunk  model.Chunk
	start  [1]model.Start
	owners []*sequence // the sequences of plan.Decode, then that of plan.Chunk
	tokens []int32
	done   func(context.Context) error
}

func newSchedule(e *Engine) *schedule {
	s := &schedule{Engine: e}
	for i := range min(e.info.Slots, model.MaxRows) {
		s.slots = append(s.slots, i)
	}
	for i := range e.info.Pages {
		s.pages = append(s.pages, int32(i))
	}
	for i := range s.steps {
		s.steps[i].tokens = make([]int32, model.MaxRows+1)
	}
	return s
}

// run runs steps until the engine is closed and idle, the model breaks, or the context ends.
func (s *schedule) run(ctx context.Context) {
	for {
		idle, err := s.turnOver(ctx)
		switch {
		case ctx.Err() != nil:
			s.end(ErrClosed)
			return
		case err != nil:
			s.end(fmt.Errorf("%w: %w", ErrBroken, err))
			return
		case !idle:
			continue
		case s.over():
			return
		}
		select {
		case <-s.news:
		case <-ctx.Done():
		}
	}
}

// over reports whether the engine is closed and no request waits.
func (s *schedule) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed != nil && len(s.waiting) == 0
}

// turnOver queues a step, and delivers the tokens of the step before. It reports whether there was
// nothing to do. After an error the model can run no more steps.
func (s *schedule) turnOver(ctx context.Context) (idle bool, err error) {
	s.sweep()
	s.admit()
	next := &s.steps[s.turn]
	queued := s.fill(next)
	if queued {
		next.done, err = s.runner.Run(next.plan, next.tokens)
		if errors.Is(err, model.ErrPlan) { // only the sequences of this plan fail
			s.fail(next, err)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.flight = append(s.flight, next)
		s.turn = 1 - s.turn
	}
	if len(s.flight) == 0 {
		return true, nil
	}
	if queued && len(s.flight) == 1 {
		return false, nil // the next call queues another step, and then waits for the older one
	}
	first := s.flight[0]
	if err := first.done(ctx); err != nil {
		return false, err
	}
	s.flight = append(s.flight[:0], s.flight[1:]...)
	s.deliver(first)
	return false, nil
}

// admit starts waiting sequences while slots and pages are free. If there are too few pages for the
// first of them, all others wait behind it.
func (s *schedule) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, q := range s.waiting {
		need := s.pagesFor(&q.Request)
		if len(s.slots) == 0 || len(s.pages) < need {
			break
		}
		q.slot = pop(&s.slots, 1)[0]
		q.pages = pop(&s.pages, need)
		s.running = append(s.running, q)
		n++
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
	s.stats.Running, s.stats.PagesUsed = len(s.running), s.info.Pages-len(s.pages)
}

// pop takes elements from the end of a stack.
func pop[T any](stack *[]T, n int) []T {
	at := len(*stack) - n
	top := slices.Clone((*stack)[at:])
	*stack = (*stack)[:at]
	return top
}

// fill makes the next step: a token for each sequence whose prompt is done, and a chunk of the
// first prompt that is not done. It reports whether the step has any work.
func (s *schedule) fill(next *step) bool {
	p := &next.plan
	p.Starts, p.Chunk, p.Decode = nil, nil, p.Decode[:0]
	next.owners = next.owners[:0]
	var prompt *sequence
	for _, q := range s.running {
		switch {
		case q.fed < len(q.Prompt):
			if prompt == nil {
				prompt = q
			}
		case q.issued < q.MaxTokens:
			p.Decode = append(p.Decode, q.slot)
			next.owners = append(next.owners, q)
			q.issued++
		}
	}
	if q := prompt; q != nil {
		if q.fed == 0 {
			next.start[0] = model.Start{Slot: q.slot, Sampling: q.Sampling, Pages: q.pages}
			p.Starts = next.start[:]
		}
		end := min(q.fed+s.info.ChunkTokens, len(q.Prompt))
		next.chunk = model.Chunk{Slot: q.slot, Pos: q.fed, Tokens: q.Prompt[q.fed:end], Last: end == len(q.Prompt)}
		p.Chunk = &next.chunk
		next.owners = append(next.owners, q) // gets a token if this is the prompt's last chunk
		q.fed = end
		if next.chunk.Last {
			q.issued++
		}
	}
	return len(next.owners) > 0
}

// deliver gives the tokens of a completed step to their sequences.
func (s *schedule) deliver(done *step) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(done.plan.Decode); n > 0 {
		s.stats.Batch.add(float64(n))
	}
	if done.plan.Chunk != nil {
		s.stats.PromptTokens += uint64(len(done.chunk.Tokens))
	}
	for i, q := range done.owners[:done.plan.Tokens()] {
		if q.ended {
			s.stats.Dropped++
			continue
		}
		token := done.tokens[i]
		if slices.Contains(q.Stop, token) {
			s.stats.Stopped++
			s.release(q, nil)
			continue
		}
		if q.read == 0 {
			s.stats.FirstToken.add(now.Sub(q.accepted).Seconds())
		} else {
			s.stats.NextToken.add(now.Sub(q.latest).Seconds())
		}
		s.stats.Tokens++
		q.latest = now
		q.tokens <- token // does not block
		if q.read++; q.read == q.MaxTokens {
			s.stats.Complete++
			s.release(q, nil)
		}
	}
}

// sweep ends sequences whose contexts have ended, and removes ended sequences from running.
func (s *schedule) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if err := q.ctx.Err(); err != nil && !q.ended {
			s.stats.Cancelled++
			s.release(q, err)
		}
		return q.ended
	})
}

// fail ends the sequences of a step whose plan the model has refused.
func (s *schedule) fail(refused *step, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range refused.owners {
		s.stats.Failed++
		s.release(q, err)
	}
}

// release closes the sequence's channel, and frees its slot and pages. The next sweep removes the
// sequence from running. The caller holds Engine.mu.
func (s *schedule) release(q *sequence, err error) {
	q.ended, q.err = true, err
	close(q.tokens)
	s.slots = append(s.slots, q.slot)
	s.pages = append(s.pages, q.pages...)
}

// end fails all running and waiting sequences. Method run then returns.
func (s *schedule) end(err error) {
	s.sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = err
	for _, q := range s.running {
		s.release(q, err)
	}
	for _, q := range s.waiting {
		q.ended, q.err = true, err
		close(q.tokens)
	}
	s.stats.Failed += uint64(len(s.running) + len(s.waiting))
	s.stats.Running, s.stats.PagesUsed = 0, 0
	s.running, s.waiting = nil, nil
}
