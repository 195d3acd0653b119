package gpu

import (
	"sync/atomic"
)

// A lent has the points of an operation's Order.Free. The points are signalled when nothing uses
// the operation's memory any more. All submissions of an operation share one lent.
type lent struct {
	left   atomic.Int32 // submissions that are not over
	shared bool         // several submissions share it; one may be refused after others were submitted
	points []Point
}

// newLent makes the lent of an operation.
func newLent(submissions int, points []Point) *lent {
	l := &lent{shared: submissions > 1, points: append([]Point(nil), points...)}
	l.left.Store(int32(submissions))
	return l
}

// add counts one more submission.
func (l *lent) add() { l.left.Add(1) }

// over notes that a number of submissions are over. When all submissions are over, the points are
// signalled. A point whose value has been reached, or whose semaphore has failed, does not change.
func (l *lent) over(submissions int) {
	if l.left.Add(-int32(submissions)) == 0 {
		l.tell(nil)
	}
}

// tell signals the points if err is nil, and otherwise fails their semaphores with err. A new
// goroutine does this, because the caller may hold locks.
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
