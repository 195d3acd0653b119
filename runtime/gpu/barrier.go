package gpu

// A barrier does no work, so it needs no place in a stream: what has been reached when it is submitted is signalled at once,
// and if it comes after one piece of work only, that work's point is passed on as its own. Else its stream joins the work,
// with an event.

// passOn does that for a barrier whose waits have all been issued. It reports false if there is more than one piece of work.
func (q *Queue) passOn(s *submission) bool {
	live := 0
	for i, m := range s.deps {
		passed, err := m.status()
		switch {
		case err != nil:
			q.dev.failSubmission(s, err)
			return true
		case passed:
			continue
		case live > 0:
			return false
		}
		live++
		s.deps[0], s.deps[i] = m, s.deps[0]
	}
	if live > 0 || s.late {
		s.mode = passing
		q.enlist(s)
		return true
	}
	release(q.dev.complete(s))
	return true
}

// handOn publishes what a barrier signals as what the work before it does.
func (s *submission) handOn() *timepoint {
	m := s.deps[0]
	var released timepointList
	for _, signal := range s.signals {
		list, wanted := signal.Semaphore.publish(point{Value: signal.Value, Timeline: m.tl, Seq: m.seq, Late: true})
		released.join(list)
		if wanted {
			m.tl.want(m.seq)
		}
	}
	return released.first
}

// completeBarrier completes a barrier when its waits have been reached. It returns the timepoints that this releases.
func (q *Queue) completeBarrier(s *submission) *timepoint {
	if q.dev.unpark(s) {
		defer q.dev.npassing.Add(-1) // after its signals, which Close waits for
	}
	f := s.err.Load()
	if f == nil {
		f = q.dev.lost.Load()
	}
	if f == nil {
		return q.dev.complete(s)
	}
	released := q.dev.failSignals(s, f.err)
	q.dev.recycle(s)
	return released
}
