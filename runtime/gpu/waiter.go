package gpu

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/wake"
)

// A timeline is a [sema.Producer], and a submission is a [sema.Waiter].

// Want has the device asked until seq is done.
func (tl *timeline) Want(seq uint64) { tl.want(seq) }

// Passed reports whether the stream is known to have passed seq.
func (tl *timeline) Passed(seq uint64) bool { return tl.passed.Load() >= seq }

// Ask asks the device whether seq is done. The thread of an idle lane asks by itself.
func (tl *timeline) Ask(seq uint64, by sema.Asker) *wake.Policy {
	rounds, times := int32(wake.WaiterRests), watch
	switch {
	case by == sema.ByQuery:
		tl.poll(seq, 1)
		return &tl.dev.waits
	case tl.lane != nil && tl.lane.ask(seq):
		return &tl.dev.waits
	case by == sema.ByPoller:
		rounds, times = wake.PollerRests, 1
	}
	if !tl.crowded(by != sema.ByWaiter, rounds) {
		tl.poll(seq, times)
	}
	return &tl.dev.waits
}

// markOf returns the place behind which a signal is given.
func markOf(p sema.Signal) mark { return mark{p.Producer.(*timeline), p.Seq} }

// join adds a mark of a semaphore's.
func (f *frontier) join(m sema.Mark) { f.add(mark{m.Producer.(*timeline), m.Seq}) }

// marks appends the frontier to a list for semaphores.
func (f frontier) marks(list []sema.Mark) []sema.Mark {
	for _, m := range f {
		list = append(list, sema.Mark{Producer: m.tl, Seq: m.seq})
	}
	return list
}

// Resolved is called when a timepoint of a parked submission is released. A ready submission of a
// lane goes to the lane's thread at once, and not through the device's. A barrier is done, and
// returns what its signals release.
func (s *submission) Resolved(err error) (ready bool, more *sema.Timepoint) {
	if err != nil { // no use in waiting for the others
		s.err.CompareAndSwap(nil, &failure{err})
		if s.isParked() { // else whoever enlists it finds the error when it has been parked
			s.takeBack()
		}
	}
	if s.open.Add(-1) > 0 {
		return false, nil
	}
	if s.mode == passing {
		return false, s.tl.completeBarrier(s)
	}
	if s.byLane() {
		s.tl.dev.unpark(s)
		return s.tl.lane.ready(s) != nil, nil // the device's thread fails it: that would nest without end here
	}
	return true, nil
}

// IssueHere issues a ready submission, unless it may hold this thread up.
func (s *submission) IssueHere() bool {
	if s.op.Kind.OnHost() || s.mayWait() || s.lacksEvent() || s.tl.load() >= 64 {
		return false
	}
	s.tl.dev.unpark(s)
	s.tl.run(s)
	return true
}

// HandOver gives ready submissions to the threads of their devices.
func (s *submission) HandOver(chain *sema.Timepoint) {
	var ready readyList
	for t := chain; t != nil; {
		next := t.Next() // which the submission may use again once it is handed over
		ready.add(t.Waiter().(*submission))
		t = next
	}
	ready.flush()
}

// A readyList gathers submissions of a device that are ready to be issued.
type readyList struct {
	dev         *nativeDevice
	first, last *submission
}

func (l *readyList) add(s *submission) {
	if l.dev != s.tl.dev {
		l.flush()
		l.dev, l.first = s.tl.dev, s
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
