package gpu

import (
	"sync/atomic"
)

// The type lent has the points of an operation's Order.Free. It signals the points when nothing
// uses the operation's memory any more, or fails the points if Close leaves the operation to the
// driver. All submissions of an operation share one lent.
type lent struct {
	left   atomic.Int32 // submissions that may still use the memory
	shared bool         // the operation may have several submissions; see record.Release
	points []Point
}

// newLent makes the lent of an operation that has the given number of submissions. It copies the
// points.
func newLent(submissions int, points []Point) *lent {
	l := &lent{shared: submissions > 1, points: append([]Point(nil), points...)}
	l.left.Store(int32(submissions))
	return l
}

// add counts one more submission.
func (l *lent) add() { l.left.Add(1) }

// over notes that a number of submissions no longer use the memory, or were never made. If no
// submission is left, over signals the points.
func (l *lent) over(submissions int) {
	if l.left.Add(-int32(submissions)) == 0 {
		l.tell(nil)
	}
}

// tell signals the points if err is nil, and otherwise fails their semaphores with err. Signalling
// a point whose value has been reached, or whose semaphore has failed, changes nothing. tell uses a
// new goroutine, because its caller may hold locks.
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
