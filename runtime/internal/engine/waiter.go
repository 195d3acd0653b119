package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// This file makes a Timeline a [sema.Producer] and a Submission a [sema.Waiter].

// Want requests polling until the stream has passed seq.
func (tl *Timeline) Want(seq uint64) { tl.want(seq) }

// Passed reports whether the stream is known to have passed seq.
func (tl *Timeline) Passed(seq uint64) bool { return tl.passed.Load() >= seq }

// Ask polls the timeline for the completion of seq. It does not if the lane's thread polls, or if
// the driver should be left to goroutines that issue work (see skipsPoll). It returns the policy
// for waiting.
func (tl *Timeline) PollFor(seq uint64, by sema.PollSource) *wake.Policy {
	rounds, times := int32(wake.WaiterSkips), watch
	switch {
	case by == sema.ByQuery:
		tl.Poll(seq, 1)
		return &tl.Device.Waits
	case tl.Lane != nil && tl.Lane.PollFor(seq):
		return &tl.Device.Waits
	case by == sema.ByPoller:
		rounds, times = wake.PollerSkips, 1
	}
	if !tl.skipsPoll(by != sema.ByWaiter, rounds) {
		tl.Poll(seq, times)
	}
	return &tl.Device.Waits
}

// MarkOf returns the mark of the work that gives a signal.
func MarkOf(p sema.Signal) Mark { return Mark{p.Producer.(*Timeline), p.Seq} }

// Join adds a mark that comes from a semaphore.
func (f *Frontier) Join(m sema.Mark) { f.Add(Mark{m.Producer.(*Timeline), m.Seq}) }

// marks appends the frontier to list, as marks for semaphores.
func (f Frontier) marks(list []sema.Mark) []sema.Mark {
	for _, m := range f {
		list = append(list, sema.Mark{Producer: m.Timeline, Seq: m.Seq})
	}
	return list
}

// TimepointReleased is called when a timepoint of a parked submission is released. After the last
// one, TimepointReleased hands a lane's submission directly to the lane's thread. It completes a
// passing barrier, and returns the timepoints that the barrier's signals release. For any other
// submission it reports that the submission is ready.
func (s *Submission) TimepointReleased(err error) (ready bool, more *sema.Timepoint) {
	if err != nil { // the submission will fail, so the other waits do not matter
		s.Err.CompareAndSwap(nil, &Failure{err})
		if s.isParked() { // else registerWaits is still registering waits, and will find the error
			s.cancelTimepoints()
		}
	}
	if s.open.Add(-1) > 0 {
		return false, nil
	}
	if s.Mode == published {
		return false, s.Timeline.completeBarrier(s)
	}
	if s.ByLane() {
		s.Timeline.Device.unpark(s)
		// If the lane refuses the submission, return true, so that the device's thread fails it.
		// Failing it here could nest without limit.
		return s.Timeline.Lane.Ready(s) != nil, nil
	}
	return true, nil
}

// IssueHere issues a ready submission on this thread. It reports false, and does nothing, if that
// might block.
func (s *Submission) IssueHere() bool {
	if s.Op.Kind.OnHost() || s.mayWait() || s.lacksEvent() || s.Timeline.Load() >= 64 {
		return false
	}
	s.Timeline.Device.unpark(s)
	s.Timeline.run(s)
	return true
}

// HandOver gives the ready submissions of a chain to the threads of their devices.
func (s *Submission) HandOver(chain *sema.Timepoint) {
	var ready readyList
	for t := chain; t != nil; {
		next := t.Next() // first: once handed over, the submission may use its timepoint again
		ready.add(t.Waiter().(*Submission))
		t = next
	}
	ready.flush()
}

// A readyList gathers ready submissions of one device, to hand them over together.
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
