package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A timeline is a [sema.Producer], and a submission is a [sema.Waiter].

// Want has the device asked until seq is done.
func (tl *Timeline) Want(seq uint64) { tl.want(seq) }

// Passed reports whether the stream is known to have passed seq.
func (tl *Timeline) Passed(seq uint64) bool { return tl.passed.Load() >= seq }

// Ask asks the device whether seq is done. The thread of an idle lane asks by itself.
func (tl *Timeline) Ask(seq uint64, by sema.Asker) *wake.Policy {
	rounds, times := int32(wake.WaiterRests), watch
	switch {
	case by == sema.ByQuery:
		tl.Poll(seq, 1)
		return &tl.Device.Waits
	case tl.Lane != nil && tl.Lane.Ask(seq):
		return &tl.Device.Waits
	case by == sema.ByPoller:
		rounds, times = wake.PollerRests, 1
	}
	if !tl.crowded(by != sema.ByWaiter, rounds) {
		tl.Poll(seq, times)
	}
	return &tl.Device.Waits
}

// MarkOf returns the place behind which a signal is given.
func MarkOf(p sema.Signal) Mark { return Mark{p.Producer.(*Timeline), p.Seq} }

// Join adds a mark of a semaphore's.
func (f *Frontier) Join(m sema.Mark) { f.Add(Mark{m.Producer.(*Timeline), m.Seq}) }

// marks appends the frontier to a list for semaphores.
func (f Frontier) marks(list []sema.Mark) []sema.Mark {
	for _, m := range f {
		list = append(list, sema.Mark{Producer: m.Timeline, Seq: m.Seq})
	}
	return list
}

// Resolved is called when a timepoint of a parked submission is released. A ready submission of a
// lane goes to the lane's thread at once, and not through the device's. A barrier is done, and
// returns what its signals release.
func (s *Submission) Resolved(err error) (ready bool, more *sema.Timepoint) {
	if err != nil { // no use in waiting for the others
		s.Err.CompareAndSwap(nil, &Failure{err})
		if s.isParked() { // else whoever enlists it finds the error when it has been parked
			s.takeBack()
		}
	}
	if s.open.Add(-1) > 0 {
		return false, nil
	}
	if s.Mode == passing {
		return false, s.Timeline.completeBarrier(s)
	}
	if s.ByLane() {
		s.Timeline.Device.unpark(s)
		return s.Timeline.Lane.Ready(s) != nil, nil // the device's thread fails it: that would nest without end here
	}
	return true, nil
}

// IssueHere issues a ready submission, unless it may hold this thread up.
func (s *Submission) IssueHere() bool {
	if s.Op.Kind.OnHost() || s.mayWait() || s.lacksEvent() || s.Timeline.Load() >= 64 {
		return false
	}
	s.Timeline.Device.unpark(s)
	s.Timeline.run(s)
	return true
}

// HandOver gives ready submissions to the threads of their devices.
func (s *Submission) HandOver(chain *sema.Timepoint) {
	var ready readyList
	for t := chain; t != nil; {
		next := t.Next() // which the submission may use again once it is handed over
		ready.add(t.Waiter().(*Submission))
		t = next
	}
	ready.flush()
}

// A readyList gathers submissions of a device that are ready to be issued.
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
