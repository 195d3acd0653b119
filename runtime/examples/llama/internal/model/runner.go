package model

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Runner runs plans in the order of the calls of Run. Its methods may be called by one goroutine
// at a time. The functions that Run returns may be called by any goroutine.
type Runner interface {
	Info() Info

	// Run queues the plan and does not wait for it. When the function done returns nil, tokens[i]
	// is the token of Decode[i], and tokens[len(Decode)] is the token of Chunk if Chunk.Last is
	// set. Until then the caller must not touch tokens. The plan itself may change as soon as Run
	// returns. If done's context ends, the plan still runs.
	//
	// An error that wraps [ErrPlan] means that the plan was wrong and nothing was queued. After any
	// other error, of Run or of done, the runner is broken and can only be closed.
	Run(p Plan, tokens []int32) (done func(context.Context) error, err error)

	// Close waits for the plans that run, and frees the runner's memory.
	Close() error
}

// NewTeam returns a runner that runs each plan on all shards of one model, in tensor parallelism.
// The tokens are those of the first shard. Closing the team closes the shards.
func NewTeam(shards ...Runner) Runner {
	if len(shards) == 1 {
		return shards[0]
	}
	return &team{shards: shards}
}

type team struct {
	shards []Runner
	broken error
	spare  sync.Pool // of *[MaxRows + 1]int32: tokens that nobody reads
}

// Info returns the first shard's Info, with the least Slots, Pages and MaxTokens of all shards.
func (t *team) Info() Info {
	least := t.shards[0].Info()
	for _, s := range t.shards[1:] {
		i := s.Info()
		least.Slots = min(least.Slots, i.Slots)
		least.Pages = min(least.Pages, i.Pages)
		least.MaxTokens = min(least.MaxTokens, i.MaxTokens)
	}
	return least
}

func (t *team) Run(p Plan, tokens []int32) (func(context.Context) error, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	if err := p.check(t.Info(), len(tokens)); err != nil {
		return nil, err
	}
	// While the device of one shard waits for another's, calls of the driver may take long. So all
	// shards of this process make their recordings before any begins the plan.
	for i, s := range t.shards {
		if s, ok := s.(*Shard); ok {
			if err := s.prepare(p); err != nil {
				t.broken = fmt.Errorf("model: shard %d of %d: %w", i, len(t.shards), err)
				return nil, t.broken
			}
		}
	}
	waits := make([]func(context.Context) error, len(t.shards))
	for i, s := range t.shards {
		to := tokens
		var spare *[MaxRows + 1]int32
		if i > 0 {
			spare, _ = t.spare.Get().(*[MaxRows + 1]int32)
			if spare == nil {
				spare = new([MaxRows + 1]int32)
			}
			to = spare[:p.Tokens()]
		}
		done, err := s.Run(p, to)
		if i == 0 && errors.Is(err, ErrPlan) {
			return nil, err // the other shards have not seen the plan
		}
		if err != nil { // the shards before shard i have begun, and wait for it in vain
			if errors.Is(err, ErrPlan) { // ErrPlan would say that the team is unharmed
				err = errors.New(err.Error())
			}
			t.broken = fmt.Errorf("model: shard %d of %d: %w", i, len(t.shards), err)
			return nil, t.broken
		}
		waits[i] = func(ctx context.Context) error {
			err := done(ctx)
			if err == nil && spare != nil {
				t.spare.Put(spare)
			}
			return err
		}
	}
	return func(ctx context.Context) error {
		for i, wait := range waits {
			if err := wait(ctx); err != nil {
				return fmt.Errorf("model: shard %d of %d: %w", i, len(waits), err)
			}
		}
		return nil
	}, nil
}

func (t *team) Close() error {
	errs := make([]error, len(t.shards))
	var all sync.WaitGroup
	for i, s := range t.shards { // concurrently, because a shard may wait for the others
		all.Go(func() { errs[i] = s.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}
