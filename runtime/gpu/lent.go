package gpu

import "sync/atomic"

// A lent is the points by which an operation tells that nothing touches any more what it was given. It is shared by the submissions that
// an operation is made of.
type lent struct {
	left   atomic.Int32 // submissions that are not over
	points []Point
}

func newLent(submissions int, points []Point) *lent {
	l := &lent{points: append([]Point(nil), points...)}
	l.left.Store(int32(submissions))
	return l
}

// over notes that so many submissions are over. The points are signalled by a goroutine, for the caller may hold locks. A value that has been
// reached, or a semaphore that has failed, stays what it is.
func (l *lent) over(submissions int) {
	if l.left.Add(-int32(submissions)) == 0 {
		go l.signal()
	}
}

func (l *lent) signal() {
	for _, p := range l.points {
		p.Semaphore.Signal(p.Value)
	}
}
