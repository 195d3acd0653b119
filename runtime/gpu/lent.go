package gpu

import "sync/atomic"

// A lent is the points by which an operation tells that nothing touches any more what it was given. It is shared by the submissions that
// an operation is made of.
type lent struct {
	left   atomic.Int32 // submissions that are not over
	shared bool         // by several, of which one may be refused when others have been submitted
	points []Point
}

func newLent(submissions int, points []Point) *lent {
	l := &lent{shared: submissions > 1, points: append([]Point(nil), points...)}
	l.left.Store(int32(submissions))
	return l
}

// over notes that so many submissions are over. A value that has been reached, or a semaphore that has failed, stays what it is.
func (l *lent) over(submissions int) {
	if l.left.Add(-int32(submissions)) == 0 {
		l.tell(nil)
	}
}

// tell signals the points or, with an error, says that nobody will know. A goroutine does it, for the caller may hold locks.
func (l *lent) tell(err error) {
	go func() {
		for _, p := range l.points {
			if err != nil {
				p.Semaphore.Fail(err)
			} else {
				p.Semaphore.Signal(p.Value)
			}
		}
	}()
}
