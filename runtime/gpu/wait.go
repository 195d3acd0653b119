package gpu

import (
	"context"
	"runtime"
	"time"
)

// maxSpins is how often a wait asks at most where time stands still, as in a bubble of testing/synctest.
const maxSpins = 1 << 14

// hope is how long a wait for a channel that has nobody to ask yet does not park: to issue a group takes its thread about that.
const hope = 50 * time.Microsecond

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
			return true, p.Semaphore.failure.Load().err
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
	var stands *Device // for the asker of this one
	defer func() {
		if stands != nil {
			stands.stoodFor.Store(false)
		}
	}()
	start := time.Time{}
	var turns turns
	defer turns.end()
	for n := 0; ; n++ {
		if over, err := standing(points, all, index); over {
			return true, err
		}
		if ctx.Err() != nil {
			return true, waitEnded(ctx, points)
		}
		var dev *Device
		for _, p := range points {
			if p.Semaphore.flags.Load()&hasPoints != 0 && p.Semaphore.value.Load() < p.Value {
				if d := p.Semaphore.poll(p.Value, n > 0, stands != nil); d != nil && (dev == nil || d.opt.Spin > dev.opt.Spin) {
					dev = d
				}
			}
		}
		if over, err := standing(points, all, index); over {
			return true, err
		}
		spin := hope
		if dev != nil {
			spin = dev.opt.Spin
		}
		if spin <= 0 || dev == nil && !anyHopes(points) {
			return false, nil
		}
		if start.IsZero() {
			start = time.Now()
		}
		switch past := time.Since(start); {
		case past == 0 && n > maxSpins:
			return false, nil
		case past <= spin || stands != nil && stands == dev && past <= dev.opt.Poll:
		case dev != nil && stands != dev && past <= dev.opt.Poll && dev.standFor():
			if stands != nil { // for which there is nothing left to wait
				stands.stoodFor.Store(false)
			}
			stands = dev
		default:
			return false, nil
		}
		turns.yield(start, dev)
	}
}

// turns is when a waiter that asks without a pause lets other goroutines have its processor: each time it has asked. But on a goroutine
// that is locked to its thread that takes as long as many a piece of work of a device. Where it was seen to take long, for the device
// remembers that, and other processors are left, a waiter keeps its own at first, and then yields once in a slice, until it is seen to take
// little again.
type turns struct {
	keeps bool
	next  time.Duration // after the start
}

const (
	firstTurn = slice / 2
	dearTurn  = slice / 20 // many times what it takes on a goroutine that is not locked, if nobody else wants to run
)

// yield lets others run if it is time. Where time stands still it always is.
func (t *turns) yield(start time.Time, dev *Device) {
	if dev == nil {
		runtime.Gosched()
		return
	}
	past := time.Since(start)
	if !t.keeps && past > 0 && dev.dearTurns.Load() && keepProcessor(briefKeep) {
		t.keeps = true
		t.next = max(t.next, firstTurn)
	}
	if t.keeps && past < t.next {
		return
	}
	runtime.Gosched()
	now := time.Since(start)
	dear := now-past > dearTurn
	if dear != dev.dearTurns.Load() {
		dev.dearTurns.Store(dear)
	}
	if t.next = now + slice; !dear {
		t.end()
	}
}

// end gives up the processor.
func (t *turns) end() {
	if t.keeps {
		t.keeps = false
		giveProcessor()
	}
}

// standFor has a waiter go on asking in the asker's place, as long as that would ask without a pause: to be woken takes a parked
// waiter much longer. There is one at a time, and who comes when somebody has parked is none: the asker asks then.
func (d *Device) standFor() bool {
	return !d.wanted() && d.stoodFor.CompareAndSwap(false, true)
}

// parkUntil waits without asking.
func parkUntil(ctx context.Context, points []Point, all bool, index *int) error {
	e := newHostEvent(len(points))
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
	t := &timepoint{fn: fn, index: -1}
	switch s.expectAt(value, t) {
	case reached:
		fn(nil)
	case failed:
		fn(s.failed())
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
