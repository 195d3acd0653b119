package gpu

import "context"

// WaitIssued waits until a device has been given the work that will signal a value or a higher one, until the value is reached, the semaphore
// fails, or the context ends; the errors are those of [Semaphore.Wait]. It says nothing about when that work is done. It is for what
// must not happen before: to tell another process that an event is recorded ([Queue.RecordEvent]).
func (s *Semaphore) WaitIssued(ctx context.Context, value uint64) error {
	switch {
	case s == nil:
		return errNoSemaphore
	case ctx == nil:
		return argument("wait", "no context")
	case value > MaxValue:
		return argument("wait", "value %d is above %d, the highest there is", value, uint64(MaxValue))
	}
	if over, err := s.issued(value); over {
		return err
	}
	points := []Point{{s, value}}
	if ctx.Err() != nil {
		return waitEnded(ctx, points)
	}
	e := hostEventFor(points)
	defer e.takeBack(points)
	e.tps[0].issued = true
	e.placed[0] = s.expectAt(value, &e.tps[0]) == unknown
	for {
		if over, err := s.issued(value); over {
			return err
		}
		select {
		case <-e.woken:
		case <-ctx.Done():
			if over, err := s.issued(value); over {
				return err
			}
			return waitEnded(ctx, points)
		}
	}
}

// issued reports whether the producer of a value is issued, or the value is reached, or the semaphore has failed.
func (s *Semaphore) issued(value uint64) (over bool, err error) {
	how, _ := s.next(value, nil)
	if how == failed {
		err = received(s.failed())
	}
	return how != unknown, err
}
