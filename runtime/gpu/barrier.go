package gpu

import "github.com/puregpu/puregpu/runtime/internal/sema"

// A barrier touches no stream. If its waits have been reached by the time they are issued, it signals at
// once. Otherwise it is passing: its signals are published as coming behind all the work that it waits
// for, and they are given when the waits are reached.

// passOn completes a barrier whose waits have all been issued, or makes it passing.
func (tl *timeline) passOn(s *submission) {
	live := 0
	for i, m := range s.deps {
		passed, err := m.status()
		switch {
		case err != nil:
			tl.dev.failSubmission(s, err)
			return
		case !passed:
			s.deps[live], s.deps[i] = m, s.deps[live]
			live++
		}
	}
	if live == 0 && !s.late {
		sema.Release(tl.dev.complete(s))
		return
	}
	s.deps = s.deps[:max(live, 1)] // a barrier behind a barrier may wait though the work has been passed
	s.mode = passing
	tl.enlist(s)
}

// handOn publishes what a passing barrier signals.
func (s *submission) handOn() *sema.Timepoint {
	var room [4]sema.Mark
	behind := s.deps.marks(room[:0])
	var released sema.List
	for _, signal := range s.signals {
		at := sema.Signal{Value: signal.Value, Producer: behind[0].Producer, Seq: behind[0].Seq, Late: true}
		list, wanted := signal.Semaphore.Publish(at, behind)
		released.Join(list)
		if wanted {
			s.wantDeps()
		}
	}
	return released.First()
}

// wantDeps has the devices asked until the work that a passing barrier waits for is done.
func (s *submission) wantDeps() {
	for _, m := range s.deps {
		m.tl.want(m.seq)
	}
}

// completeBarrier completes a barrier when its waits have been reached. It returns the timepoints that
// this releases.
func (tl *timeline) completeBarrier(s *submission) *sema.Timepoint {
	if tl.dev.unpark(s) {
		defer tl.dev.pending.npassing.Add(-1) // after its signals, which Close waits for
	}
	f := s.err.Load()
	if f == nil {
		f = tl.dev.lost.Load()
	}
	if f != nil {
		released := tl.dev.failSignals(s, f.err)
		tl.dev.recycle(s)
		return released
	}
	released := tl.dev.signal(s)
	if len(s.deps) > 1 {
		var room [4]sema.Mark
		behind := s.deps.marks(room[:0])
		for _, p := range s.signals {
			p.Semaphore.Forget(p.Value, behind)
		}
	}
	tl.dev.recycle(s)
	return released
}
