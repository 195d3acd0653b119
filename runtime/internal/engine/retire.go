package engine

import (
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// To retire a submission means: give its signals, release the objects that it holds, and recycle
// the Submission. A submission is retired when an event behind it is complete, in the order of the
// numbers. Submissions of other timelines that it waited for are retired first, unless they have
// failed. So if a goroutine sees that a submission is done, all work that the submission waited for
// is done or has failed.

// retire retires all submissions up to seq. The caller knows that the stream has passed them.
// retire stops and returns false at a submission that waits for a barrier which has not given its
// signals yet. The barrier gives its signals soon, perhaps on this goroutine after retire has
// returned.
func (tl *Timeline) retire(seq uint64) bool {
	for {
		before, held := tl.retireReady(seq)
		switch {
		case held:
			return false
		case before.Timeline == nil:
			return true
		case !before.Timeline.retire(before.Seq):
			return false
		}
		if !before.over() {
			before.untilIssued()
		}
	}
}

// retireAtOnce is the largest number of submissions in a batch of retireReady.
const retireAtOnce = 64

// retireReady retires submissions up to seq, or up to the first one that cannot be retired yet. If
// work of another timeline must be retired first, retireReady returns the mark of that work. It
// also reports whether a barrier must give its signals first (held).
func (tl *Timeline) retireReady(seq uint64) (before Mark, held bool) {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	var batch [retireAtOnce]*Submission
	for {
		n := 0
		tl.ring.mu.Lock()
		last := min(seq, tl.issued.Load())
	take:
		for n < len(batch) && tl.ring.head+uint64(n) <= last {
			s := tl.ring.at(tl.ring.head + uint64(n))
			for _, m := range s.Follows.marks {
				if !m.over() {
					before = m
					break take
				}
			}
			if s.Deps.afterBarrier && !s.waited() {
				// If this batch is not empty, the variable held becomes false below, because
				// retiring the batch may complete the barrier.
				held = true
				break take
			}
			batch[n] = s
			n++
		}
		tl.ring.head += uint64(n)
		tl.ring.mu.Unlock()
		if n == 0 {
			return before, held
		}
		before, held = Mark{}, false
		tl.complete(batch[:n])
	}
}

// complete retires a batch of consecutive submissions that are done and have left the ring. The
// caller holds tl.retireMu.
func (tl *Timeline) complete(batch []*Submission) {
	first, last := batch[0].Seq, batch[len(batch)-1].Seq
	var released sema.List
	for i := 0; i < len(batch); {
		if err := tl.outcomeOf(batch[i]); err != nil {
			if m := (Mark{tl, batch[i].Seq}); m.failed() == nil {
				tl.addFailed(m.Seq, m.Seq, err)
			}
			released.Join(tl.Device.failSignals(batch[i], err))
		} else if run := sameSignal(batch[i:]); run > 0 && tl.arriveTogether(batch[i:i+run], &released) {
			i += run
			continue
		} else {
			released.Join(tl.Device.signal(batch[i]))
		}
		i++
	}
	var held holderRun
	for i, s := range batch {
		tl.Device.releaseHeld(s, &held)
		if i > 0 {
			batch[i-1].next = s
		}
	}
	held.release()
	tl.putAll(batch[0], batch[len(batch)-1])
	tl.passed.Store(last)
	if len(tl.awaiters) > 0 {
		tl.wakeAwaiters(last)
	}
	if seq := tl.awaiting.Load(); first <= seq && seq <= last {
		tl.Device.Reclaim()
	}
	if released.First() != nil {
		sema.Release(released.First())
	}
}

// outcomeOf returns the error of a submission that the stream has passed, or nil if the submission
// has succeeded. For an IssuedBroken submission it may return nil: the signals of that submission
// have failed already.
func (tl *Timeline) outcomeOf(s *Submission) error {
	if tl.Lane != nil {
		if _, err := tl.Lane.Halted(); err != nil { // events behind aborted work complete too
			return err
		}
	}
	return s.cause()
}

// sameSignal returns how many submissions at the start of the slice batch have succeeded, deliver
// nothing, and have a single signal each, all of the same semaphore and with growing values. One
// call of Arrive can give all these signals.
func sameSignal(batch []*Submission) int {
	value := uint64(0)
	for i, s := range batch {
		if len(s.Signals) != 1 || s.Signals[0].Semaphore != batch[0].Signals[0].Semaphore || i > 0 && s.Signals[0].Value <= value ||
			s.Delivers || s.cause() != nil {
			return i
		}
		value = s.Signals[0].Value
	}
	return len(batch)
}

// arriveTogether gives the signals of submissions that sameSignal has found, with one call of
// Arrive. If the semaphore returns an error, arriveTogether returns false, and the caller must give
// each signal by itself.
func (tl *Timeline) arriveTogether(run []*Submission, released *sema.List) bool {
	first, end := run[0], run[len(run)-1]
	list, err := first.Signals[0].Semaphore.Arrive(sema.Signal{Value: first.Signals[0].Value, Producer: tl, Seq: first.Seq},
		sema.Signal{Value: end.Signals[0].Value, Producer: tl, Seq: end.Seq})
	if err != nil {
		return false
	}
	released.Join(list)
	return true
}
