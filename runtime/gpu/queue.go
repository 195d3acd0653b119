package gpu

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unique"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Queue takes operations for a device. Only semaphores order operations: operations that no
// semaphore orders may run in any order, or in parallel. All methods may be called concurrently.
// [Queue.Submit] returns without waiting for the device to run the operation. Submit copies the
// lists of points. The operation uses the program's data after Submit has returned only if the
// documentation of the operation says so.
//
// If Submit returns an error, the operation does not run. If the reason is that the device is lost,
// or that the device or the queue is closed, the points that the operation would have signalled
// fail too, because other work may wait for them.
//
// If a signal is known not to raise its semaphore, the error is [ErrValue]. There are three cases:
// the value of the signal has been reached; the operation waits for that value or a higher one; an
// earlier signal of the operation has that value or a higher one. After Submit has returned, the
// host may signal that value or a higher one before the operation does, or other work may signal
// the same value. Then the semaphores of that signal and of the later signals in the list fail with
// [ErrValue]. If other work signals a higher value first, that is no mistake.
type Queue struct {
	dev      *Device
	tl       *engine.Timeline
	index    int // its number among the device's own queues; -1 if it is not one of them
	priority int
	name     atomic.Pointer[string]
	scratch  queueScratch // for native operations
}

// Device returns the queue's device.
func (q *Queue) Device() *Device {
	if q == nil {
		return nil
	}
	return q.dev
}

// isZero reports whether the queue is nil, or a zero value, which belongs to no device.
func (q *Queue) isZero() bool { return q == nil || q.dev == nil }

// newQueue makes a queue with a timeline. The device does not list the timeline yet.
func newQueue(d *Device, index int) *Queue {
	q := &Queue{dev: d, index: index}
	q.tl = engine.NewTimeline(&d.native, q)
	q.tl.NewRecord = func() *engine.Submission { return &q.newRecord().Submission }
	return q
}

// submit copies the points of the order into the record, and gives the submission to the scheduler.
func (q *Queue) submit(r *record, o *Order) error {
	for _, p := range o.Wait {
		if p.invalid() {
			return q.reject(r, "wait")
		}
		r.Waits = append(r.Waits, p.inner())
	}
	for _, p := range o.Signal {
		if p.invalid() {
			return q.reject(r, "signal")
		}
		r.Signals = append(r.Signals, p.inner())
	}
	if slices.ContainsFunc(o.Free, Point.invalid) {
		return q.reject(r, "point of Free")
	}
	if err := q.tl.FailedBy(); err != nil {
		q.tl.Device.FailSubmission(&r.Submission, err)
		if q.tl.Device.Loss() != nil {
			q.dev.lossReceived.Store(true)
		}
		return err
	}
	if err := o.check(); err != nil {
		err = fmt.Errorf("gpu: %s on %v: %w", operation(r.Op.Kind.String(), r.kernelName(), o.label), q, err)
		r.drop()
		return err
	}
	if !o.plain() || q.dev.memory.Observer != nil {
		if err := r.note(o); err != nil {
			r.drop()
			return err
		}
	}
	kind, byLane := r.Op.Kind, r.ByLane()
	how, err := q.tl.Submit(&r.Submission)
	switch {
	case how != engine.Refused && how != engine.NotIssued:
		return nil
	case byLane:
		return err
	case o.untold(kind):
		return q.submitError(kind, "", unique.Make(o.label).Value(), err)
	}
	return nil
}

// note copies an order's label and the points in its Free into the record. It begins to observe the
// submission if the device has a tracer or the order has a Timing.
func (s *record) note(o *Order) error {
	if o.label != "" {
		// Store a copy. If o.label itself were stored, the compiler would have to assume that
		// everything in o escapes, and put the caller's lists of points on the heap.
		s.label, s.UsesRest = unique.Make(o.label).Value(), true
	}
	if err := s.observed(o); err != nil {
		return err
	}
	if len(o.Free) > 0 {
		s.lent, s.Lends, s.UsesRest = newLent(1, o.Free), true, true
		s.lent.shared = s.Op.Kind == work.Control // the submissions for its bodies share s.lent
	}
	return nil
}

// invalid reports whether no operation can wait for the point or signal it.
func (p Point) invalid() bool { return p.Semaphore == nil || p.Value > MaxValue }

// reject recycles a record because a point is not valid, and returns the error. kind says which
// list has the point.
func (q *Queue) reject(s *record, kind string) error {
	op := s.Op.Kind.String()
	s.drop()
	return errs.Argument(op, "a %s has no semaphore, or a value above %d", kind, uint64(MaxValue))
}

// Flush polls the device once, also if no work is in flight, to find out which work of the queue is
// done, and whether the device is lost. Submitted operations reach the device without Flush. On a
// system that batches the calls to a device, the poll makes the system send the batch. Flush
// returns an error if the device accepts no more work.
func (q *Queue) Flush() error {
	if q.isZero() {
		return errs.Zero("flush", "Queue")
	}
	q.tl.Flush()
	return q.dev.failed()
}

// submitWith is like submit, for an operation that writes to the buffer dst and reads from the
// buffer src. The submission holds both buffers. dst or src may be nil.
func (q *Queue) submitWith(r *record, o *Order, dst, src *memory.Buffer) error {
	for _, b := range [...]*memory.Buffer{dst, src} {
		if b != nil {
			if err := r.keepBuffer(b); err != nil {
				return err
			}
		}
	}
	r.between(dst, src)
	return q.submit(r, o)
}
