package engine

import (
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Submission is one operation with its waits and signals, from the call until its signals are
// given. The timeline recycles the record.
//
// The fields that every operation uses come first, to share cache lines: often one processor parks
// a submission and another one issues it.
type Submission struct {
	Timeline *Timeline // takes the work
	next     *Submission
	event    *Event // recorded behind the work: at once, later, or never
	Err      atomic.Pointer[Failure]
	open     atomic.Int32 // unresolved waits, and one for each goroutine that keeps it parked
	Mode     waitMode
	gathered bool   // Deps has the marks of all waits
	late     bool   // a wait is for a barrier's signal, which comes after the work in Deps
	recorded bool   // the event has been recorded; while in the ring, under the ring's mu
	Cold     bool   // Rest may hold resources, so Start and LetGo must be called
	Across   bool   // it uses memory of another device; implies Cold
	again    bool   // it has been enlisted again, so the submitting call no longer issues it
	Lends    bool   // the program waits for Rest.LetGo, even if the submission fails
	Delivers bool   // Rest.Deliver must be called before the signals are given
	Timed    bool   // an Observer needs an event right behind the work
	Seq      uint64 // the work's number, once issued
	Op       work.Op
	Action   Action // nil for a plain operation

	Observers []Observer // mostly none

	Waits   []sema.Point
	Signals []sema.Point
	wait1   [1]sema.Point // first storage of Waits
	signal1 [1]sema.Point // first storage of Signals

	parking

	Dst, Src Address   // of the operation
	Holds    []Holder  // held until the stream has passed the work
	holds2   [2]Holder // first storage of Holds

	Deps    Frontier // marks that the stream must wait for before the work
	events  []*Event // behind Deps, set by findEvents, held; nil where the work is done
	Follows Frontier // marks of other timelines that the issued work is ordered after
	kept    []*Event // events of Deps that must not be recorded anew before the work is done

	Rest Rest
}

// A record is a Submission and a Rest. The Rest belongs to the layers above the engine. It has the data
// that an operation needs besides the fields of Submission. Only one goroutine at a time calls its methods.
type Rest interface {
	// Start makes the native calls of a plain operation. It reports whether the stream has got any
	// of these calls. The engine calls it, with the timeline locked, if the submission is cold or
	// the operation itself waits.
	Start(tl *Timeline, dst, src driver.Ptr) (started bool, err error)

	// Deliver is called right before the signals are given. err is nil, or the error that they fail
	// with. Deliver does what must be done before the program sees the signals, such as copying a
	// download's data.
	Deliver(err error)

	// Call runs the function of a host call. It runs on a goroutine of its own, without locks.
	Call() error

	// Notice returns the function of a notification. The engine calls the function later, when the
	// record may already be in use again.
	Notice() func() error

	// LetGo releases and clears everything that the Rest holds. It is called if the submission is
	// cold. The caller may hold a retireMu.
	LetGo()

	// Leave says that the submission will never release what it holds, because all native objects
	// of its device are left to the driver. The caller holds a retireMu and a ring's mu.
	Leave(why error)
}

// An Address is an address of the device. If Late is not nil, Ptr is an offset into that memory,
// whose address is known only when the operation is issued.
type Address struct {
	Ptr  driver.Ptr
	Late Memory
}

// A Memory has an address once it is allocated.
type Memory interface {
	// Ptr returns the address, or an error if the memory is not allocated.
	Ptr() (driver.Ptr, error)
}

// Resolve returns the address. It is called when the operation is issued.
func (a Address) Resolve() (driver.Ptr, error) {
	if a.Late == nil {
		return a.Ptr, nil
	}
	base, err := a.Late.Ptr()
	return base + a.Ptr, err
}

// A waitMode says when the waits of a submission are resolved.
type waitMode uint8

const (
	untilIssued  waitMode = iota // when all are issued: the stream then waits for their work
	UntilReached                 // when all are reached: for host work, and between two drivers
	passing                      // when all are reached: for a barrier whose signals are published
)

// until returns when the timepoints of a submission are released.
func (m waitMode) until() sema.Until {
	switch m {
	case untilIssued:
		return sema.UntilIssued
	case passing:
		return sema.UntilReachedLazy
	}
	return sema.UntilReached
}

// Init sets up a new record.
func (s *Submission) Init(tl *Timeline, r Rest) {
	s.Timeline, s.Rest = tl, r
	s.Waits, s.Signals, s.Holds = s.wait1[:0], s.signal1[:0], s.holds2[:0]
}

// gather adds the marks of all waits that are not reached to Deps, and returns Ordered. If a wait
// has failed, it returns Failed and the error. If no work that would satisfy a wait has been
// issued, it returns Unknown. In these two cases it leaves Deps empty.
//
// Marks of the submission's own timeline are left out, because the stream runs that work first
// anyway. A barrier keeps them, because it is not in the stream.
func (s *Submission) gather() (sema.Resolution, error) {
	s.late = false
	for i := range s.Waits {
		w := &s.Waits[i]
		if w.Reached() {
			continue
		}
		how, p := w.Semaphore.Next(w.Value, s.Deps.Join)
		switch how {
		case sema.Failed:
			s.DropDeps()
			return sema.Failed, w.Semaphore.Failed()
		case sema.Unknown:
			s.DropDeps()
			return sema.Unknown, nil
		case sema.Ordered:
			s.late = s.late || p.Late
			if p.Producer != s.Timeline || s.Op.Kind == work.Barrier {
				s.Deps.Add(MarkOf(p))
			}
		}
	}
	s.gathered = true
	return sema.Ordered, nil
}

// gatherAll is gather for the goroutine that issues the submission. If a wait has failed or has not
// been issued, it returns an error and the Outcome for it.
func (s *Submission) gatherAll() (Outcome, error) {
	switch how, err := s.gather(); how {
	case sema.Failed:
		return NotIssued, err
	case sema.Unknown:
		return Early, errEarly
	}
	return Issued, nil
}

// waited reports whether all waits are over: reached or failed.
func (s *Submission) waited() bool {
	for i := range s.Waits {
		if !s.Waits[i].Over() {
			return false
		}
	}
	return true
}

// DropDeps clears Deps and releases the events behind them.
func (s *Submission) DropDeps() {
	if s.gathered = false; len(s.Deps) > 0 {
		s.dropDeps()
	}
}

func (s *Submission) dropDeps() {
	clear(s.Deps)
	s.Deps = s.Deps[:0]
	for _, e := range s.events {
		if e != nil {
			e.Drop()
		}
	}
	clear(s.events)
	s.events = s.events[:0]
}

// isParked reports whether the submission is in the list of parked ones. If so, enlist has
// registered all its timepoints. The caller still has one count of open, so the submission does not
// become ready meanwhile.
func (s *Submission) isParked() bool {
	s.Timeline.Device.mu.Lock()
	defer s.Timeline.Device.mu.Unlock()
	return s.after != nil
}

// grab adds one to open, so that a parked submission stays parked. It reports false if the
// submission is ready. The caller holds the device's mu and has found the submission in the list of
// parked ones.
func (s *Submission) grab() bool {
	for {
		n := s.open.Load()
		if n == 0 {
			return false
		}
		if s.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// cancel makes a parked submission fail. The caller has called grab.
func (s *Submission) cancel(err error) {
	s.Err.CompareAndSwap(nil, &Failure{err})
	s.takeBack()
	if s.open.Add(-1) == 0 {
		if s.Mode == passing {
			sema.Release(s.Timeline.completeBarrier(s))
			return
		}
		s.Timeline.Device.ready(s)
	}
}

// takeBack cancels those timepoints of the submission that have not been released.
func (s *Submission) takeBack() {
	for _, t := range s.tps {
		if t.Cancel() {
			s.open.Add(-1)
		}
	}
}

// reset makes the record ready for another submission.
func (s *Submission) reset() {
	for i := range s.Waits { // usually one: a loop is cheaper than the call that clear makes
		s.Waits[i].Semaphore = nil
	}
	for i := range s.Signals {
		s.Signals[i].Semaphore = nil
	}
	for i := range s.Holds {
		s.Holds[i] = nil
	}
	s.Waits, s.Signals, s.Holds = s.Waits[:0], s.Signals[:0], s.Holds[:0]
	if len(s.Follows)+len(s.kept)+len(s.tps) > 0 {
		clear(s.Follows)
		clear(s.kept)
		for _, t := range s.tps {
			s.putTimepoint(t)
		}
		clear(s.tps)
		s.Follows, s.kept, s.tps = s.Follows[:0], s.kept[:0], s.tps[:0]
	}
	if s.Err.Load() != nil {
		s.Err.Store(nil)
	}
	s.Mode, s.late, s.recorded, s.Cold, s.Across, s.again, s.Lends, s.Delivers, s.Seq = untilIssued, false, false, false, false, false, false, false, 0
	s.Op, s.Dst, s.Src = work.Op{}, Address{}, Address{}
}

// start makes the native calls of the operation itself, with its resolved addresses. It reports
// whether the stream has got any of these calls.
func (s *Submission) start(tl *Timeline, dst, src driver.Ptr) (started bool, err error) {
	switch {
	case s.Action != nil:
		return s.Action.Issue(s, tl)
	case s.Op.Kind.Waits():
		return tl.AwaitOthers(func() (bool, error) { return s.Rest.Start(tl, dst, src) })
	case s.Cold:
		return s.Rest.Start(tl, dst, src)
	}
	return s.Op.Run(tl.Device.Native, tl.Stream, dst, src, nil)
}

// mayUse tells every Holder in Holds that work about to be issued at m may use it.
func (s *Submission) mayUse(m Mark) error {
	for _, h := range s.Holds {
		if err := h.Use(m); err != nil {
			return err
		}
	}
	return nil
}

// unused undoes mayUse after the driver has refused the submission. It reports whether an operation
// may already wait for m, although no work has that number.
func (s *Submission) unused(m Mark) (awaited bool) {
	for _, h := range s.Holds {
		if h.Unuse(m) {
			awaited = true
		}
	}
	return awaited
}

// abroad reports whether the submission is ordered after work of another device.
func (s *Submission) abroad() bool {
	return slices.ContainsFunc(s.Follows, func(m Mark) bool { return m.Timeline.Device != s.Timeline.Device })
}
