package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A Mark is a place in a timeline: behind the work with the number Seq.
type Mark struct {
	Timeline *Timeline
	Seq      uint64
}

// Passed reports whether the stream is known to have passed the mark.
func (m Mark) Passed() bool { return m.Timeline.passed.Load() >= m.Seq }

// At returns the mark behind the work with a number.
func (tl *Timeline) At(seq uint64) Mark { return Mark{tl, seq} }

// A Frontier is a set of marks, at most one for each timeline, the latest: "after all of this".
type Frontier []Mark

// Add adds a mark. If the timeline has one already, the later one stays.
func (f *Frontier) Add(m Mark) {
	for i := range *f {
		if at := &(*f)[i]; at.Timeline == m.Timeline {
			at.Seq = max(at.Seq, m.Seq)
			return
		}
	}
	*f = append(*f, m)
}

// AddLive adds a mark, and removes the passed marks of other timelines. It is for frontiers in
// which passed marks have no meaning, so that marks of closed timelines do not pile up.
func (f *Frontier) AddLive(m Mark) {
	*f = slices.DeleteFunc(*f, func(at Mark) bool { return at.Timeline != m.Timeline && at.Timeline.passed.Load() >= at.Seq })
	f.Add(m)
}

// Passed reports whether the streams are known to have passed all marks.
func (f Frontier) Passed() bool {
	for _, m := range f {
		if m.Timeline.passed.Load() < m.Seq {
			return false
		}
	}
	return true
}

// await waits until the streams have passed all marks. It reports false if the context ends first.
// Marks of a lost device count as passed, because nobody will ever know whether they are.
func (f Frontier) await(ctx context.Context) bool {
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

// An awaiter is a goroutine that waits until the stream has passed a number.
type awaiter struct {
	seq    uint64
	passed chan struct{} // closed when the number is passed, or when the device is lost
}

// Await waits until the stream has passed the mark. It reports false if the context ends first. A
// mark of a lost device counts as passed. Meanwhile the work is polled. The goroutine that retires
// the work wakes this one.
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

// Retiring reports whether the work at the mark is known to be done, and so has left the ring.
// passed may still be lower, because the signals are given before passed is raised.
func (m Mark) Retiring() bool {
	m.Timeline.ring.mu.Lock()
	defer m.Timeline.ring.mu.Unlock()
	return m.Seq < m.Timeline.ring.head
}

// decided reports whether waiting for the mark is over: the stream has passed the mark, or the
// device is lost, so that nobody will ever know.
func (m Mark) decided() bool {
	return m.Timeline.passed.Load() >= m.Seq || m.Timeline.Device.lost.Load() != nil
}

// tell wakes the goroutines that are blocked in Await for numbers up to seq. The caller holds
// retireMu.
func (tl *Timeline) wakeAwaiters(seq uint64) {
	tl.awaiters = slices.DeleteFunc(tl.awaiters, func(w awaiter) bool {
		if w.seq <= seq {
			close(w.passed)
		}
		return w.seq <= seq
	})
}

// A loan records which work of other devices may use the events and the memory of a device. Close
// of that device ends the loan; then no further work may use them.
type loan struct {
	some  atomic.Bool // a mark has been added
	mu    sync.Mutex  // protects marks and ended; a leaf
	marks Frontier
	ended bool
}

// add records that work of another device, about to be issued at m, may use the device's events or
// memory. It returns false if the loan has ended.
func (l *loan) add(m Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.marks.AddLive(m)
		l.some.Store(true)
	}
	return !l.ended
}

// end ends the loan, and returns the marks of the work that may still use the device's events or
// memory.
func (l *loan) end() Frontier {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.marks
}

// timelines returns the timelines of other devices whose work uses or has used the device's events
// or memory.
func (l *loan) timelines() (all []*Timeline) {
	l.any(func(m Mark) bool {
		all = append(all, m.Timeline)
		return false
	})
	return all
}

// any reports whether so returns true for one of the marks. so runs with mu locked.
func (l *loan) any(so func(Mark) bool) bool {
	if !l.some.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.marks {
		if so(m) {
			return true
		}
	}
	return false
}
