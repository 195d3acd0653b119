package sema

import (
	"slices"

	"github.com/puregpu/puregpu/runtime/internal/points"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A Producer does work in order, numbered 1, 2, 3, … It must be comparable. Its methods may be
// called from any thread, and none blocks.
type Producer interface {
	// Want requests that the producer signals the work with this number soon after it is over,
	// because somebody is blocked until then. Want is called with a semaphore's mutex held and must
	// not call this package.
	Want(seq uint64)

	// Passed reports whether the work with this number is known to be over. Passed is called with a
	// semaphore's mutex held and must not call this package.
	Passed(seq uint64) bool

	// Ask polls for the completion of the work with this number. For all work that it finds over,
	// it calls Arrive or Fail of the semaphores. It is called without locks. It returns the policy
	// for waiting for this producer, or nil if polling again is no use.
	PollFor(seq uint64, by PollSource) *wake.Policy
}

// A PollSource says who polls a producer. The producer may skip some polls accordingly.
type PollSource uint8

const (
	ByQuery       PollSource = iota // a query of the value, which polls once
	ByWaiter                        // a waiting goroutine, at its first poll
	ByWaiterAgain                   // the same goroutine, again without a pause; a busy producer may skip this
	ByPoller                        // like Again, for a waiting goroutine that acts as the poller
)

// A Mark is a place in a producer's work: behind the work with this number.
type Mark struct {
	Producer Producer
	Seq      uint64
}

// A Signal says that a producer's work with a number will signal a value when that work is over. A
// late signal belongs to a barrier that waits for the work. It is given after the signals of the
// work itself.
type Signal = points.Point[Producer]

// A join is a late signal of a barrier that waits for several producers.
type join struct {
	value uint64
	marks []Mark // the first is the mark of the signal
}

// A WaitState is the state of a wait.
type WaitState int

const (
	Reached WaitState = iota // the value is reached
	Ordered                  // work that signals the value has been issued
	Unknown                  // nobody has issued such work
	Failed                   // the semaphore has failed
)

// Publish announces the signal of work that has just been issued. If p is the late signal of a
// barrier that waits for several producers, behind has the marks of their work, that of p first.
// Publish copies behind. It returns the timepoints that only needed a producer.
//
// wanted reports whether other timepoints wait, so that p's producer must be polled. Such a
// timepoint may wait for p's value or a lower one, and p may be the first signal to reach it. Or it
// waits for a higher value: the producer is polled for it too, because the semaphore may fail.
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

// Arrive raises the value because the work that signals it is over. It covers the signals of one
// producer from first to last, and raises the value to that of last. It returns the timepoints that
// this releases. If the semaphore has failed, or if the signals do not raise the value, Arrive
// returns an error. There is one exception: other work that is not ordered with this work may have
// overtaken it and raised the value already. Then Arrive changes nothing and returns no error.
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

// addJoin records the marks of all producers that a late signal waits for. It reuses the memory of
// a join that was removed.
func (l *expected) addJoin(value uint64, behind []Mark) {
	n := len(l.joins)
	l.joins = slices.Grow(l.joins, 1)[:n+1]
	j := &l.joins[n]
	j.value, j.marks = value, append(j.marks[:0], behind...)
}

// Forget removes the marks that were passed to Publish as behind. The caller calls it when the
// value has been signalled.
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

// marksOf returns the marks of all producers that the signal p waits for, or nil if there is only
// p's own.
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
// lowest signal that reaches the value. If that signal waits for several producers (see Publish),
// Next calls joined with each of their marks, unless joined is nil. It holds the semaphore's mutex
// during these calls.
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

// standing returns the state of a wait that is over: Reached, or Failed if the semaphore has
// failed.
func (s *Semaphore) endState() WaitState {
	if s.value.Load() == failedValue {
		return Failed
	}
	return Reached
}

// Outlook returns the current value, and the lowest signal in flight that reaches the given value,
// if there is one. If the semaphore has failed, the current value is above all others.
func (s *Semaphore) Outlook(value uint64) (now uint64, next Signal, issued bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.list; l != nil {
		next, issued = l.signals.Lowest(value)
	}
	return s.value.Load(), next, issued
}

// next returns the mark of the work to poll for a value, which is the work that signals the value.
// If the signal waits for several producers, next returns the mark of one whose work is not over
// yet. If there is no work to poll, the mark's Producer is nil.
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

// Ask polls the producer of the signal that will reach a value. It returns the policy for waiting
// for this producer, or nil if polling again is no use.
func (s *Semaphore) PollFor(value uint64, by PollSource) *wake.Policy {
	m := s.next(value)
	if m.Producer == nil {
		return nil
	}
	return m.Producer.PollFor(m.Seq, by)
}

// pollAtOnce is how many producers a query polls at most. Later queries poll the others.
const pollAtOnce = 8

// pollAll polls the producers of all signals in flight, but at most pollAtOnce. It polls the producer
// of the highest signal first.
func (s *Semaphore) pollAll() {
	var asks [pollAtOnce]points.Front[Producer]
	n := 0
	s.mu.Lock()
	if s.list != nil {
		n = s.list.signals.ToPoll(asks[:])
		for i := range s.list.joins {
			for _, m := range s.list.joins[i].marks[1:] {
				if n < len(asks) {
					asks[n] = points.Front[Producer]{Producer: m.Producer, Seq: m.Seq}
					n++
				}
			}
		}
	}
	s.mu.Unlock()
	for i := range asks[:n] {
		asks[i].Producer.PollFor(asks[i].Seq, ByQuery)
	}
}
