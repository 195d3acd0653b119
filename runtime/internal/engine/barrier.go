package engine

import "github.com/puregpu/puregpu/runtime/internal/sema"

// A barrier is a submission that only waits and signals. It makes no native calls. It is parked
// until the work for all its waits has been issued. If all waits are reached by then, the barrier
// gives its signals at once.
//
// Otherwise the barrier is published: it publishes its signals together with the marks of all the
// work that it waits for. Then other submissions can already wait for these signals: their streams
// wait for the work at the marks. The barrier gives its signals when all its waits are reached.

// startBarrier handles a barrier when the work for all its waits has been issued. If some of that
// work has failed, startBarrier fails the barrier. If all the work is done, and no wait is for
// another barrier that has not given its signal yet, startBarrier completes the barrier. Otherwise
// startBarrier publishes the barrier.
func (tl *Timeline) startBarrier(s *Submission) {
	live := 0
	for i, m := range s.Deps.marks {
		passed, err := m.status()
		switch {
		case err != nil:
			tl.Device.FailSubmission(s, err)
			return
		case !passed:
			s.Deps.marks[live], s.Deps.marks[i] = m, s.Deps.marks[live]
			live++
		}
	}
	if live == 0 && !s.Deps.afterBarrier {
		sema.Release(tl.Device.complete(s))
		return
	}
	// If live is 0, all the work is done, and the barrier waits only for the signal of another
	// barrier. Keep one mark even then, because signals are published with a mark.
	s.Deps.marks = s.Deps.marks[:max(live, 1)]
	s.Mode = published
	tl.registerWaits(s)
}

// publishBarrier publishes the signals of a barrier. It returns the timepoints to release.
func (s *Submission) publishBarrier() *sema.Timepoint {
	var room [4]sema.Mark
	behind := s.Deps.marks.marks(room[:0])
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

// wantDeps requests polling until the work that a published barrier waits for is done.
func (s *Submission) wantDeps() {
	for _, m := range s.Deps.marks {
		m.Timeline.want(m.Seq)
	}
}

// completeBarrier is called when no timepoint of a published barrier is registered any more. It
// gives the barrier's signals. If s.Err is set or the device is lost, completeBarrier fails the
// signals instead. It returns the timepoints to release.
func (tl *Timeline) completeBarrier(s *Submission) *sema.Timepoint {
	if tl.Device.unpark(s) {
		// Decrement at the end: Close waits until npublished is 0, and then the signals must have
		// been given.
		defer tl.Device.pending.npublished.Add(-1)
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
	if len(s.Deps.marks) > 1 {
		var room [4]sema.Mark
		behind := s.Deps.marks.marks(room[:0])
		for _, p := range s.Signals {
			p.Semaphore.Forget(p.Value, behind)
		}
	}
	tl.Device.Recycle(s)
	return released
}
