package engine

import (
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Submission is one operation with its waits and signals, from the call of Submit until it is
// recycled. Afterwards its timeline reuses the Submission for another operation.
//
// The fields that most operations use come first, so that they share few cache lines: often one
// processor parks a submission and another processor issues it.
type Submission struct {
	Timeline *Timeline               // the timeline to which the program has submitted the operation
	next     *Submission             // the next in a list of ready or free Submissions
	event    *Event                  // the event to record behind the work: at once, on demand, or never
	Err      atomic.Pointer[Failure] // if set, the submission will fail with this error
	Mode     waitMode
	recorded bool // event has been recorded; protected by the ring's mu while the submission is in the ring
	// UsesRest says that Rest has data for this operation. So the engine must call Rest.Release. If
	// Action is nil, the engine calls Rest.Start instead of Op.Run.
	UsesRest bool
	Across   bool // the operation uses memory of another device; implies UsesRest
	// Lends says that Rest.Release signals the points of Order.Free: the program may then reuse
	// memory. So the work is polled even if nobody waits for Signals.
	Lends    bool
	Delivers bool   // Rest.Deliver must be called before the signals are given
	Timed    bool   // an Observer needs an event right behind the work
	Seq      uint64 // number on the timeline, once issued
	Op       work.Op
	// Action is nil if Rest.Start or Op.Run makes the native calls, or if there are none.
	Action Action

	Observers []Observer // most submissions have none

	Waits   []sema.Point
	Signals []sema.Point
	room    room

	parking parking

	Dst, Src Address  // target and source of the operation
	Holds    []Holder // objects held until the stream has passed the work

	Deps    Deps
	Follows Follows

	Rest Rest
}

// room is storage for a Submission's lists, which are mostly short.
type room struct {
	waits   [1]sema.Point
	signals [1]sema.Point
	holds   [2]Holder
}

// A Rest is the part of a Submission that belongs to the layers above the engine. It has the data
// that an operation needs besides the fields of Submission. Each Submission has one Rest, and both
// are reused together. One goroutine at a time calls the methods of a Rest.
type Rest interface {
	// Start makes the native calls of an operation without an Action. started reports whether the
	// stream has received any of them. The engine calls Start, with the timeline locked, if
	// UsesRest is set or the operation makes the stream wait for other code.
	Start(tl *Timeline, dst, src driver.Ptr) (started bool, err error)

	// Deliver is called right before the signals are given or fail, if Delivers is set. It does
	// everything that must be done before the program can see the signals, such as copying the data
	// of a download. err is nil, or the error with which the signals will fail.
	Deliver(err error)

	// Call runs an operation of the host, except a notification. For a host call, Call calls the
	// program's function. Call runs on a goroutine of its own, without locks.
	Call() error

	// Notice returns the program's function of a notification (Kind Notify). The engine calls the
	// function after it has recycled the Submission, so the function must not use the Rest.
	Notice() func() error

	// Release releases and clears everything that the Rest holds. It is called if UsesRest is set.
	// The caller may hold a Timeline.retireMu.
	Release()

	// Leave is called for each submission in flight when Close leaves all native objects to the
	// driver. Then Release is not called. The parameter why is an error that Close returns. The
	// caller holds a Timeline.retireMu and the ring's mu.
	Leave(why error)
}

// An Address is a device address. If Late is nil, the address is Ptr, and Size is not used.
// Otherwise the address is Ptr bytes behind the start of Late, and Late must have Size bytes from
// there. The start of Late may be unknown until the operation is issued.
type Address struct {
	Ptr  driver.Ptr
	Size uint64
	Late Memory
}

// A Memory is device memory that may not be allocated yet, or that may have shrunk.
type Memory interface {
	// Ptr returns the address of the memory, or an error if its first size bytes are not allocated.
	Ptr(size uint64) (driver.Ptr, error)
}

// Resolve returns the address as a pointer, or an error if the memory is not allocated.
func (a Address) Resolve() (driver.Ptr, error) {
	if a.Late == nil {
		return a.Ptr, nil
	}
	base, err := a.Late.Ptr(uint64(a.Ptr) + a.Size)
	return base + a.Ptr, err
}

// A waitMode says what a submission waits for, and what the engine does then.
type waitMode uint8

const (
	// In mode untilIssued, the submission is issued when the work for all its waits has been
	// issued. The timeline's stream waits for that work.
	untilIssued waitMode = iota
	// In mode UntilReached, the submission is issued when all its waits are reached. An operation
	// of the host is not issued: the host runs it when its waits are reached. Submissions that wait
	// for a device of another driver also have this mode.
	UntilReached
	// In mode published, the submission gives its signals when all its waits are reached. Published
	// barriers have this mode.
	published
)

// until returns the condition that releases the timepoints of a submission in this mode.
func (m waitMode) until() sema.Until {
	switch m {
	case untilIssued:
		return sema.UntilIssued
	case published:
		return sema.UntilReachedLazy
	}
	return sema.UntilReached
}

// Init sets up a new Submission.
func (s *Submission) Init(tl *Timeline, r Rest) {
	s.Timeline, s.Rest = tl, r
	s.Waits, s.Signals, s.Holds = s.room.waits[:0], s.room.signals[:0], s.room.holds[:0]
}

// waited reports whether each wait is reached or failed.
func (s *Submission) waited() bool {
	for i := range s.Waits {
		if !s.Waits[i].Over() {
			return false
		}
	}
	return true
}

// reset clears the Submission for its next use.
func (s *Submission) reset() {
	for i := range s.Waits { // usually one element: this loop is cheaper than calling clear
		s.Waits[i].Semaphore = nil
	}
	for i := range s.Signals {
		s.Signals[i].Semaphore = nil
	}
	for i := range s.Holds {
		s.Holds[i] = nil
	}
	s.Waits, s.Signals, s.Holds = s.Waits[:0], s.Signals[:0], s.Holds[:0]
	if len(s.Follows.marks)+len(s.Follows.kept) > 0 {
		s.Follows.reset()
	}
	if len(s.parking.tps) > 0 {
		s.putTimepoints()
	}
	if s.Err.Load() != nil {
		s.Err.Store(nil)
	}
	s.Mode, s.Deps.afterBarrier, s.recorded, s.UsesRest, s.Across, s.parking.reparked, s.Lends, s.Delivers, s.Seq = untilIssued, false, false, false, false, false, false, false, 0
	s.Op, s.Dst, s.Src = work.Op{}, Address{}, Address{}
}

// start makes the operation's native calls, but not those for its waits and its event. dst and src
// are the operation's addresses. started reports whether the stream has received any of the calls.
func (s *Submission) start(tl *Timeline, dst, src driver.Ptr) (started bool, err error) {
	switch {
	case s.Action != nil:
		return s.Action.Issue(s, tl)
	case s.Op.Kind.Waits():
		return tl.AwaitOthers(func() (bool, error) { return s.Rest.Start(tl, dst, src) })
	case s.UsesRest:
		return s.Rest.Start(tl, dst, src)
	}
	return s.Op.Run(tl.Device.Native, tl.Stream, dst, src, nil)
}

// mayUse calls Use of each Holder in Holds, until one returns an error. m is the mark that the
// submission will have.
func (s *Submission) mayUse(m Mark) error {
	for _, h := range s.Holds {
		if err := h.Use(m); err != nil {
			return err
		}
	}
	return nil
}

// unused undoes mayUse after the submission was refused. It reports whether another operation may
// already be waiting for m, although no submission has the number of m now.
func (s *Submission) unused(m Mark) (awaited bool) {
	for _, h := range s.Holds {
		if h.Unuse(m) {
			awaited = true
		}
	}
	return awaited
}

// abroad reports whether the submission is ordered after work of another device (see Follows).
func (s *Submission) abroad() bool {
	return slices.ContainsFunc(s.Follows.marks, func(m Mark) bool { return m.Timeline.Device != s.Timeline.Device })
}
