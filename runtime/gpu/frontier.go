package gpu

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A mark is a place in a timeline: behind the work with that number.
type mark struct {
	tl  *timeline
	seq uint64
}

// passed reports whether the stream is known to have passed the mark.
func (m mark) passed() bool { return m.tl.passed.Load() >= m.seq }

// A frontier is a set of marks, one a timeline, the last: "after all of this".
type frontier []mark

// add has the frontier come after a mark as well.
func (f *frontier) add(m mark) {
	for i := range *f {
		if at := &(*f)[i]; at.tl == m.tl {
			at.seq = max(at.seq, m.seq)
			return
		}
	}
	*f = append(*f, m)
}

// addLive is add for a frontier of which counts only what has not been passed: the rest is let go of, so that timelines which come and go do
// not add up.
func (f *frontier) addLive(m mark) {
	*f = slices.DeleteFunc(*f, func(at mark) bool { return at.tl != m.tl && at.tl.passed.Load() >= at.seq })
	f.add(m)
}

// passed reports whether the streams have passed all of it, as far as is known.
func (f frontier) passed() bool {
	for _, m := range f {
		if m.tl.passed.Load() < m.seq {
			return false
		}
	}
	return true
}

// await waits until the streams have passed all of it, and reports false if the context ends before. What a lost device has counts as
// passed, for nobody will know.
func (f frontier) await(ctx context.Context) bool {
	for _, m := range f {
		m.tl.want(m.seq)
	}
	for _, m := range f {
		if !m.await(ctx) {
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

// await is await for one mark. Whoever retires the work there tells, and has the device asked meanwhile as any other wait has.
func (m mark) await(ctx context.Context) bool {
	tl := m.tl
	tl.retireMu.Lock()
	if m.decided() {
		tl.retireMu.Unlock()
		return true
	}
	w := awaiter{m.seq, make(chan struct{})}
	tl.awaiters = append(tl.awaiters, w)
	tl.retireMu.Unlock()
	tl.want(m.seq)
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

// retiring reports whether the work at a mark has been found done, though passed may not say so yet: its signals come before.
func (m mark) retiring() bool {
	m.tl.ring.mu.Lock()
	defer m.tl.ring.mu.Unlock()
	return m.seq < m.tl.ring.head
}

// decided reports whether the stream has passed a mark, or nobody will ever know.
func (m mark) decided() bool { return m.tl.passed.Load() >= m.seq || m.tl.dev.lost.Load() != nil }

// tell tells who waits for numbers up to seq. The caller holds retireMu.
func (tl *timeline) tell(seq uint64) {
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
	marks frontier
	ended bool
}

// add notes that work of another device is about to use something. It reports false if it is too late.
func (l *loan) add(m mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.marks.addLive(m)
		l.some.Store(true)
	}
	return !l.ended
}

// end has nothing lent any more, and returns what is.
func (l *loan) end() frontier {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.marks
}

// timelines returns those whose work uses something, or has used it.
func (l *loan) timelines() (all []*timeline) {
	l.any(func(m mark) bool {
		all = append(all, m.tl)
		return false
	})
	return all
}

// any reports whether something holds for one of the marks.
func (l *loan) any(so func(mark) bool) bool {
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
