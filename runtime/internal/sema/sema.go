package sema

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/points"
)

// MaxValue is the highest value of a semaphore.
const MaxValue = math.MaxUint64 - 1

// failedValue is the value of a semaphore that has failed. It is above every valid value. So one
// load tells that a wait is over, because the value is reached or the semaphore has failed.
const failedValue = math.MaxUint64

var (
	// ErrClosed is the error for a semaphore, or another object, that was closed.
	ErrClosed = errors.New("closed")

	// ErrValue is the error of a signal whose value is not above the semaphore's current value.
	ErrValue = errors.New("semaphore value does not grow")
)

// A Point is a value of a semaphore.
type Point struct {
	Semaphore *Semaphore
	Value     uint64
}

// Reached reports whether the value is reached and the semaphore has not failed.
func (p Point) Reached() bool {
	now := p.Semaphore.value.Load()
	return p.Value <= now && now != failedValue
}

// Over reports whether a wait for the point is over: the value is reached, or the semaphore has
// failed.
func (p Point) Over() bool { return p.Semaphore.value.Load() >= p.Value }

// A Semaphore has a value that only grows. It may fail, and then stays failed. The zero Semaphore
// has value 0. A Semaphore must not be copied. Its methods may be called concurrently.
type Semaphore struct {
	// Tag and Notes are for the packages above. This package does not use them.
	Tag   atomic.Uint32
	Notes atomic.Pointer[any]

	value   atomic.Uint64           // the value known to be reached; failedValue after a failure
	failure atomic.Pointer[failure] // stored before value becomes failedValue
	final   uint64                  // the value before the failure; written before value becomes failedValue
	flags   atomic.Uint32           // hasSignals and hasWaiters, read without a lock; changed under mu
	soon    atomic.Bool             // see ExpectSoon

	mu   sync.Mutex // protects list and everything in it
	list *expected  // made when it is first needed
}

// Bits of Semaphore.flags.
const (
	hasSignals = 1 << iota // there are published signals whose work is not known to be done
	hasWaiters             // there are registered timepoints
)

// An expected has the signals of a semaphore that are in flight, its registered timepoints, and
// other data that not every semaphore needs.
type expected struct {
	signals points.Set[Producer] // signals in flight
	joins   []join               // for signals of barriers that wait for several producers
	issued  timepointHeap        // timepoints that wait until work that signals their value has been issued
	reach   timepointHeap        // timepoints that wait until their value is reached
	order   uint64               // the order number of the next timepoint
	idle    *hostEvent           // list of host events that no goroutine uses now
	name    string
}

type failure struct{ err error }

var errClosed = fmt.Errorf("gpu: semaphore: %w", ErrClosed)

// closed is the failure that Close sets. It is made once, so that closing allocates nothing.
var closed = failure{errClosed}

// Init sets an initial value other than 0. It must be called before any other method.
func (s *Semaphore) Init(value uint64) { s.value.Store(value) }

// Value returns the current value, as far as the host knows, and whether the semaphore has failed.
// After a failure the returned value is meaningless. Value does not poll.
func (s *Semaphore) Value() (now uint64, failed bool) {
	now = s.value.Load()
	return now, now == failedValue
}

// Failed returns the error that the semaphore has failed with, or nil.
func (s *Semaphore) Failed() error {
	if s.value.Load() != failedValue {
		return nil
	}
	return s.failure.Load().err
}

// Query returns the current value and nil. If the semaphore has failed, Query returns the value
// before the failure, and the failure. If signals are in flight, Query first polls their producers.
// It does not block.
func (s *Semaphore) Query() (uint64, error) {
	if s.flags.Load()&hasSignals == 0 {
		if v := s.value.Load(); v != failedValue {
			return v, nil
		}
	}
	return s.query()
}

// query is the slow part of Query.
func (s *Semaphore) query() (uint64, error) {
	if s.flags.Load()&hasSignals != 0 {
		s.pollAll()
	}
	if v := s.value.Load(); v != failedValue {
		return v, nil
	}
	return s.final, s.failure.Load().err
}

// Signal raises the value from the host, like [Semaphore.Raise], and notifies the owners of the
// released timepoints.
func (s *Semaphore) Signal(value uint64) error {
	// Read s.flags after raising the value. A goroutine in Register sets a flag first and then
	// reads the value. So either this goroutine sees the flag and looks at the list, or Register
	// sees the new value.
	if now := s.value.Load(); now < value && value <= MaxValue && s.value.CompareAndSwap(now, value) {
		if s.flags.Load() != 0 {
			ReleaseFromHost(s.takeReleased(value))
		}
		return nil
	}
	return s.signalSlowly(value)
}

func (s *Semaphore) signalSlowly(value uint64) error {
	released, err := s.Raise(value)
	ReleaseFromHost(released)
	return err
}

