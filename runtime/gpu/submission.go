package gpu

import (
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Order says what an operation waits for and what it signals. The lists are copied by the call. Signals happen when the
// work is done, in the order of the list.
//
// The points in Free are signalled when nothing touches any more what the operation was given: neither the device nor the runtime its slices,
// memory that was imported, or buffers. A signal that is reached says that as well. One that has failed does not, for a device may go
// on with work whose semaphore was failed, or whose channel was aborted; Free tells then. It says nothing about success, and of a lost
// device it tells when that is closed. A value that has been reached by then stays. If the call returns an error nothing is signalled.
type Order struct {
	Wait   []Point
	Signal []Point
	Free   []Point

	// Label says in errors, traces and profiles what the operation is for; "" says nothing. Those of a Stream get one, and a Timing, by [Stream.Submit].
	Label string

	// Timing, if it is not nil, is to tell how long the device takes.
	Timing *Timing

	edges timingEdges
}

// A submission is one operation from the call until its signals. Records are recycled. What every operation uses comes
// first and lies together: often one processor parks a submission and another one issues it.
type submission struct {
	q        *Queue
	next     *submission
	event    *event // to be recorded behind the work, or behind what comes after it
	err      atomic.Pointer[failure]
	open     atomic.Int32 // waits that are not resolved yet, and one while the caller registers them
	span     *span        // what is noted of it; nil if nobody wants to know
	mode     waitMode
	gathered bool   // deps have been found
	late     bool   // some of the deps are of barriers, which are done after the work that they are behind
	recorded bool   // the event has been recorded; under the ring's mu while the submission is in the ring
	cold     bool   // what comes last in the record may be in use
	freed    bool   // it is a dealloca that has taken the memory away
	again    bool   // it has been enlisted again: the call does not issue it any more
	seq      uint64 // once issued
	op       work.Op
	act      action // of the operation, if it is not a plain one

	waits   []sema.Point
	signals []sema.Point
	wait1   [1]sema.Point // where waits and signals begin
	signal1 [1]sema.Point

	parking

	dst, src address    // what the operation is done with
	keep     [2]*Buffer // those of dst and src; held until the work is done

	deps     frontier    // what the work must come after
	left     frontier    // uses of the memory to be freed that it does not come after
	awaiting *parkedFree // while it waits for them
	events   []*event    // behind the deps, held, once they have been looked for; nil for one that is done
	follows  frontier    // what the work comes after on other timelines
	held     []*event    // of others, which must not be recorded anew before the work is done

	// What few operations use, each part in the file of its subject: see letGoCold and resetCold.
	label  string       // of Order
	lent   *lent        // to be told when the submission lets go of what it holds
	shared *SharedEvent // to be recorded, or waited for
	fn     func() error // of a host call
	launchPart
	stagingPart
	nativePart
	executePart
	collectPart
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

func newSubmission(q *Queue) *submission {
	s := &submission{q: q}
	s.waits, s.signals = s.wait1[:0], s.signal1[:0]
	return s
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
			if p.Producer != s.q.tl || s.op.Kind == work.Barrier {
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
	s.q.tl.dev.mu.Lock()
	defer s.q.tl.dev.mu.Unlock()
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
			sema.Release(s.q.completeBarrier(s))
			return
		}
		s.q.tl.dev.ready(s)
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
	s.waits, s.signals = s.waits[:0], s.signals[:0]
	if len(s.follows)+len(s.held)+len(s.tps) > 0 {
		clear(s.follows)
		clear(s.held)
		for _, t := range s.tps {
			s.putTimepoint(t)
		}
		clear(s.tps)
		s.follows, s.held, s.tps = s.follows[:0], s.held[:0], s.tps[:0]
	}
	if s.cold {
		s.resetCold()
	}
	if s.err.Load() != nil {
		s.err.Store(nil)
	}
	s.mode, s.late, s.recorded, s.again, s.keep, s.seq = untilIssued, false, false, false, [2]*Buffer{}, 0
	s.op, s.dst, s.src = work.Op{}, address{}, address{}
}

func (s *submission) resetCold() {
	s.launchPart.reset()
	s.stagingPart = stagingPart{}
	s.nativePart = nativePart{ptrs: s.ptrs}
	s.executePart.reset()
	s.collectPart.reset()
	s.label, s.lent, s.shared, s.fn, s.cold = "", nil, nil, nil, false
}

// start makes the native calls of the operation itself, with what its addresses have turned out to be. It reports whether the stream
// has got any of them.
func (s *submission) start(tl *timeline, dst, src driver.Ptr) (started bool, err error) {
	switch {
	case s.act != nil:
		return s.act.issue(s, tl)
	case s.op.Kind.Waits():
		return tl.awaitOthers(func() (bool, error) { return s.startWith(tl, dst, src) })
	}
	if s.cold || s.across(tl.dev) {
		return s.startWith(tl, dst, src)
	}
	return s.op.Run(tl.dev.drv, tl.h, dst, src, nil)
}

// startWith is start for what needs more than addresses.
func (s *submission) startWith(tl *timeline, dst, src driver.Ptr) (started bool, err error) {
	x := work.Extra{Launch: &s.launch}
	if s.across(tl.dev) {
		if x.DstOf, x.SrcOf, err = s.q.dev.owners(s.keep[0], s.keep[1]); err != nil {
			return false, err
		}
	}
	if err := s.resolveArgs(); err != nil {
		return false, err
	}
	if s.shared != nil {
		x.Event = s.shared.h
	}
	if s.stage != nil {
		x.Host, x.Pinned = s.stage.host, s.stage.ptr
	}
	return s.op.Run(tl.dev.drv, tl.h, dst, src, &x)
}

// named yields the buffers that the call named, each of which the submission holds. Those that a recording names are apart.
func (s *submission) named(yield func(*Buffer) bool) {
	for _, b := range s.keep {
		if b != nil && !yield(b) {
			return
		}
	}
	if !s.cold {
		return
	}
	for i := range s.bound {
		if b := s.bound[i].held; b != nil && !yield(b) {
			return
		}
	}
	for i := range s.binds {
		if !yield(s.binds[i].Buffer) {
			return
		}
	}
}

// abroad reports whether the submission comes after work of another device.
func (s *submission) abroad() bool {
	return slices.ContainsFunc(s.follows, func(m mark) bool { return m.tl.dev != s.q.tl.dev })
}

// across reports whether one of the submission's buffers is another device's.
func (s *submission) across(d *nativeDevice) bool {
	a, b := s.keep[0], s.keep[1]
	return a != nil && &a.dev.native != d || b != nil && &b.dev.native != d
}
