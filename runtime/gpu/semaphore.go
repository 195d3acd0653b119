package gpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxValue is the highest value of a semaphore.
const MaxValue = math.MaxUint64 - 1

// A Semaphore is a timeline: a value that only grows, signalled by the host or by devices and waited for by either, in any
// order. It can fail once, and then stays failed: every wait returns the failure, also for values that had been reached.
//
// A semaphore belongs to no device, orders work across all of them and may outlive them. Make one with [NewSemaphore]; all
// methods may be called concurrently.
type Semaphore struct {
	value   atomic.Uint64 // reached, as far as the host knows
	failure atomic.Pointer[failure]
	ahead   atomic.Int32 // len(points), to be read without the lock

	mu      sync.Mutex
	points  []point // issued and not known to be reached, by value; a part of backing, whose front it leaves as it goes
	backing []point
	passed  []uint64 // values of points that a higher one went past before their own submission was found done
	issued  timepointHeap
	reach   timepointHeap
	order   uint64
}

type failure struct{ err error }

var errSemaphoreClosed = fmt.Errorf("gpu: semaphore: %w", ErrClosed)

// semaphoreClosed is the failure of every semaphore that was closed, made once so that closing allocates nothing.
var semaphoreClosed = failure{errSemaphoreClosed}

// A point says that a value is reached once a timeline has done a sequence number.
type point struct {
	value uint64
	tl    *timeline
	seq   uint64
	event *event // of the submission, recorded
}

// NewSemaphore makes a semaphore that has reached a value already.
func NewSemaphore(initial uint64) (*Semaphore, error) {
	if initial > MaxValue {
		return nil, argument("semaphore", "initial value %d is above %d", initial, uint64(MaxValue))
	}
	s := new(Semaphore)
	s.value.Store(initial)
	return s, nil
}

// Query returns the value reached and the failure, if the semaphore has failed. It never blocks. Where a device may have
// reached a value that the host does not know of yet, it asks the device.
func (s *Semaphore) Query() (uint64, error) {
	if s.ahead.Load() > 0 && s.failure.Load() == nil {
		s.pollAll()
	}
	if f := s.failure.Load(); f != nil {
		return s.value.Load(), f.err
	}
	return s.value.Load(), nil
}

// Signal sets the value from the host and releases what waits for it. A value that is not above the present one is refused
// with [ErrValue], a failed semaphore with its failure; neither changes anything.
func (s *Semaphore) Signal(value uint64) error {
	if value > MaxValue {
		return argument("signal", "value %d is above %d", value, uint64(MaxValue))
	}
	released, err := s.advance(value, false)
	if err != nil {
		return err
	}
	release(released, nil)
	return nil
}

// Fail makes the semaphore fail with err, for good, and releases everything that waits for it, with err. The first failure
// stands; a later one is dropped.
func (s *Semaphore) Fail(err error) {
	if err == nil {
		err = fmt.Errorf("gpu: semaphore failed without a reason: %w", ErrArgument)
	}
	release(s.fail(err), nil)
}

// Close destroys the semaphore: what still waits for it fails with [ErrClosed]. Closing twice is fine, and so is never
// closing: a semaphore holds nothing but memory.
func (s *Semaphore) Close() error {
	if s.failure.Load() == nil {
		release(s.fail(errSemaphoreClosed), nil)
	}
	return nil
}

// advance raises the value and returns the timepoints that this releases. A submission that is done may find that another
// one, which nothing orders before it, has been found done first and has raised the value further: it has no mistake.
func (s *Semaphore) advance(value uint64, done bool) (*timepoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failure.Load(); f != nil {
		return nil, f.err
	}
	if now := s.value.Load(); value <= now {
		if done {
			if i := slices.Index(s.passed, value); i >= 0 {
				s.passed = slices.Delete(s.passed, i, i+1)
				return nil, nil
			}
		}
		return nil, fmt.Errorf("gpu: signal %d: the semaphore is at %d: %w", value, now, ErrValue)
	}
	s.value.Store(value)
	n := 0
	for n < len(s.points) && s.points[n].value <= value {
		if done && s.points[n].value < value {
			s.passed = append(s.passed, s.points[n].value)
		}
		n++
	}
	if n > 0 {
		s.dropPoints(n)
	}
	return s.pop(&s.issued, value, s.pop(&s.reach, value, nil)), nil
}

// dropPoints takes the first n points away.
func (s *Semaphore) dropPoints(n int) {
	clear(s.points[:n])
	s.points = s.points[n:]
	s.ahead.Store(int32(len(s.points)))
}

// pop takes the timepoints up to a value off a heap and puts them in front of a list, in order.
func (s *Semaphore) pop(h *timepointHeap, value uint64, rest *timepoint) *timepoint {
	var first *timepoint
	end := &first
	for len(*h) > 0 && (*h)[0].value <= value {
		t := h.remove(0)
		*end, end = t, &t.next
	}
	*end = rest
	return first
}

func (s *Semaphore) fail(err error) *timepoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := &semaphoreClosed
	if err != errSemaphoreClosed {
		why = &failure{err}
	}
	if !s.failure.CompareAndSwap(nil, why) {
		return nil
	}
	clear(s.points)
	s.points, s.passed = s.points[:0], nil
	s.ahead.Store(0)
	list := s.pop(&s.issued, math.MaxUint64, s.pop(&s.reach, math.MaxUint64, nil))
	for t := list; t != nil; t = t.next {
		t.err = err
	}
	return list
}

