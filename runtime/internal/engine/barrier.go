package engine

import "github.com/puregpu/puregpu/runtime/internal/sema"

// A barrier is a submission that only waits and signals. It makes no native calls. It is parked
// until all its waits have been issued. If they have all been reached by then, the barrier gives
// its signals at once.
//
// Otherwise the barrier becomes passing. It publishes its signals with the marks of all the work
// that it waits for, so that streams can already wait for that work. It gives the signals when its
// waits are reached.

// startBarrier handles a barrier whose waits have all been issued. It completes the barrier if they
// have been reached, fails the barrier if one of them has failed, and otherwise makes the barrier
// passing.
func (tl *Timeline) startBarrier(s *Submission) {
	live := 0
	for i, m := range s.Deps {
		passed, err := m.status()
		switch {
		case err != nil:
			tl.Device.FailSubmission(s, err)
			return
		case !passed:
			s.Deps[live], s.Deps[i] = m, s.Deps[live]
			live++
		}
	}
	if live == 0 && !s.afterBarrier {
		sema.Release(tl.Device.complete(s))
		return
	}
	// Keep at least one mark, to publish the signals with. If all work has been passed, the barrier
	// still waits for another barrier's signal.
	s.Deps = s.Deps[:max(live, 1)]
	s.Mode = published
	tl.registerWaits(s)
}

// publishBarrier publishes the signals of a passing barrier, and returns the timepoints to release.
func (s *Submission) publishBarrier() *sema.Timepoint {
	var room [4]sema.Mark
	behind := s.Deps.marks(room[:0])
	var released sema.List
	for _, signal := range s.Signals {
		at := sema.Signal{Value: signal.Value, Producer: behind[0].Producer, Seq: behind[0].Seq, ByBarrier: true}
		list, wanted := signal.Semaphore.Publish(at, behind)
		released.Join(list)
		if wanted {
			s.wantDeps()
		}
	}
	return released.First()
}

// wantDeps requests polling until the work that a passing barrier waits for is done.
func (s *Submission) wantDeps() {
	for _, m := range s.Deps {
		m.Timeline.want(m.Seq)
	}
}

// completeBarrier completes or fails a passing barrier when its waits are resolved. It returns the
// timepoints to release.
func (tl *Timeline) completeBarrier(s *Submission) *sema.Timepoint {
	if tl.Device.unpark(s) {
		defer tl.Device.pending.npublished.Add(-1) // after the signals, for which Close waits
	}
	f := s.Err.Load()
	if f == nil {
		f = tl.Device.lost.Load()
	}
	if f != nil {
		released := tl.Device.failSignals(s, f.Err)
		tl.Device.Recycle(s)
		return released
	}
	released := tl.Device.signal(s)
	if len(s.Deps) > 1 {
		var room [4]sema.Mark
		behind := s.Deps.marks(room[:0])
		for _, p := range s.Signals {
			p.Semaphore.Forget(p.Value, behind)
		}
	}
	tl.Device.Recycle(s)
	return released
}
