package engine

import (
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Submission is one operation from the call until its signals. Records are recycled. The fields that
// every operation uses come first and lie together: often one processor parks a submission and another
// one issues it.
type Submission struct {
	Timeline *Timeline // whose work it is
	next     *Submission
	event    *Event // to be recorded behind the work, or behind what comes after it
	Err      atomic.Pointer[Failure]
	open     atomic.Int32 // waits that are not resolved yet, and one while the caller registers them
	Seen     Observer     // nil if nobody observes the submission
	Mode     waitMode
	gathered bool   // deps have been found
	late     bool   // some of the deps are of barriers, which are done after the work that they are behind
	recorded bool   // the event has been recorded; under the ring's mu while the submission is in the ring
	Cold     bool   // the fields below rest, or rest itself, may be in use
	Across   bool   // it uses memory of another device; then it is cold
	again    bool   // it has been enlisted again: the call does not issue it any more
	Lends    bool   // somebody waits until the submission lets go, even if its signals fail
	Delivers bool   // rest has something to deliver before the signals
	Seq      uint64 // once issued
	Op       work.Op
	Action   Action // of the operation, if it is not a plain one

	Waits   []sema.Point
	Signals []sema.Point
	wait1   [1]sema.Point // where waits and signals begin
	signal1 [1]sema.Point

	parking

	Dst, Src Address   // what the operation is done with
	Uses     []Holder  // what the work uses; held until the stream has passed the work
	uses2    [2]Holder // where uses begins

	Deps    Frontier // what the work must come after
	events  []*Event // behind the deps, held, once they have been looked for; nil for one that is done
	Follows Frontier // what the work comes after on other timelines
	kept    []*Event // of others, which must not be recorded anew before the work is done

	Rest Rest // what the record has for the layers above
}

// A Rest is the part of a record that belongs to the layers above: what an operation needs besides a
// submission's fields. One goroutine at a time has the submission, and calls it.
type Rest interface {
	// Start makes the native calls of a plain operation, and reports whether the stream has got any
	// of them. It is called if the submission is cold, with the timeline locked.
	Start(tl *Timeline, dst, src driver.Ptr) (started bool, err error)

	// Deliver is called right before the signals are given, with the error with which they fail. It
	// owes the program what the operation promised, such as the data of a download.
	Deliver(err error)

	// Call runs the function of a host call. It runs on a goroutine of its own, without locks.
	Call() error

	// Notice returns the function of a notification. The caller calls it when the record may be in use
	// again already.
	Notice() func() error

	// LetGo lets go of what the part holds, and empties it. It is called if the submission is cold. The
	// caller may hold a retireMu.
	LetGo()

	// Leave says that the submission will never let go: all that its device has is left to the driver.
	Leave(why error)
}

// An Address is an address of the device. If late is not nil the address is relative to that memory, whose
// own address is known only when the operation is issued.
type Address struct {
	Ptr  driver.Ptr
	Late Memory
}

// A Memory has an address, perhaps only from its allocation on.
type Memory interface {
	// Ptr returns the address, or an error if the memory is not allocated.
	Ptr() (driver.Ptr, error)
}

// Resolve finds the address, when the operation is being issued.
func (a Address) Resolve() (driver.Ptr, error) {
	if a.Late == nil {
		return a.Ptr, nil
	}
	base, err := a.Late.Ptr()
	return base + a.Ptr, err
}

// A waitMode says what must have become of a submission's waits before it goes on.
type waitMode uint8

const (
	untilIssued  waitMode = iota // each has been issued: the stream waits for the rest
	UntilReached                 // each has been reached: host work, and where two drivers meet
	passing                      // a barrier, which is done when its deps are
)

// until says when the timepoints of a submission are released.
func (m waitMode) until() sema.Until {
	switch m {
	case untilIssued:
		return sema.UntilIssued
	case passing:
		return sema.UntilReachedLazy
	}
	return sema.UntilReached
}

// Init sets up a new record of a timeline.
func (s *Submission) Init(tl *Timeline, r Rest) {
	s.Timeline, s.Rest = tl, r
	s.Waits, s.Signals, s.Uses = s.wait1[:0], s.signal1[:0], s.uses2[:0]
}

// gather finds what the work must come after. If a wait has failed it returns why, and for unknown that somebody has still
// to issue what a wait is for; then there are no deps. What the work's own stream does before it is left out, unless it is a
// barrier, which may have no work.
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
			s.LetGoAll()
			return sema.Failed, w.Semaphore.Failed()
		case sema.Unknown:
			s.LetGoAll()
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

// gatherAll is gather for who issues the submission. It returns an error, and what becomes of that, if there are no deps.
func (s *Submission) gatherAll() (Outcome, error) {
	switch how, err := s.gather(); how {
	case sema.Failed:
		return NotIssued, err
	case sema.Unknown:
		return Early, errEarly
	}
	return Issued, nil
}

// waited reports whether all that the submission waits for is over.
func (s *Submission) waited() bool {
	for i := range s.Waits {
		if !s.Waits[i].Over() {
			return false
		}
	}
	return true
}

// LetGoAll takes all deps away.
func (s *Submission) LetGoAll() {
	if s.gathered = false; len(s.Deps) > 0 {
		s.letGoDeps()
	}
}

func (s *Submission) letGoDeps() {
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

// isParked reports whether the submission is in the list of parked ones: who enlists it has left all its timepoints. The caller holds
// a count of it.
func (s *Submission) isParked() bool {
	s.Timeline.Device.mu.Lock()
	defer s.Timeline.Device.mu.Unlock()
	return s.after != nil
}

// grab adds a count to a parked submission, so that it stays what it is; it reports false if it is ready. The caller holds
// the device's mu and has found it in the list.
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

// cancel makes a parked submission that has been grabbed fail.
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

// takeBack takes the timepoints back that have not been released.
func (s *Submission) takeBack() {
	for _, t := range s.tps {
		if t.Cancel() {
			s.open.Add(-1)
		}
	}
}

// reset makes a record of a submission that is over ready to be used again.
func (s *Submission) reset() {
	for i := range s.Waits { // mostly there is one, and to clear many at a time takes a call
		s.Waits[i].Semaphore = nil
	}
	for i := range s.Signals {
		s.Signals[i].Semaphore = nil
	}
	for i := range s.Uses {
		s.Uses[i] = nil
	}
	s.Waits, s.Signals, s.Uses = s.Waits[:0], s.Signals[:0], s.Uses[:0]
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

// start makes the native calls of the operation itself, with what its addresses have turned out to be. It
// reports whether the stream has got any of them.
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

// mayUse notes that the work, which is about to be issued at the mark, may use what it holds.
func (s *Submission) mayUse(m Mark) error {
	for _, h := range s.Uses {
		if err := h.Use(m); err != nil {
			return err
		}
	}
	return nil
}

// unused undoes mayUse, as the driver has refused the submission. It reports whether somebody may wait for
// the mark already, and so for a number that no work has.
func (s *Submission) unused(m Mark) (awaited bool) {
	for _, h := range s.Uses {
		if h.Unuse(m) {
			awaited = true
		}
	}
	return awaited
}

// abroad reports whether the submission comes after work of another device.
func (s *Submission) abroad() bool {
	return slices.ContainsFunc(s.Follows, func(m Mark) bool { return m.Timeline.Device != s.Timeline.Device })
}