// Raise raises the value from the host and returns the timepoints to release. The value must not be
// above [MaxValue]. If it is not above the current value, the error is [ErrValue]. If the semaphore
// has failed, the error is its failure. If Raise returns an error, nothing has changed.
func (s *Semaphore) Raise(value uint64) (*Timepoint, error) {
	for {
		now := s.value.Load()
		switch {
		case now == failedValue:
			return nil, s.failure.Load().err
		case value <= now:
			return nil, fmt.Errorf("gpu: %w", Backward(Point{s, value}, now))
		case s.value.CompareAndSwap(now, value):
			if s.flags.Load() == 0 {
				return nil, nil
			}
			return s.takeReleased(value), nil
		}
	}
}

// Backward returns the error for a signal of p if the semaphore's current value (now) is p.Value or
// higher.
func Backward(p Point, now uint64) error { return backward(p.Value, p.Semaphore.String(), now) }

func backward(value uint64, name string, now uint64) error {
	return fmt.Errorf("signal %d of %s, which is at %d: %w", value, name, now, ErrValue)
}

// takeReleased removes and returns the timepoints for values up to value, after a signal from the
// host.
func (s *Semaphore) takeReleased(value uint64) *Timepoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return nil
	}
	released := s.list.reached(value)
	s.updateFlags()
	return released
}

// reached removes and returns all timepoints for values up to value. The caller holds the
// semaphore's mu.
func (l *expected) reached(value uint64) *Timepoint {
	return l.issued.pop(value, l.reach.pop(value, nil))
}

// Fail makes the semaphore fail with err and returns all its timepoints, which the caller must
// release. If the semaphore has failed before, Fail changes nothing and returns nil.
func (s *Semaphore) Fail(err error) *Timepoint {
	released, _ := s.TryFail(err)
	return released
}

// TryFail is like Fail, and also reports whether err has become the semaphore's failure.
func (s *Semaphore) TryFail(err error) (released *Timepoint, failed bool) {
	return s.fail(&failure{err})
}

// Close is like Fail with [ErrClosed], but allocates nothing.
func (s *Semaphore) Close() *Timepoint {
	released, _ := s.fail(&closed)
	return released
}

func (s *Semaphore) fail(why *failure) (released *Timepoint, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failure.CompareAndSwap(nil, why) {
		return nil, false
	}
	for {
		s.final = s.value.Load()
		if s.value.CompareAndSwap(s.final, failedValue) {
			break
		}
	}
	l := s.list
	if l == nil {
		return nil, true
	}
	l.signals.Clear()
	l.joins = nil
	released = l.reached(math.MaxUint64)
	s.updateFlags()
	for t := released; t != nil; t = t.next {
		t.err = why.err
	}
	return released, true
}

// expect returns s.list, to which the caller may add a signal (flag is hasSignals) or a timepoint
// (flag is hasWaiters). expect sets the flag first, so that Signal and Raise look at the list from
// then on. The caller holds mu.
func (s *Semaphore) expect(flag uint32) *expected {
	if s.list == nil {
		s.list = new(expected)
	}
	if f := s.flags.Load(); f&flag == 0 {
		s.flags.Store(f | flag)
	}
	return s.list
}

// updateFlags sets s.flags according to the entries of the list. The caller holds mu.
func (s *Semaphore) updateFlags() {
	flags := uint32(0)
	if l := s.list; l != nil {
		if !l.signals.Empty() {
			flags |= hasSignals
		}
		if len(l.issued)+len(l.reach) > 0 {
			flags |= hasWaiters
		}
	}
	if flags != s.flags.Load() {
		s.flags.Store(flags)
	}
}

// ExpectSoon says that another thread will soon issue work that signals the semaphore. From then
// on, a goroutine that waits for the semaphore spins for a moment before it parks, even if there is
// no producer to poll yet.
func (s *Semaphore) ExpectSoon() {
	if !s.soon.Load() {
		s.soon.Store(true)
	}
}

// SetName gives the semaphore a name. An empty name removes the previous name.
func (s *Semaphore) SetName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		if name == "" {
			return
		}
		s.list = new(expected)
	}
	s.list.name = name
}

// Name returns the name, or "".
func (s *Semaphore) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return ""
	}
	return s.list.name
}

// String returns how messages mention the semaphore: semaphore "name", or "a semaphore" if it has
// no name.
func (s *Semaphore) String() string { return mention(s.Name()) }

func mention(name string) string {
	if name == "" {
		return "a semaphore"
	}
	return fmt.Sprintf("semaphore %q", name)
}

// Waiting returns how many timepoints are registered with the semaphore.
func (s *Semaphore) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return 0
	}
	return len(s.list.issued) + len(s.list.reach)
}
