package sema

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/points"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Producer is a sequence of work, such as a GPU stream. It does the work in order. The work is
// numbered 1, 2, 3, … The type that implements Producer must be comparable. Its methods may be
// called from any thread and do not block.
type Producer interface {
	// Want tells the producer that someone waits for the work with the number seq. The producer
	// must then call Arrive or Fail soon after that work is done, even if nobody calls PollFor.
	// Want is called with a semaphore's mutex held and must not call this package.
	Want(seq uint64)

	// Passed reports whether the host knows that the work with the number seq is done. Passed is
	// called with a semaphore's mutex held and must not call this package.
	Passed(seq uint64) bool

	// PollFor checks whether the work with the number seq is done. For all work that it finds done,
	// it calls Arrive or Fail of the semaphores that the work signals. It is called without locks.
	// It returns how to go on polling this producer, or nil if polling again is useless.
	PollFor(seq uint64, by PollSource) *wake.Policy
}

// A PollSource says who polls a producer. The producer may skip polls of some sources, to leave the
// driver to other goroutines.
type PollSource uint8

const (
	ByQuery       PollSource = iota // by pollAll, for Query, or Wait with a context that has ended
	ByWaiter                        // the first poll of a call of Wait, or the first after a pause
	ByWaiterAgain                   // a later poll of the call, without a pause since the previous poll
	ByPoller                        // like ByWaiterAgain, while the waiting goroutine stands in for the device's poller
)

// A Mark is the place behind the work with the number Seq of a producer.
type Mark struct {
	Producer Producer
	Seq      uint64
}

// A Signal says that a semaphore will be raised to Value when the work with the number Seq of
// Producer is done. It is in flight from Publish until Arrive gives it or the semaphore fails. If
// ByBarrier is set, the signal belongs to a barrier: an operation that only waits for the work and
// then signals. The barrier's signal is given after the signals of the work itself.
type Signal = points.Point[Producer]

// A join belongs to the signal of a barrier that waits for several producers, and has the marks of
// all work that the barrier waits for.
type join struct {
	value uint64
	marks []Mark // the first is the mark in the signal itself
}

// A WaitState says whether a wait for a value of a semaphore is over, and if not, whether the work
// that will end it has been issued.
type WaitState int

const (
	Reached WaitState = iota // the value is reached
	Ordered                  // work that signals the value or more has been issued
	Unknown                  // no work that signals the value or more has been issued
	Failed                   // the semaphore has failed
)

// Publish announces that issued work will signal the semaphore. If p is the signal of a barrier
// that waits for several producers, the parameter behind has the marks of all the work that the
// barrier waits for, first the mark in p. Publish copies these marks. Some timepoints wait only
// until work that reaches their value has been issued. Of these, Publish returns the timepoints
// with the value of p or a lower one, and the caller must release them.
//
// The result wanted says whether timepoints remain that Publish has not returned. If so, the caller
// must request polling for the work of p and of the marks in the parameter behind. Some of the
// remaining timepoints may wait until the value of p or a lower one is reached. The others wait for
// a higher value, but if the polled work fails, the semaphore fails and releases them too.
func (s *Semaphore) Publish(p Signal, behind []Mark) (released *Timepoint, wanted bool) {
	s.mu.Lock()
	l := s.expect(hasSignals)
	if s.value.Load() == failedValue {
		s.updateFlags()
		s.mu.Unlock()
		return nil, false
	}
	l.signals.Add(p)
	if len(behind) > 1 {
		l.addJoin(p.Value, behind)
	}
	wanted = len(l.reach) > 0
	if len(l.issued) > 0 {
		released = l.issued.pop(p.Value, nil)
		wanted = wanted || len(l.issued) > 0
	}
	if released != nil {
		s.updateFlags()
	}
	s.mu.Unlock()
	return released, wanted
}

// Arrive gives the signals of one producer from the signal first to the signal last, because their
// work is done. It raises the value to last.Value, and returns the timepoints to release. If the
// semaphore has failed, or its value is already first.Value or higher, Arrive returns an error and
// changes nothing.
//
// There is one exception. If first and last are the same signal, and independent work of another
// producer has already raised the value further, Arrive returns no error and the value stays.
func (s *Semaphore) Arrive(first, last Signal) (*Timepoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list
	if l != nil && first.Value == last.Value && l.signals.TakeOvertaken(first) {
		s.updateFlags()
		return nil, nil
	}
	var now uint64
	for {
		now = s.value.Load()
		if now == failedValue {
			return nil, s.failure.Load().err
		}
		if first.Value <= now {
			name := ""
			if l != nil {
				name = l.name
			}
			return nil, backward(first.Value, mention(name), now)
		}
		if s.value.CompareAndSwap(now, last.Value) {
			break
		}
	}
	if l == nil {
		return nil, nil
	}
	l.signals.Arrive(now, first, last)
	released := l.reached(last.Value)
	s.updateFlags()
	return released, nil
}

