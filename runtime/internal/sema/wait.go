package sema

import (
	"context"
	"errors"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// ErrEnded is the error of a wait whose context has ended. Callers replace it with an error that
// names the semaphores.
var ErrEnded = errors.New("gpu: wait: the context has ended")

// Wait blocks until all points are reached or, if all is false, until at least one of them is. It
// returns the lowest index of a point that is reached, or -1. If a semaphore has failed, Wait
// returns the failure, even if other points are reached. If the context ends first, Wait returns
// [ErrEnded]. If the context has already ended, Wait polls the producers once and does not block.
func Wait(ctx context.Context, points []Point, all bool) (index int, err error) {
	if ctx.Err() != nil {
		return pollOnce(points, all)
	}
	if over, index, err := pollUntil(ctx, points, all); over {
		return index, err
	}
	return parkUntil(ctx, points, all)
}

// checkPoints reports whether a wait for points is over. If so, index and err are the results of
// Wait.
func checkPoints(points []Point, all bool) (over bool, index int, err error) {
	short := 0
	index = -1
	for i, p := range points {
		switch now := p.Semaphore.value.Load(); {
		case now == failedValue:
			return true, -1, p.Semaphore.failure.Load().err
		case now < p.Value:
			short++
		case index < 0:
			index = i
		}
	}
	if all {
		return short == 0, index, nil
	}
	return index >= 0 || len(points) == 0, index, nil
}

// pollOnce is like Wait, for a context that has already ended. Programs pass such a context to poll
// without blocking.
func pollOnce(points []Point, all bool) (int, error) {
	for _, p := range points {
		if p.Over() {
			continue
		}
		p.Semaphore.PollFor(p.Value, ByWaiter)
		if !p.Over() { // perhaps work that signals a lower value has failed
			p.Semaphore.pollAll()
		}
	}
	if over, index, err := checkPoints(points, all); over {
		return index, err
	}
	return -1, ErrEnded
}

// pollUntil waits by polling the producers. When the wait is over or the context has ended, it
// returns true and the results of Wait. When the goroutine has polled long enough, or there is
// nothing to poll, it returns false: the goroutine must park.
func pollUntil(ctx context.Context, points []Point, all bool) (over bool, index int, err error) {
	var w wake.Waiter
	defer w.End()
	for {
		if over, index, err := checkPoints(points, all); over {
			return true, index, err
		}
		if ctx.Err() != nil {
			return true, -1, ErrEnded
		}
		by := ByWaiter
		switch {
		case w.Stands():
			by = ByPoller
		case w.Asked() > 0:
			by = ByWaiterAgain
		}
		var policy *wake.Policy
		for _, p := range points {
			if p.Semaphore.flags.Load()&hasSignals != 0 && !p.Over() {
				if asked := p.Semaphore.PollFor(p.Value, by); asked != nil && (policy == nil || asked.Spin > policy.Spin) {
					policy = asked
				}
			}
		}
		if over, index, err := checkPoints(points, all); over {
			return true, index, err
		}
		if policy == nil && !anySoon(points) || !w.Again(policy) {
			return false, -1, nil
		}
	}
}

// anySoon reports whether ExpectSoon was called for the semaphore of one of the points.
func anySoon(points []Point) bool {
	for _, p := range points {
		if p.Semaphore.soon.Load() {
			return true
		}
	}
	return false
}

// parkUntil does the same as Wait, without polling: it registers a timepoint for each point and
// blocks on a channel.
func parkUntil(ctx context.Context, points []Point, all bool) (int, error) {
	e := hostEventFor(points)
	defer e.finish(points)
	for i, p := range points {
		p.Semaphore.Register(p.Value, &e.tps[i], UntilReached)
	}
	for {
		if over, index, err := checkPoints(points, all); over {
			return index, err
		}
		select {
		case <-e.woken:
		case <-ctx.Done():
			if over, index, err := checkPoints(points, all); over {
				return index, err
			}
			return -1, ErrEnded
		}
	}
}

// WaitIssued blocks until work that signals the value has been issued or the value is reached, and
// then returns nil. If the semaphore fails it returns the failure. If the context ends it returns
// [ErrEnded].
func (s *Semaphore) WaitIssued(ctx context.Context, value uint64) error {
	if over, err := s.issued(value); over {
		return err
	}
	if ctx.Err() != nil {
		return ErrEnded
	}
	points := []Point{{s, value}}
	e := hostEventFor(points)
	defer e.finish(points)
	s.Register(value, &e.tps[0], UntilIssued)
	for {
		if over, err := s.issued(value); over {
			return err
		}
		select {
		case <-e.woken:
		case <-ctx.Done():
			if over, err := s.issued(value); over {
				return err
			}
			return ErrEnded
		}
	}
}

// issued reports whether WaitIssued for value may return, and with which error.
func (s *Semaphore) issued(value uint64) (over bool, err error) {
	how, _ := s.Next(value, nil)
	if how == Failed {
		err = s.Failed()
	}
	return how != Unknown, err
}
