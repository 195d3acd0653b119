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

// failedValue is the value of a semaphore that has failed. Every valid value is below it, so one
// load tells whether a value is neither reached nor failed.
const failedValue = math.MaxUint64

var (
	// ErrClosed is the failure of a semaphore that was closed.
	ErrClosed = errors.New("closed")

	// ErrValue is the error of a signal that does not raise its semaphore.
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

// A Semaphore has a value that only grows. It can fail once, and then stays failed. The zero
// Semaphore has value 0. It must not be copied. All methods may be called concurrently.
type Semaphore struct {
	// Tag and Notes are for the packages above. This package does not use them.
	Tag   atomic.Uint32
	Notes atomic.Pointer[any]

	value   atomic.Uint64           // the value known to be reached; failedValue after a failure
	failure atomic.Pointer[failure] // stored before value is failedValue
	final   uint64                  // the last value; written before value is failedValue
	flags   atomic.Uint32           // says what list contains; read without mu, changed under mu
	soon    atomic.Bool             // see ExpectSoon

	mu   sync.Mutex // protects list and everything in it
	list *expected  // made when it is first needed
}

// Bits of Semaphore.flags.
const (
	hasSignals = 1 << iota // signals of producers are in flight
	hasWaiters             // timepoints wait
)

// An expected records the signals in flight of a semaphore, and the timepoints that wait for it.
type expected struct {
	signals points.Set[Producer] // of work that was issued and is not known to be done
	joins   []join               // those of signals that wait for several producers
	issued  timepointHeap        // timepoints that need only a producer of their value
	reach   timepointHeap        // timepoints that need their value to be reached
	order   uint64               // of the next timepoint
	idle    *hostEvent           // host events for goroutines that will park
	name    string
}

type failure struct{ err error }

var errClosed = fmt.Errorf("gpu: semaphore: %w", ErrClosed)

// closed is the failure of every closed semaphore. It is made once, so that closing allocates
// nothing.
var closed = failure{errClosed}

// Init sets the first value of a semaphore that nobody uses yet.
func (s *Semaphore) Init(value uint64) { s.value.Store(value) }

// Value returns the value reached, as far as the host knows, and whether the semaphore has failed.
// After a failure the value has no meaning.
func (s *Semaphore) Value() (now uint64, failed bool) {
	now = s.value.Load()
	return now, now == failedValue
}

// Failed returns the failure, or nil.
func (s *Semaphore) Failed() error {
	if s.value.Load() != failedValue {
		return nil
	}
	return s.failure.Load().err
}

// Query returns the value reached, and the failure or nil. If signals are in flight, it first polls
// their producers. It does not block.
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
	// This reads flags after raising the value. A goroutine that adds to the list first sets flags
	// and then reads the value. So one of the two sees the other.
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

// Raise raises the value from the host and returns the released timepoints. The value must not be
// above [MaxValue]. If it is not above the current value, the error is [ErrValue]. If the semaphore
// has failed, the error is its failure. With an error nothing changes.
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

// Backward returns the error of signalling p while the semaphore is at now.
func Backward(p Point, now uint64) error { return backward(p.Value, p.Semaphore.String(), now) }

func backward(value uint64, name string, now uint64) error {
	return fmt.Errorf("signal %d of %s, which is at %d: %w", value, name, now, ErrValue)
}

// takeReleased removes and returns the timepoints that a signal of the host releases.
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

// reached removes the timepoints up to a value and returns them. The caller holds the semaphore's
// mu.
func (l *expected) reached(value uint64) *Timepoint {
	return l.issued.pop(value, l.reach.pop(value, nil))
}

// Fail makes the semaphore fail with err and returns the released timepoints, each with err. If the
// semaphore has failed before, nothing changes.
func (s *Semaphore) Fail(err error) *Timepoint { return s.fail(&failure{err}) }

// Close makes the semaphore fail with [ErrClosed], like [Semaphore.Fail]. It allocates nothing.
func (s *Semaphore) Close() *Timepoint { return s.fail(&closed) }

func (s *Semaphore) fail(why *failure) *Timepoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failure.CompareAndSwap(nil, why) {
		return nil
	}
	for {
		s.final = s.value.Load()
		if s.value.CompareAndSwap(s.final, failedValue) {
			break
		}
	}
	l := s.list
	if l == nil {
		return nil
	}
	l.signals.Clear()
	l.joins = nil
	released := l.reached(math.MaxUint64)
	s.updateFlags()
	for t := released; t != nil; t = t.next {
		t.err = why.err
	}
	return released
}

// expect returns the list, for a caller that is about to add an entry of the kind that flag stands
// for. It sets flag, so that from then on every signal checks the list. The caller holds mu.
func (s *Semaphore) expect(flag uint32) *expected {
	if s.list == nil {
		s.list = new(expected)
	}
	if f := s.flags.Load(); f&flag == 0 {
		s.flags.Store(f | flag)
	}
	return s.list
}

// updateFlags recomputes flags from the contents of the list. The caller holds mu.
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

// ExpectSoon records that a thread is about to issue work that will signal the semaphore. A
// goroutine that waits for the semaphore then spins for a moment before it parks, although there is
// no producer to poll yet.
func (s *Semaphore) ExpectSoon() {
	if !s.soon.Load() {
		s.soon.Store(true)
	}
}

// SetName gives the semaphore a name. An empty name removes it.
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
