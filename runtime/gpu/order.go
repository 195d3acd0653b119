package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// An Order says which points an operation waits for and which points it signals. [Queue.Submit]
// copies the lists. The operation signals the points in Signal when its work is done, in the order
// of the list.
//
// The points in Free are signalled when neither the device nor the runtime uses the operation's
// slices, imported memory and buffers any more, whether the operation has succeeded or not. When a
// point in Signal is reached, none of this memory is used any more. But when a point in Signal
// fails, the memory may still be in use: the device may still run work whose semaphore the program
// failed or whose communicator was aborted. The points in Free are signalled when that work ends.
// For work of a lost device, the points in Free are signalled when that device is closed. If
// closing leaves native objects to the driver, the points in Free fail instead. Signalling a point
// in Free that has been reached before changes nothing. If Submit returns an error, it signals no
// point in Free.
//
// A [Stream] makes the Orders of its operations. An operation of another queue, or with points in
// Free, can be put into a stream's order: submit it with an Order that waits for [Stream.Point] and
// signals a point of the program, and pass that point to [Stream.After]. Then the stream's next
// operation waits for the submitted operation. If [Stream.Wait] is called before that next
// operation has been added, Stream.Wait does not wait for the submitted operation.
type Order struct {
	Wait   []Point
	Signal []Point
	Free   []Point

	label  string  // the Op's label
	timing *Timing // the Op's Timing
	edges  timingEdges
}

// plain reports whether the order has waits and signals only.
func (o *Order) plain() bool { return len(o.Free) == 0 && o.label == "" && o.timing == nil }

// untold reports whether only the error of the call can report that the operation failed. That is
// so for an Alloc or a Free without points and without a Timing.
func (o *Order) untold(kind work.Kind) bool {
	return (kind == work.Alloc || kind == work.Free) && len(o.Wait)+len(o.Signal)+len(o.Free) == 0 && o.timing == nil
}

// check returns an error if a signal is known not to raise its semaphore. There are three cases:
// the value has been reached; the operation itself waits for that value or a higher one; an earlier
// signal in the list has that value or a higher one. Signals of failed semaphores are not checked:
// the operation may still give its other signals. All points must be valid.
func (o *Order) check() error {
	if long := len(o.Wait) + len(o.Signal); long > 64 && long*len(o.Signal) > 1<<12 {
		return o.checkLong()
	}
	for i, p := range o.Signal {
		now, failed := p.Semaphore.sema.Value()
		if failed {
			continue
		}
		if p.Value <= now {
			return sema.Backward(p.inner(), now)
		}
		for _, w := range o.Wait {
			if w.Semaphore == p.Semaphore && w.Value >= p.Value {
				return waitsForItself(p, w.Value)
			}
		}
		for _, before := range o.Signal[:i] {
			if before.Semaphore == p.Semaphore && before.Value >= p.Value {
				return backwardInList(p, before.Value)
			}
		}
	}
	return nil
}

// checkAll is like check, but also returns an error if a point is not valid.
func (o *Order) checkAll() error {
	for _, list := range [...][]Point{o.Wait, o.Signal, o.Free} {
		for _, p := range list {
			if p.invalid() {
				return fmt.Errorf("a point has no semaphore, or a value above %d: %w", uint64(MaxValue), ErrArgument)
			}
		}
	}
	return o.check()
}

// checkLong is like check, for long lists. It uses maps, so that its time is linear.
func (o *Order) checkLong() error {
	waits, signals := map[*Semaphore]uint64{}, map[*Semaphore]uint64{}
	for _, w := range o.Wait {
		waits[w.Semaphore] = max(waits[w.Semaphore], w.Value)
	}
	for _, p := range o.Signal {
		now, failed := p.Semaphore.sema.Value()
		if failed {
			continue
		}
		if p.Value <= now {
			return sema.Backward(p.inner(), now)
		}
		if v := waits[p.Semaphore]; v >= p.Value {
			return waitsForItself(p, v)
		}
		if v := signals[p.Semaphore]; v >= p.Value {
			return backwardInList(p, v)
		}
		signals[p.Semaphore] = p.Value
	}
	return nil
}

func waitsForItself(p Point, wait uint64) error {
	return fmt.Errorf("signal %d of %v, for %d of which it waits itself: %w", p.Value, p.Semaphore, wait, ErrValue)
}

func backwardInList(p Point, before uint64) error {
	return fmt.Errorf("signal %d of %v, behind %d of it in the list: %w", p.Value, p.Semaphore, before, ErrValue)
}
