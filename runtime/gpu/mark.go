package gpu

import (
	"runtime"

	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
)

// What is brief is issued without an event behind it, for to record one costs a quarter of what the work itself does. The
// next event of the stream is behind it as well, for a stream does its work in order. One is recorded
//   - behind each markEvery submissions, so that what is done comes back in small pieces; or some more, if among them are some of
//     those that take the device no time;
//   - before the stream is given what may take long, or made to wait for another one, so that nobody who waits for what is
//     brief waits for that too;
//   - when somebody asks: another timeline that is to wait, or the host.
//
// So between a submission and the first event behind it there is only brief work, and none that waits: to wait for that event
// is to wait a little too long, and for nothing that the submission does not wait for itself. No circle can come of it either,
// for a stream waits only for what was issued before.
//
// What is published, waited for or retired are numbers, never events; those who need an event look for it by number.
// One that is not recorded yet would count as complete, so it is found only once it is. A submission has its event from the
// beginning: who comes to record it need not have one made, under a lock or without end.

// markEvery is after how many submissions an event is recorded at the latest.
const markEvery = 8

// mostLight is for how many submissions that take the device no time there is no event at the most.
const mostLight = 2 * markEvery

// unmarked reports whether a brief submission needs no event behind it yet. The caller holds mu.
func (tl *timeline) unmarked(s *submission, seq uint64) bool {
	if s.op.Light() && tl.light < mostLight {
		tl.light++
	}
	return seq-tl.marked.Load()-tl.light < markEvery
}

// noteMark notes that an event is behind a submission. The caller holds mu.
func (tl *timeline) noteMark(seq uint64) {
	tl.marked.Store(seq)
	tl.light = 0
}

// brief reports whether an operation by itself takes the device no longer than it takes to issue a few, and does not make the
// stream wait for others. What other devices have a part in may, and an alloca for which the pool has it wait for another stream.
func (s *submission) brief(tl *timeline) bool {
	return !s.across(tl.dev) && s.op.Brief() && (s.op.Kind != work.Alloca || !s.keep[0].pool.crosses(tl))
}

// mark puts an event behind all that has been issued. The caller holds mu.
func (tl *timeline) mark() error {
	last := tl.issued.Load()
	if tl.marked.Load() == last || tl.ended.Load() { // then all has been passed, or has failed
		return nil
	}
	tl.ring.mu.Lock() // it is in there, for nothing else is retired without an event
	s := tl.ring.at(last)
	e := s.event
	e.hold()
	tl.ring.mu.Unlock()
	defer e.drop()
	if err := tl.dev.drv.Record(e.h, tl.h); err != nil {
		return err
	}
	tl.ring.mu.Lock()
	if last >= tl.ring.head {
		s.recorded = true
	}
	tl.ring.mu.Unlock()
	tl.noteMark(last)
	return nil
}

// tryMark puts an event behind seq if there is none, unless somebody is issuing, who will see to that, or be done soon.
func (tl *timeline) tryMark(seq uint64) (err error) {
	if last := min(seq, tl.issued.Load()); last > tl.marked.Load() && tl.mu.TryLock() {
		if last > tl.marked.Load() {
			err = tl.mark()
		}
		tl.mu.Unlock()
	}
	return err
}

// eventBehind returns the first event behind seq, held, or nil if the host has found that done. It reports false if there is
// none, or none yet.
func (tl *timeline) eventBehind(seq uint64) (*event, bool) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if seq < tl.ring.head {
		return nil, true
	}
	s := tl.ring.marked(seq, tl.issued.Load())
	if s == nil {
		return nil, false
	}
	s.event.hold()
	return s.event, true
}

// markDeps puts events behind what the work must come after on other timelines. The caller holds no timeline's mu.
func (s *submission) markDeps() error {
	for _, d := range s.deps {
		if d.tl == s.q.tl {
			continue
		}
		if d.tl.ch != nil { // whose thread may keep mu until other ranks come; but each group has an event behind it
			d.untilIssued()
			continue
		}
		d.tl.mu.Lock() // what has been published is issued then
		var err error
		if d.seq > d.tl.marked.Load() {
			err = d.tl.mark()
		}
		d.tl.mu.Unlock()
		if err != nil {
			d.tl.dev.check(err)
			return err
		}
	}
	return nil
}

// untilIssued waits until work that has been published is in its ring. That is a few instructions later, in which whoever holds mu waits for
// nothing; but who came to hold mu, to see that, might find that of a channel held by the library again.
func (m mark) untilIssued() {
	for m.tl.issued.Load() < m.seq {
		runtime.Gosched()
	}
}
