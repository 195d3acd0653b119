package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// This file implements [sema.Producer] for Timeline and [sema.Waiter] for Submission.

// Want requests polling until the stream has passed seq.
func (tl *Timeline) Want(seq uint64) { tl.want(seq) }

// Passed reports whether the stream is known to have passed seq.
func (tl *Timeline) Passed(seq uint64) bool { return tl.passed.Load() >= seq }

// PollFor polls the timeline up to the number seq, and returns the device's policy for waiting. If
// the parameter by is sema.ByQuery, PollFor always polls. Otherwise PollFor does not poll if the
// lane's thread polls, or if Timeline.skipsPoll returns true.
func (tl *Timeline) PollFor(seq uint64, by sema.PollSource) *wake.Policy {
	rounds, tries := int32(wake.WaiterSkips), watch
	switch {
	case by == sema.ByQuery:
		tl.Poll(seq, 1)
		return &tl.Device.Waits
	case tl.Lane != nil && tl.Lane.PollFor(seq):
		return &tl.Device.Waits
	case by == sema.ByPoller:
		rounds, tries = wake.PollerSkips, 1
	}
	if !tl.skipsPoll(by != sema.ByWaiter, rounds) {
		tl.Poll(seq, tries)
	}
	return &tl.Device.Waits
}

// MarkOf returns the mark of the work that will give the signal p. If p is the signal of a barrier,
// MarkOf returns the first of the marks that the barrier waits for.
func MarkOf(p sema.Signal) Mark { return Mark{p.Producer.(*Timeline), p.Seq} }

// Join adds a mark of package sema.
func (f *Frontier) Join(m sema.Mark) { f.Add(Mark{m.Producer.(*Timeline), m.Seq}) }

// marks appends the marks of the frontier to list, as marks of package sema.
func (f Frontier) marks(list []sema.Mark) []sema.Mark {
	for _, m := range f {
		list = append(list, sema.Mark{Producer: m.Timeline, Seq: m.Seq})
	}
	return list
}

// TimepointReleased is called when a timepoint of the submission s has been released. err is the
// error of a failed wait, or nil. TimepointReleased subtracts one from s.parking.open. If this
// count is still above 0, TimepointReleased returns false and nil. Otherwise there are three cases.
// If s is a published barrier, TimepointReleased gives the signals of s, and returns false and the
// timepoints that the signals release. If s is a lane's submission, TimepointReleased hands s to
// the lane's thread and returns false, or true if the lane refuses s. For any other submission
// TimepointReleased returns true: s is ready.
func (s *Submission) TimepointReleased(err error) (ready bool, more *sema.Timepoint) {
	if err != nil { // the submission will fail, so its other waits do not matter
		s.Err.CompareAndSwap(nil, &Failure{err})
		if s.isParked() { // otherwise registerWaits is still running and will see s.Err
			s.cancelTimepoints()
		}
	}
	if s.parking.open.Add(-1) > 0 {
		return false, nil
	}
	if s.Mode == published {
		return false, s.Timeline.completeBarrier(s)
	}
	if s.ByLane() {
		s.Timeline.Device.unpark(s)
		// If the lane refuses the submission, return true, so that the pending-queue thread fails
		// it. Failing it here could make the recursion too deep.
		return s.Timeline.Lane.Ready(s) != nil, nil
	}
	return true, nil
}

// IssueHere issues a ready submission on the calling thread, or fails it if s.Err is set, and
// returns true. It issues nothing and returns false if the submission runs on the host, if issuing
// might block, if the pool has no event for the submission, or if the stream has 64 or more
// submissions in flight.
func (s *Submission) IssueHere() bool {
	if s.Op.Kind.OnHost() || s.mayWait() || s.lacksEvent() || s.Timeline.Load() >= 64 {
		return false
	}
	s.Timeline.Device.unpark(s)
	s.Timeline.run(s)
	return true
}

// HandOver gives ready submissions to the pending-queue threads of their devices. The list has one
// timepoint of each submission.
func (s *Submission) HandOver(list *sema.Timepoint) {
	var ready readyList
	for t := list; t != nil; {
		next := t.Next() // read it now: once handed over, the submission may reuse its timepoint
		ready.add(t.Waiter().(*Submission))
		t = next
	}
	ready.flush()
}

// A readyList collects ready submissions. It hands consecutive submissions of one device to the
// pending-queue thread of that device in one call.
type readyList struct {
	dev         *Device
	first, last *Submission
}

func (l *readyList) add(s *Submission) {
	if l.dev != s.Timeline.Device {
		l.flush()
		l.dev, l.first = s.Timeline.Device, s
	} else {
		l.last.next = s
	}
	l.last = s
}

func (l *readyList) flush() {
	if l.dev != nil {
		l.dev.readyAll(l.first, l.last)
	}
}
