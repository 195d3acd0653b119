package gpu

// A barrier touches no stream. If its waits have been reached by the time they are issued, it signals at
// once. Otherwise it is passing: its signals are published as coming behind all the work that it waits
// for, and they are given when the waits are reached.

// passOn does that for a barrier whose waits have all been issued.
func (q *Queue) passOn(s *submission) {
	live := 0
	for i, m := range s.deps {
		passed, err := m.status()
		switch {
		case err != nil:
			q.dev.failSubmission(s, err)
			return
		case !passed:
			s.deps[live], s.deps[i] = m, s.deps[live]
			live++
		}
	}
	if live == 0 && !s.late {
		release(q.dev.complete(s))
		return
	}
	s.deps = s.deps[:max(live, 1)] // a barrier behind a barrier may wait though the work has been passed
	s.mode = passing
	q.enlist(s)
}

// handOn publishes what a passing barrier signals.
func (s *submission) handOn() *timepoint {
	m := s.deps[0]
	var released timepointList
	for _, signal := range s.signals {
		list, wanted := signal.Semaphore.publishFor(point{Value: signal.Value, Timeline: m.tl, Seq: m.seq, Late: true}, s)
		released.join(list)
		if wanted {
			s.wantDeps()
		}
	}
	return released.first
}

// wantDeps has the devices asked until the work that a passing barrier waits for is done.
func (s *submission) wantDeps() {
	for _, m := range s.deps {
		m.tl.want(m.seq)
	}
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
	if f != nil {
		released := q.dev.failSignals(s, f.err)
		q.dev.recycle(s)
		return released
	}
	released := q.dev.signal(s)
	if len(s.deps) > 1 {
		for _, p := range s.signals {
			p.Semaphore.forget(s)
		}
	}
	q.dev.recycle(s)
	return released
}
