package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A Mark is a place in a timeline: right behind the submission with the number Seq.
type Mark struct {
	Timeline *Timeline
	Seq      uint64
}

// Passed reports whether the stream is known to have passed the mark: an event behind the mark is
// complete.
func (m Mark) Passed() bool { return m.Timeline.passed.Load() >= m.Seq }

// At returns the mark behind the submission with the number seq.
func (tl *Timeline) At(seq uint64) Mark { return Mark{tl, seq} }

// A Frontier is a set of marks, at most one for each timeline. It means "after all of this work".
type Frontier []Mark

// Add adds a mark. If the frontier has a mark of the same timeline, it keeps the later one.
func (f *Frontier) Add(m Mark) {
	for i := range *f {
		if at := &(*f)[i]; at.Timeline == m.Timeline {
			at.Seq = max(at.Seq, m.Seq)
			return
		}
	}
	*f = append(*f, m)
}

// AddLive adds a mark, and removes each mark of another timeline if the mark has been passed. It is
// for frontiers whose users ignore passed marks. Without the removal, marks of closed timelines
// would pile up.
func (f *Frontier) AddLive(m Mark) {
	*f = slices.DeleteFunc(*f, func(at Mark) bool { return at.Timeline != m.Timeline && at.Timeline.passed.Load() >= at.Seq })
	f.Add(m)
}

// Passed reports whether the streams are known to have passed all marks of the frontier.
func (f Frontier) Passed() bool {
	for _, m := range f {
		if m.Timeline.passed.Load() < m.Seq {
			return false
		}
	}
	return true
}

// Await blocks until the streams have passed all marks. Await returns false if the context ends
// first. A mark of a lost device counts as passed, because nobody will ever know whether the stream
// has passed the mark.
func (f Frontier) Await(ctx context.Context) bool {
	for _, m := range f {
		m.Timeline.want(m.Seq)
	}
	for _, m := range f {
		if !m.Await(ctx) {
			return false
		}
	}
	return true
}

// An awaiter is a goroutine that is blocked in Mark.Await.
type awaiter struct {
	seq    uint64
	passed chan struct{} // closed when the stream has passed seq, or when the device is lost
}

// Await blocks until the stream has passed the mark. It returns false if the context ends first. A
// mark of a lost device counts as passed. Await requests polling.
func (m Mark) Await(ctx context.Context) bool {
	tl := m.Timeline
	tl.retireMu.Lock()
	if m.decided() {
		tl.retireMu.Unlock()
		return true
	}
	w := awaiter{m.Seq, make(chan struct{})}
	tl.awaiters = append(tl.awaiters, w)
	tl.retireMu.Unlock()
	tl.want(m.Seq)
	select {
	case <-w.passed:
		return true
	case <-ctx.Done():
	}
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	tl.awaiters = slices.DeleteFunc(tl.awaiters, func(x awaiter) bool { return x == w })
	return m.decided()
}

// Retiring reports whether the work at the mark is known to be done. Retiring becomes true when the
// work is taken out of Timeline.ring, and Passed later: first the signals of the work are given,
// and then Timeline.passed is raised.
func (m Mark) Retiring() bool {
	m.Timeline.ring.mu.Lock()
	defer m.Timeline.ring.mu.Unlock()
	return m.Seq < m.Timeline.ring.head
}

// decided reports whether waiting for the mark is over. Either the stream has passed the mark, or
// the device is lost and nobody will ever know whether the stream has passed the mark.
func (m Mark) decided() bool {
	return m.Timeline.passed.Load() >= m.Seq || m.Timeline.Device.lost.Load() != nil
}

// wakeAwaiters wakes the goroutines that are blocked in Await for numbers up to seq. The caller
// holds tl.retireMu.
func (tl *Timeline) wakeAwaiters(seq uint64) {
	tl.awaiters = slices.DeleteFunc(tl.awaiters, func(w awaiter) bool {
		if w.seq <= seq {
			close(w.passed)
		}
		return w.seq <= seq
	})
}

// A loan belongs to a device. It records which work of other devices may use the events and the
// memory of this device. When the device is closed the loan ends, and no further work may use the
// events or the memory.
type loan struct {
	some  atomic.Bool // the field marks is not empty; read without mu
	mu    sync.Mutex  // protects marks and ended; no other lock is taken while it is held
	marks Frontier
	ended bool
}

// add records that work of another device may use this device's events or memory. The work is about
// to be issued and will have the mark m. If the loan has ended, add returns false and the work must
// not use the events or the memory.
func (l *loan) add(m Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.marks.AddLive(m)
		l.some.Store(true)
	}
	return !l.ended
}

// end ends the loan. It returns the marks of all work that may still use the device's events or
// memory.
func (l *loan) end() Frontier {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.marks
}

// timelines returns the timelines of all work that may still use the device's events or memory.
// Some of this work may be done already.
func (l *loan) timelines() (all []*Timeline) {
	l.any(func(m Mark) bool {
		all = append(all, m.Timeline)
		return false
	})
	return all
}

// any calls match for each mark until match returns true, and reports whether match has returned
// true. match runs with l.mu locked.
func (l *loan) any(match func(Mark) bool) bool {
	if !l.some.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.marks {
		if match(m) {
			return true
		}
	}
	return false
}
