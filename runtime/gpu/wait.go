package gpu

import (
	"context"

	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// anyHopes reports whether something may be about to be issued by a channel's thread.
func anyHopes(points []Point) bool {
	for _, p := range points {
		if p.Semaphore.hopes.Load() {
			return true
		}
	}
	return false
}

// Wait waits until the value is reached, the semaphore fails, or the context ends. If the context has ended already the device is
// asked once, and a value that is reached, or a failure, is reported all the same. The error of a context that ends says besides how far
// the semaphore is and what is to signal it; [errors.Is] finds the context's own error in it, and its cause.
func (s *Semaphore) Wait(ctx context.Context, value uint64) error {
	if s == nil {
		return errNoSemaphore
	}
	if now := s.value.Load(); value <= now && now != failedValue {
		return nil
	}
	return wait(ctx, []Point{{s, value}}, true, nil)
}

// WaitAll waits until all points are reached or one semaphore has failed, with its failure, or the context ends, with its
// error, as of [Semaphore.Wait]; a point above [MaxValue] is [ErrArgument]. No points are reached at once.
func WaitAll(ctx context.Context, points ...Point) error { return wait(ctx, points, true, nil) }

// WaitAny waits until one of the points is reached or one semaphore has failed, and returns the index of a point that is
// reached. A failure goes before a point that is reached, whatever their order. No points are reached at once, as -1.
func WaitAny(ctx context.Context, points ...Point) (int, error) {
	index := -1
	err := wait(ctx, points, false, &index)
	return index, err
}

// standing reports whether a wait is over.
func standing(points []Point, all bool, index *int) (over bool, err error) {
	short := 0
	first := -1
	for i, p := range points {
		switch now := p.Semaphore.value.Load(); {
		case now == failedValue:
			return true, received(p.Semaphore.failure.Load().err)
		case now < p.Value:
			short++
		case first < 0:
			first = i
		}
	}
	if index != nil {
		*index = first
	}
	if all {
		return short == 0, nil
	}
	return first >= 0 || len(points) == 0, nil
}

func wait(ctx context.Context, points []Point, all bool, index *int) error {
	if ctx == nil {
		return argument("wait", "no context")
	}
	for _, p := range points {
		if p.Semaphore == nil {
			return argument("wait", "a point has no semaphore")
		}
		if p.Value > MaxValue {
			return argument("wait", "value %d is above %d, the highest there is", p.Value, uint64(MaxValue))
		}
	}
	if ctx.Err() != nil {
		return askOnce(ctx, points, all, index)
	}
	if t := tracerOf(points); t != nil {
		return t.wait(ctx, points, all, index)
	}
	return waitUntil(ctx, points, all, index)
}

// waitUntil is wait for valid points.
func waitUntil(ctx context.Context, points []Point, all bool, index *int) error {
	over, err := askUntil(ctx, points, all, index)
	if over {
		return err
	}
	return parkUntil(ctx, points, all, index)
}

// askOnce is wait with a context that has ended, by which programs poll.
func askOnce(ctx context.Context, points []Point, all bool, index *int) error {
	for _, p := range points {
		if p.Semaphore.value.Load() >= p.Value { // or it has failed
			continue
		}
		p.Semaphore.poll(p.Value, false, false)
		if p.Semaphore.value.Load() < p.Value { // what is below may have failed
			p.Semaphore.pollAll()
		}
	}
	if over, err := standing(points, all, index); over {
		return err
	}
	return waitEnded(ctx, points)
}

// askUntil waits by asking, as long as that makes sense, and reports whether the wait is over.
func askUntil(ctx context.Context, points []Point, all bool, index *int) (over bool, err error) {
	var w wake.Waiter
	defer w.End()
	for {
		if over, err := standing(points, all, index); over {
			return true, err
		}
		if ctx.Err() != nil {
			return true, waitEnded(ctx, points)
		}
		var policy *wake.Policy
		for _, p := range points {
			if p.Semaphore.flags.Load()&hasPoints != 0 && p.Semaphore.value.Load() < p.Value {
				if d := p.Semaphore.poll(p.Value, w.Asked() > 0, w.Stands()); d != nil && (policy == nil || d.waits.Spin > policy.Spin) {
					policy = &d.waits
				}
			}
		}
		if over, err := standing(points, all, index); over {
			return true, err
		}
		if policy == nil && !anyHopes(points) || !w.Again(policy) {
			return false, nil
		}
	}
}

// parkUntil waits without asking.
func parkUntil(ctx context.Context, points []Point, all bool, index *int) error {
	e := hostEventFor(points)
	defer e.takeBack(points)
	for i, p := range points {
		e.placed[i] = p.Semaphore.expectAt(p.Value, &e.tps[i]) == unknown
	}
	for {
		if over, err := standing(points, all, index); over {
			return err
		}
		select {
		case <-e.woken:
		case <-ctx.Done():
			if over, err := standing(points, all, index); over {
				return err
			}
			return waitEnded(ctx, points)
		}
	}
}

// OnReached calls a function once, when the value is reached, with nil, or when the semaphore fails, with the failure. If
// that is so already it is called by OnReached itself, with no lock held. Else, if a call signals, fails or closes the semaphore, it is
// called by that, by value and then by age, when all else that this releases is under way; one that panics or ends the goroutine keeps
// no other from being called. What work on a device releases, and host calls, is called on goroutines of its own, in no order. The function
// returned takes the request back, and reports whether it was in time. No function is no request.
func (s *Semaphore) OnReached(value uint64, fn func(error)) (cancel func() bool) {
	if fn == nil {
		return tooLate
	}
	if s == nil {
		fn(errNoSemaphore)
		return tooLate
	}
	t := &timepoint{fn: s.traceCall(value, fn), index: -1}
	switch s.expectAt(value, t) {
	case reached:
		t.fn(nil)
	case failed:
		t.fn(received(s.failed()))
	default:
		return func() bool { return s.cancel(t) }
	}
	return tooLate
}

// tooLate takes nothing back.
func tooLate() bool { return false }

// Link has target signalled with to when s reaches from, and failed when s fails. The function returned takes the link
// back, and reports whether it was in time. No target is no link.
func (s *Semaphore) Link(from uint64, target *Semaphore, to uint64) (unlink func() bool) {
	if target == nil {
		return tooLate
	}
	if s == nil {
		target.Fail(errNoSemaphore)
		return tooLate
	}
	l := &struct {
		timepoint
		to Point
	}{timepoint{index: -1}, Point{target, to}}
	l.link = &l.to
	switch s.expectAt(from, &l.timepoint) {
	case reached:
		releaseFromHost(l.to.pass(nil))
	case failed:
		releaseFromHost(l.to.pass(s.failed()))
	default:
		return func() bool { return s.cancel(&l.timepoint) }
	}
	return tooLate
}

// pass signals a link's point, or fails its semaphore with err, and returns the timepoints that this releases.
func (p *Point) pass(err error) *timepoint {
	if err == nil {
		var list *timepoint
		if list, err = p.Semaphore.signal(p.Value); err == nil {
			return list
		}
	}
	return p.Semaphore.fail(err)
}
