package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// AdoptQueue makes a queue from a stream that the program or a library has made with the driver's
// own API (C: CUstream, hipStream_t). The queue's work is in order with other work of the stream:
// after the work that the stream has when an operation is issued, and before work that it is given
// later. To learn when an operation has been issued, call [Semaphore.WaitIssued] for a point that
// it signals.
//
// The queue behaves like the device's own queues and has the stream's priority, with these
// differences. [Device.Queue] and [Device.Pick] do not return it. Other code may put long or
// blocking work into the stream, and the queue's work behind it waits as long. So use another queue
// for work that must not wait for that. The queue cannot allocate or deallocate pool memory: that
// is [ErrUnsupported]. Use one of the device's own queues for it, and order the two by
// semaphores. When a lost device is closed, or Close gives up, the queue's work counts as over, for
// [Order].Free too. But the stream may still be running it, since the device cannot end the stream.
//
// The caller keeps ownership of the stream, may use it meanwhile from any thread, and must keep it
// until the queue is closed. It must be a stream of this device, with CUDA in the device's primary
// context. Default streams are refused, because they differ between contexts and threads. Streams
// of the device's own queues are refused too. While the stream is being captured, operations fail
// with [driver.ErrBusy] when they are issued, and do not become part of the graph. Do not begin a
// capture while an operation is being issued. AdoptQueue blocks while the driver does. If the
// driver does not support it ([driver.Caps].Adopt), the error is [ErrUnsupported].
func (d *Device) AdoptQueue(stream driver.Stream) (*Queue, error) {
	const op = "adopt a stream"
	switch err := d.ready(op); {
	case err != nil:
		return nil, err
	case d.faces.Adopter == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	case stream == 0:
		return nil, errs.Argument(op, "no stream; the default stream is another one with each context, and cannot be adopted")
	}
	for _, tl := range d.native.All() {
		if tl.Stream == stream && !tl.Adopted {
			return nil, errs.Argument(op, "stream %#x is that of %v", uintptr(stream), tl.Queue)
		}
	}
	q := newQueue(d, -1)
	q.tl.Stream, q.tl.Adopted = stream, true
	err := d.native.Do(func() (err error) {
		if q.priority, err = d.faces.Adopter.AdoptStream(stream); err == nil {
			d.native.AddTimeline(q.tl)
		}
		return err
	})
	if err != nil {
		d.native.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, err)
	}
	return q, nil
}

// Close releases the stream of a queue that [Device.AdoptQueue] made. When it returns nil, the
// runtime no longer uses the stream, and the caller may destroy it. Close does not wait for work in
// the stream: the work continues and its signals are reached. Operations that have not been issued
// fail with [ErrClosed], and so do later submissions. Closing again changes nothing. Closing one of
// the device's own queues is [ErrArgument]: it closes with the device. Device.Close closes the
// remaining adopted queues, and waits for their work as for all other work.
func (q *Queue) Close() error {
	if q == nil || q.dev == nil {
		return nil
	}
	if !q.tl.Adopted {
		return errs.Argument("close", "%v is the device's own, and is closed with it", q)
	}
	q.tl.CloseAdopted()
	return nil
}

// notOnAdopted returns the error for pool memory on a queue with an adopted stream. Pools cannot
// track the work that other code gives to the stream.
func (q *Queue) notOnAdopted(op work.Kind) error {
	return fmt.Errorf("gpu: %v on %v, whose stream is adopted: pools do not know what others give it: use a queue of the device's own, and order the two by a semaphore: %w",
		op, q, driver.ErrUnsupported)
}