// addJoin adds a join for the barrier that signals value. It copies the given marks, which are of
// all work that the barrier waits for. It reuses the memory of a removed join, if there is one.
func (l *expected) addJoin(value uint64, behind []Mark) {
	n := len(l.joins)
	l.joins = slices.Grow(l.joins, 1)[:n+1]
	j := &l.joins[n]
	j.value, j.marks = value, append(j.marks[:0], behind...)
}

// Forget removes the copies that Publish made of the given marks. The owner of the barrier calls it
// after the barrier has signalled the value.
func (s *Semaphore) Forget(value uint64, behind []Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list
	if l == nil {
		return
	}
	i := slices.IndexFunc(l.joins, func(j join) bool { return j.value == value && slices.Equal(j.marks, behind) })
	if i < 0 {
		return
	}
	over := l.joins[i].marks
	clear(over)
	last := len(l.joins) - 1
	copy(l.joins[i:], l.joins[i+1:])
	l.joins[last] = join{marks: over[:0]}
	l.joins = l.joins[:last]
}

// marksOf returns the marks of all work that the barrier of the signal p waits for. It returns nil
// if p belongs to no barrier, or to a barrier that waits for a single producer.
func (l *expected) marksOf(p Signal) []Mark {
	if p.ByBarrier {
		for i := range l.joins {
			j := &l.joins[i]
			if m := j.marks[0]; j.value == p.Value && m.Producer == p.Producer && m.Seq == p.Seq {
				return j.marks
			}
		}
	}
	return nil
}

// Next returns the state of a wait for a value. If the state is Ordered, Next also returns the
// lowest signal in flight that reaches the value. If that signal belongs to a barrier that waits
// for several producers (see Publish), and the function joined is not nil, Next calls joined with
// each mark of the barrier. Next holds the semaphore's mutex during these calls.
func (s *Semaphore) Next(value uint64, joined func(Mark)) (WaitState, Signal) {
	if value <= s.value.Load() {
		return s.endState(), Signal{}
	}
	s.mu.Lock()
	if l := s.list; l != nil {
		if p, ok := l.signals.Lowest(value); ok {
			if joined != nil && len(l.joins) > 0 {
				for _, m := range l.marksOf(p) {
					joined(m)
				}
			}
			s.mu.Unlock()
			return Ordered, p
		}
	}
	over := value <= s.value.Load()
	s.mu.Unlock()
	if over {
		return s.endState(), Signal{}
	}
	return Unknown, Signal{}
}

// endState returns Failed if the semaphore has failed, otherwise Reached. The caller knows that the
// wait is over.
func (s *Semaphore) endState() WaitState {
	if s.value.Load() == failedValue {
		return Failed
	}
	return Reached
}

// Outlook describes a wait for value, for error messages. It returns the semaphore's present value,
// or math.MaxUint64 if the semaphore has failed. If a signal in flight reaches value, Outlook also
// returns the lowest such signal, and true.
func (s *Semaphore) Outlook(value uint64) (now uint64, next Signal, issued bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.list; l != nil {
		next, issued = l.signals.Lowest(value)
	}
	return s.value.Load(), next, issued
}

// next returns the mark of the work that a waiter for a value should poll. That is the work of the
// lowest signal in flight that reaches the value. If no signal in flight reaches the value, next
// chooses the work of another signal in flight, because the semaphore fails if that work fails. If
// the chosen signal belongs to a barrier that waits for several producers, next returns one of the
// barrier's marks whose work is not done yet, if any. If no signal is in flight, the Producer of
// the result is nil.
func (s *Semaphore) next(value uint64) Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		return Mark{}
	}
	var next Mark
	next.Producer, next.Seq = s.list.signals.Next(value)
	for i := range s.list.joins {
		marks := s.list.joins[i].marks
		if marks[0] == next && next.Producer.Passed(next.Seq) {
			for _, m := range marks {
				if !m.Producer.Passed(m.Seq) {
					return m
				}
			}
		}
	}
	return next
}

// PollFor polls the producer that a waiter for a value should poll. It returns how to go on
// polling, or nil if polling again is useless.
func (s *Semaphore) PollFor(value uint64, by PollSource) *wake.Policy {
	m := s.next(value)
	if m.Producer == nil {
		return nil
	}
	return m.Producer.PollFor(m.Seq, by)
}

// pollAll polls the producers of all signals in flight, and the other producers that their barriers
// wait for. It allocates memory only if there are more than 32.
func (s *Semaphore) pollAll() {
	var room [32]points.Front[Producer]
	fronts := room[:0]
	s.mu.Lock()
	if s.list != nil {
		fronts = s.list.signals.AppendFronts(fronts)
		for i := range s.list.joins {
			for _, m := range s.list.joins[i].marks[1:] {
				if !m.Producer.Passed(m.Seq) {
					fronts = append(fronts, points.Front[Producer]{Producer: m.Producer, Seq: m.Seq})
				}
			}
		}
	}
	s.mu.Unlock()
	for _, f := range fronts {
		f.Producer.PollFor(f.Seq, ByQuery)
	}
}