// publish says that a value will be reached when a timeline has done seq, whose event has been recorded, and returns the
// timepoints for which that is enough.
func (s *Semaphore) publish(p point) *timepoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure.Load() != nil || p.value <= s.value.Load() {
		return nil // completion finds out
	}
	if len(s.points) == 0 {
		if s.backing == nil {
			s.backing = make([]point, 8)
		}
		s.points = s.backing[:0]
	} else if len(s.points) == cap(s.points) { // at the end of the backing: to its front, or to a larger one
		if n := len(s.points); n > len(s.backing)/2 {
			s.backing = make([]point, 2*max(n, 8))
		}
		moved := s.backing[:copy(s.backing, s.points)]
		clear(s.backing[len(moved):])
		s.points = moved
	}
	i := len(s.points)
	s.points = append(s.points, p)
	for i > 0 && s.points[i-1].value > p.value {
		s.points[i] = s.points[i-1]
		i--
	}
	s.points[i] = p
	s.ahead.Store(int32(len(s.points)))
	if len(s.reach) > 0 && s.reach[0].value <= p.value {
		p.tl.want(p.seq)
	}
	return s.pop(&s.issued, p.value, nil)
}

// A resolution is how a wait stands.
type resolution int

const (
	reached resolution = iota // nothing to wait for
	ordered                   // issued: a point says on what
	unknown                   // nobody has issued a producer
	failed
)

// resolve finds how a wait for a value stands. For ordered the point is the lowest that reaches the value, and its event
// is held. If nobody has issued a producer, or t must have the value reached, t is left with the semaphore.
func (s *Semaphore) resolve(value uint64, t *timepoint) (resolution, point, error) {
	if f := s.failure.Load(); f != nil {
		return failed, point{}, f.err
	}
	if value <= s.value.Load() {
		return reached, point{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failure.Load(); f != nil {
		return failed, point{}, f.err
	}
	if value <= s.value.Load() {
		return reached, point{}, nil
	}
	if t == nil || t.issued {
		if i := s.find(value); i < len(s.points) {
			p := s.points[i]
			p.event.hold()
			return ordered, p, nil
		}
	}
	if t != nil {
		t.value, t.order = value, s.order
		s.order++
		if t.issued {
			s.issued.push(t)
		} else {
			s.reach.push(t)
			for i := s.find(value); i < len(s.points); i++ { // the first of each timeline is enough, but all may come first
				if p := s.points[i]; i == 0 || s.points[i-1].tl != p.tl || s.points[i-1].value < value {
					p.tl.want(p.seq)
				}
			}
		}
	}
	return unknown, point{}, nil
}

// cancel takes a timepoint back; it reports false if it was released already, or is about to be.
func (s *Semaphore) cancel(t *timepoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index < 0 {
		return false
	}
	if t.issued {
		s.issued.remove(t.index)
	} else {
		s.reach.remove(t.index)
	}
	return true
}

// find returns the place of the lowest point that reaches a value. The caller holds mu.
func (s *Semaphore) find(value uint64) int {
	low, high := 0, len(s.points)
	for low < high {
		if middle := int(uint(low+high) / 2); s.points[middle].value < value {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// producer returns the timeline on which a value, or what comes next below it, depends, or nil.
func (s *Semaphore) producer(value uint64) (*timeline, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.points) == 0 {
		return nil, 0
	}
	p := &s.points[min(s.find(value), len(s.points)-1)]
	return p.tl, p.seq
}

// poll asks the device that will reach a value how far it is. It reports how long it makes sense to go on asking; not at
// all if only the device's own thread may ask, which then does.
func (s *Semaphore) poll(value uint64) time.Duration {
	tl, seq := s.producer(value)
	switch {
	case tl == nil:
		return 0
	case !tl.dev.caps.SubmitAnywhere:
		tl.want(seq)
		return 0
	}
	tl.poll(seq)
	return tl.dev.opt.Spin
}

// pollAll asks the timelines that will raise the value how far they are: that of the highest point, and those of the next
// ones, as far as it makes sense to look.
func (s *Semaphore) pollAll() {
	type ask struct {
		tl  *timeline
		seq uint64
	}
	var asks [8]ask
	n := 0
	s.mu.Lock()
	for i := range min(len(s.points), 64) {
		p := &s.points[len(s.points)-1]
		if i > 0 {
			p = &s.points[i-1]
		}
		k := 0
		for k < n && asks[k].tl != p.tl {
			k++
		}
		switch {
		case k < n:
			asks[k].seq = max(asks[k].seq, p.seq)
		case n < len(asks):
			asks[n] = ask{p.tl, p.seq}
			n++
		}
	}
	s.mu.Unlock()
	for _, a := range asks[:n] {
		if a.tl.dev.caps.SubmitAnywhere {
			a.tl.poll(a.seq)
		} else {
			a.tl.want(a.seq)
		}
	}
}

// release passes timepoints on, without any lock held: submissions count down, functions are called.
func release(list *timepoint, on *Device) {
	for t := list; t != nil; {
		next := t.next
		t.next = nil
		switch {
		case t.sub != nil:
			t.sub.resolved(t)
		case t.fn != nil:
			fn, err := t.fn, t.err
			if on != nil {
				go fn(err) // a device's thread runs no code of others
			} else {
				fn(err)
			}
		}
		t = next
	}
}
