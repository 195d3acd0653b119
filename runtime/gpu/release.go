package gpu

// inline is how many submissions a signal of the host issues itself at the most. To hand one over to the device's thread
// takes many times as long as to issue it, and of many the thread does the rest.
const inline = 1

// handOver is how many submissions are handed over to a device's thread at a time.
const handOver = 32

// release passes timepoints on, without any lock held: submissions count down, functions are called. on is the device whose
// thread may be calling, or nil.
func release(list *timepoint, on *Device) { releaseUpTo(list, on, 0) }

// releaseHere is release by whoever gives the device work, on a thread to which it is bound or not.
func (d *Device) releaseHere(list *timepoint, onThread bool) {
	if !onThread {
		d = nil
	}
	release(list, d)
}

// releaseFromHost is release for a signal of the host.
func releaseFromHost(list *timepoint) { releaseUpTo(list, nil, inline) }

func releaseUpTo(list *timepoint, on *Device, inline int) {
	var ready readyList
	for t := list; t != nil; {
		next := t.next
		t.next = nil
		switch s := t.sub; {
		case s != nil:
			isReady, more := s.resolved(t)
			next = more.before(next) // not by recursion: barriers and links may be chained without end
			switch {
			case !isReady:
			case inline > 0 && s.mayIssue():
				inline--
				s.q.dev.unpark(s)
				s.q.run(s, false)
			default:
				ready.add(s)
			}
		case t.link != nil:
			next = t.link.pass(t.err).before(next)
		case t.host != nil:
			t.host.wake()
		case t.fn != nil:
			fn, err := t.fn, t.err
			if on != nil {
				go fn(err) // a device's thread runs no code of others
			} else {
				fn(err)
			}
		}
		t = next
	}
	ready.flush()
}

// mayIssue reports whether whoever has made a submission ready may issue it, and will hardly be held up by that.
func (s *submission) mayIssue() bool {
	return s.q.dev.caps.SubmitAnywhere && !s.op.onHost() && s.q.tl.issued.Load()-s.q.tl.done.Load() < 64
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
