package gpu

import "github.com/puregpu/puregpu/runtime/internal/work"

// inline is how many submissions a signal of the host issues itself at the most. To hand one over to the device's thread
// takes many times as long as to issue it, and of many the thread does the rest.
const inline = 1

// handOver is how many submissions are handed over to a device's thread at a time.
const handOver = 32

// release passes timepoints on, without any lock held, for work that is over or has failed. Functions are called on goroutines of
// their own, for the caller may have more to do.
func release(list *timepoint) { releaseIssuing(list, 0) }

// releaseIssuing is release for a caller that may issue so many of the submissions itself.
func releaseIssuing(list *timepoint, inline int) {
	for t := passOn(list, inline); t != nil; t = t.next {
		go t.fn(received(t.err))
	}
}

// releaseFromHost passes timepoints on for a call of the program's, which calls the functions in the end. One that does not return
// keeps no other from being called.
func releaseFromHost(list *timepoint) { call(passOn(list, inline)) }

func call(list *timepoint) {
	for t := list; t != nil; t = t.next {
		callOne(t)
	}
}

func callOne(t *timepoint) {
	returned := false
	defer func() {
		if !returned { // it panics, or ends the goroutine
			call(t.next)
		}
	}()
	t.fn(received(t.err))
	returned = true
}

// passOn counts submissions down, of which it issues so many itself, passes links on and wakes who has parked. It returns the
// timepoints with functions, in order.
func passOn(list *timepoint, inline int) *timepoint {
	fromHost, woken := inline > 0, false
	var ready readyList
	var functions timepointList
	for t := list; t != nil; {
		next := t.next
		t.next = nil
		switch s := t.sub; {
		case s != nil:
			isReady, more := s.resolved(t)
			next = more.before(next) // not by recursion: barriers and links may be chained without end
			switch {
			case !isReady:
			case s.op.Kind == work.Collect && s.arriveDirectly():
			case inline > 0 && s.mayIssue():
				inline--
				s.q.dev.unpark(s)
				s.q.run(s)
			default:
				ready.add(s)
			}
		case t.link != nil:
			next = t.link.pass(t.err).before(next)
		case t.host != nil:
			t.host.wake()
			woken = true
		case t.fn != nil:
			functions.join(t)
		}
		t = next
	}
	ready.flush()
	if woken && fromHost {
		go giveWay()
	}
	return functions.first
}

// giveWay does nothing. Go runs what was made ready last next on the same processor, and for some 80 µs leaves it to that, in case whoever
// made it ready is about to wait. As the last one giveWay has who was woken stand in line instead, from where an idle processor
// takes it at once, also if the program computes on after its signal.
func giveWay() {}

// mayIssue reports whether whoever has made a submission ready may issue it, and will hardly be held up by that.
func (s *submission) mayIssue() bool {
	return !s.op.Kind.OnHost() && !s.mayWait() && !s.lacksEvent() && s.q.load() < 64
}

// A readyList gathers submissions of a device that are ready to be issued.
type readyList struct {
	dev         *Device
	first, last *submission
	n           int
}

func (l *readyList) add(s *submission) {
	if l.n > 0 && (l.dev != s.q.dev || l.n == handOver) {
		l.flush()
	}
	if l.n == 0 {
		l.dev, l.first = s.q.dev, s
	} else {
		l.last.next = s
	}
	l.last = s
	l.n++
}

func (l *readyList) flush() {
	if l.n > 0 {
		l.dev.readyAll(l.first, l.last)
	}
	*l = readyList{}
}
