package gpu

import (
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A submission is one operation from the call until its signals. Records are recycled. The fields that
// every operation uses come first and lie together: often one processor parks a submission and another
// one issues it.
type submission struct {
	tl       *timeline // whose work it is
	next     *submission
	event    *event // to be recorded behind the work, or behind what comes after it
	err      atomic.Pointer[failure]
	open     atomic.Int32 // waits that are not resolved yet, and one while the caller registers them
	seen     observer     // nil if nobody observes the submission
	mode     waitMode
	gathered bool   // deps have been found
	late     bool   // some of the deps are of barriers, which are done after the work that they are behind
	recorded bool   // the event has been recorded; under the ring's mu while the submission is in the ring
	cold     bool   // the fields below rest, or rest itself, may be in use
	across   bool   // it uses memory of another device; then it is cold
	again    bool   // it has been enlisted again: the call does not issue it any more
	lends    bool   // somebody waits until the submission lets go, even if its signals fail
	delivers bool   // rest has something to deliver before the signals
	seq      uint64 // once issued
	op       work.Op
	act      action // of the operation, if it is not a plain one

	waits   []sema.Point
	signals []sema.Point
	wait1   [1]sema.Point // where waits and signals begin
	signal1 [1]sema.Point

	parking

	dst, src address   // what the operation is done with
	uses     []holder  // what the work uses; held until the stream has passed the work
	uses2    [2]holder // where uses begins

	deps    frontier // what the work must come after
	events  []*event // behind the deps, held, once they have been looked for; nil for one that is done
	follows frontier // what the work comes after on other timelines
	kept    []*event // of others, which must not be recorded anew before the work is done

	rest rest // what the record has for the layers above
}

// A rest is the part of a record that belongs to the layers above: what an operation needs besides a
// submission's fields. One goroutine at a time has the submission, and calls it.
type rest interface {
	// start makes the native calls of a plain operation, and reports whether the stream has got any
	// of them. It is called if the submission is cold, with the timeline locked.
	start(tl *timeline, dst, src driver.Ptr) (started bool, err error)

	// deliver is called right before the signals are given, with the error with which they fail. It
	// owes the program what the operation promised, such as the data of a download.
	deliver(err error)

	// call runs the function of a host call. It runs on a goroutine of its own, without locks.
	call() error

	// notice returns the function of a notification. The caller calls it when the record may be in use
	// again already.
	notice() func() error

	// letGo lets go of what the part holds, and empties it. It is called if the submission is cold. The
	// caller may hold a retireMu.
	letGo()

	// leave says that the submission will never let go: all that its device has is left to the driver.
	leave(why error)
}

// An address is an address of the device. If late is not nil the address is relative to that memory, whose
// own address is known only when the operation is issued.
type address struct {
	ptr  driver.Ptr
	late memory
}

// A memory has an address, perhaps only from its allocation on.
type memory interface {
	// ptr returns the address, or an error if the memory is not allocated.
	ptr() (driver.Ptr, error)
}

// resolve finds the address, when the operation is being issued.
func (a address) resolve() (driver.Ptr, error) {
	if a.late == nil {
		return a.ptr, nil
	}
	base, err := a.late.ptr()
	return base + a.ptr, err
}

// A waitMode says what must have become of a submission's waits before it goes on.
type waitMode uint8

const (
	untilIssued  waitMode = iota // each has been issued: the stream waits for the rest
	untilReached                 // each has been reached: host work, and where two drivers meet
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

// init sets up a new record of a timeline.
func (s *submission) init(tl *timeline, r rest) {
	s.tl, s.rest = tl, r
	s.waits, s.signals, s.uses = s.wait1[:0], s.signal1[:0], s.uses2[:0]
}

// gather finds what the work must come after. If a wait has failed it returns why, and for unknown that somebody has still
// to issue what a wait is for; then there are no deps. What the work's own stream does before it is left out, unless it is a
// barrier, which may have no work.
func (s *submission) gather() (sema.Resolution, error) {
	s.late = false
	for i := range s.waits {
		w := &s.waits[i]
		if w.Reached() {
			continue
		}
		how, p := w.Semaphore.Next(w.Value, s.deps.join)
		switch how {
		case sema.Failed:
			s.letGoAll()
			return sema.Failed, w.Semaphore.Failed()
		case sema.Unknown:
			s.letGoAll()
			return sema.Unknown, nil
		case sema.Ordered:
			s.late = s.late || p.Late
			if p.Producer != s.tl || s.op.Kind == work.Barrier {
				s.deps.add(markOf(p))
			}
		}
	}
	s.gathered = true
	return sema.Ordered, nil
}

// gatherAll is gather for who issues the submission. It returns an error, and what becomes of that, if there are no deps.
func (s *submission) gatherAll() (outcome, error) {
	switch how, err := s.gather(); how {
	case sema.Failed:
		return notIssued, err
	case sema.Unknown:
		return early, errEarly
	}
	return issuedWork, nil
}

// waited reports whether all that the submission waits for is over.
func (s *submission) waited() bool {
	for i := range s.waits {
		if !s.waits[i].Over() {
			return false
		}
	}
	return true
}

// letGoAll takes all deps away.
func (s *submission) letGoAll() {
	if s.gathered = false; len(s.deps) > 0 {
		s.letGoDeps()
	}
}

func (s *submission) letGoDeps() {
	clear(s.deps)
	s.deps = s.deps[:0]
	for _, e := range s.events {
		if e != nil {
			e.drop()
		}
	}
	clear(s.events)
	s.events = s.events[:0]
}

// isParked reports whether the submission is in the list of parked ones: who enlists it has left all its timepoints. The caller holds
// a count of it.
func (s *submission) isParked() bool {
	s.tl.dev.mu.Lock()
	defer s.tl.dev.mu.Unlock()
	return s.after != nil
}

// grab adds a count to a parked submission, so that it stays what it is; it reports false if it is ready. The caller holds
// the device's mu and has found it in the list.
func (s *submission) grab() bool {
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
func (s *submission) cancel(err error) {
	s.err.CompareAndSwap(nil, &failure{err})
	s.takeBack()
	if s.open.Add(-1) == 0 {
		if s.mode == passing {
			sema.Release(s.tl.completeBarrier(s))
			return
		}
		s.tl.dev.ready(s)
	}
}

// takeBack takes the timepoints back that have not been released.
func (s *submission) takeBack() {
	for _, t := range s.tps {
		if t.Cancel() {
			s.open.Add(-1)
		}
	}
}

// reset makes a record of a submission that is over ready to be used again.
func (s *submission) reset() {
	for i := range s.waits { // mostly there is one, and to clear many at a time takes a call
		s.waits[i].Semaphore = nil
	}
	for i := range s.signals {
		s.signals[i].Semaphore = nil
	}
	for i := range s.uses {
		s.uses[i] = nil
	}
	s.waits, s.signals, s.uses = s.waits[:0], s.signals[:0], s.uses[:0]
	if len(s.follows)+len(s.kept)+len(s.tps) > 0 {
		clear(s.follows)
		clear(s.kept)
		for _, t := range s.tps {
			s.putTimepoint(t)
		}
		clear(s.tps)
		s.follows, s.kept, s.tps = s.follows[:0], s.kept[:0], s.tps[:0]
	}
	if s.err.Load() != nil {
		s.err.Store(nil)
	}
	s.mode, s.late, s.recorded, s.cold, s.across, s.again, s.lends, s.delivers, s.seq = untilIssued, false, false, false, false, false, false, false, 0
	s.op, s.dst, s.src = work.Op{}, address{}, address{}
}

// start makes the native calls of the operation itself, with what its addresses have turned out to be. It
// reports whether the stream has got any of them.
func (s *submission) start(tl *timeline, dst, src driver.Ptr) (started bool, err error) {
	switch {
	case s.act != nil:
		return s.act.issue(s, tl)
	case s.op.Kind.Waits():
		return tl.awaitOthers(func() (bool, error) { return s.rest.start(tl, dst, src) })
	case s.cold:
		return s.rest.start(tl, dst, src)
	}
	return s.op.Run(tl.dev.drv, tl.h, dst, src, nil)
}

// mayUse notes that the work, which is about to be issued at the mark, may use what it holds.
func (s *submission) mayUse(m mark) error {
	for _, h := range s.uses {
		if err := h.use(m); err != nil {
			return err
		}
	}
	return nil
}

// unused undoes mayUse, as the driver has refused the submission. It reports whether somebody may wait for
// the mark already, and so for a number that no work has.
func (s *submission) unused(m mark) (awaited bool) {
	for _, h := range s.uses {
		if h.unuse(m) {
			awaited = true
		}
	}
	return awaited
}

// abroad reports whether the submission comes after work of another device.
func (s *submission) abroad() bool {
	return slices.ContainsFunc(s.follows, func(m mark) bool { return m.tl.dev != s.tl.dev })
}
