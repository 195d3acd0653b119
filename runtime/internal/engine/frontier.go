package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A Mark is a place in a timeline: behind the work with that number.
type Mark struct {
	Timeline *Timeline
	Seq      uint64
}

// Passed reports whether the stream is known to have passed the mark.
func (m Mark) Passed() bool { return m.Timeline.passed.Load() >= m.Seq }

// At returns the place behind the work with a number.
func (tl *Timeline) At(seq uint64) Mark { return Mark{tl, seq} }

// A Frontier is a set of marks, one a timeline, the last: "after all of this".
type Frontier []Mark

// Add has the frontier come after a mark as well.
func (f *Frontier) Add(m Mark) {
	for i := range *f {
		if at := &(*f)[i]; at.Timeline == m.Timeline {
			at.Seq = max(at.Seq, m.Seq)
			return
		}
	}
	*f = append(*f, m)
}

// AddLive is add for a frontier of which counts only what has not been passed: the rest is let go of, so that timelines which come and go do
// not add up.
func (f *Frontier) AddLive(m Mark) {
	*f = slices.DeleteFunc(*f, func(at Mark) bool { return at.Timeline != m.Timeline && at.Timeline.passed.Load() >= at.Seq })
	f.Add(m)
}

// Passed reports whether the streams have passed all of it, as far as is known.
func (f Frontier) Passed() bool {
	for _, m := range f {
		if m.Timeline.passed.Load() < m.Seq {
			return false
		}
	}
	return true
}

// await waits until the streams have passed all of it, and reports false if the context ends before. What a lost device has counts as
// passed, for nobody will know.
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

// An awaiter is somebody who waits until the stream has passed a number.
type awaiter struct {
	seq    uint64
	passed chan struct{} // closed then, or when the device is lost
}

// Await is await for one mark. Whoever retires the work there tells, and has the device asked meanwhile as any other wait has.
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

// Retiring reports whether the work at a mark has been found done, though passed may not say so yet: its signals come before.
func (m Mark) Retiring() bool {
	m.Timeline.ring.mu.Lock()
	defer m.Timeline.ring.mu.Unlock()
	return m.Seq < m.Timeline.ring.head
}

// decided reports whether the stream has passed a mark, or nobody will ever know.
func (m Mark) decided() bool {
	return m.Timeline.passed.Load() >= m.Seq || m.Timeline.Device.lost.Load() != nil
}

// tell tells who waits for numbers up to seq. The caller holds retireMu.
func (tl *Timeline) tell(seq uint64) {
	tl.awaiters = slices.DeleteFunc(tl.awaiters, func(w awaiter) bool {
		if w.seq <= seq {
			close(w.passed)
		}
		return w.seq <= seq
	})
}

// A loan is what other devices' work uses of a device's events and buffers. It has an end, after which nothing is lent.
type loan struct {
	some  atomic.Bool // something is lent, or has been
	mu    sync.Mutex  // protects marks and ended; taken before ring.mu of other devices' timelines
	marks Frontier
	ended bool
}

// add notes that work of another device is about to use something. It reports false if it is too late.
func (l *loan) add(m Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.marks.AddLive(m)
		l.some.Store(true)
	}
	return !l.ended
}

// end has nothing lent any more, and returns what is.
func (l *loan) end() Frontier {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.marks
}

// timelines returns those whose work uses something, or has used it.
func (l *loan) timelines() (all []*Timeline) {
	l.any(func(m Mark) bool {
		all = append(all, m.Timeline)
		return false
	})
	return all
}

// any reports whether something holds for one of the marks.
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
