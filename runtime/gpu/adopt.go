package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// AdoptQueue makes a queue of a stream that the program has made by calls of the driver's own API, or that a library has (C: CUstream,
// hipStream_t). What the queue is given is in order with what others give the stream: behind what the stream had when an operation is
// issued, and in front of what it is given later. [Semaphore.WaitIssued] of a point that an operation signals tells when it has been issued.
//
// It is a queue like the device's own, of the stream's priority, with these differences. [Device.Queue] and [Device.Pick] do not return it.
// Others may put into the stream what takes any time, or waits for anything, and the queue's work behind it waits as long; so what must
// not wait for that belongs on another queue. It neither allocates memory of
// pools nor deallocates it, which is [driver.ErrUnsupported]: a queue of the device's own does that, ordered by semaphores. When a device is closed that is lost, or that Close gives up, the queue's work counts as over, for [Order].Free too,
// though the stream, which is not the device's to end, may still be at it.
//
// The stream stays the caller's, who may use it meanwhile, from any thread, and must keep it until the queue is closed. It must be of
// this device, and of CUDA's in the device's primary context. The default streams, which are others with each context or thread, are
// refused, and so are those of the device's own queues. While somebody captures what the stream is given, operations fail when they are
// issued, with [driver.ErrBusy], and nothing of them becomes part of the graph; who begins a capture must see to it that none is being issued
// just then. AdoptQueue blocks while the driver does. Where the driver takes no streams of others ([driver.Caps].Adopt) the error is
// [driver.ErrUnsupported].
func (d *Device) AdoptQueue(stream driver.Stream) (*Queue, error) {
	const op = "adopt a stream"
	switch err := d.failed(); {
	case err != nil:
		return nil, err
	case d.faces.adopter == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, d.native.Info.Name, driver.ErrUnsupported)
	case stream == 0:
		return nil, argument(op, "no stream; the default stream is another one with each context, and cannot be adopted")
	}
	for _, tl := range d.native.All() {
		if tl.Stream == stream && !tl.Adopted {
			return nil, argument(op, "stream %#x is that of %v", uintptr(stream), tl.Queue)
		}
	}
	q := newQueue(d, -1)
	q.tl.Stream, q.tl.Adopted = stream, true
	err := d.native.Do(func() (err error) {
		if q.priority, err = d.faces.adopter.AdoptStream(stream); err == nil {
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

// Close lets go of the stream of a queue that [Device.AdoptQueue] has made: when it returns nothing of the runtime's uses the stream any
// more, which the caller may destroy. What the stream has been given goes on, and its signals come as ever; Close does not wait for it. What
// has not been issued fails with [ErrClosed], and so does what is submitted later. Closing again changes nothing. A queue of the device's
// own is closed with the device: [ErrArgument]. Device.Close closes the queues that are left, and waits for their work as for all other.
func (q *Queue) Close() error {
	if q == nil || q.dev == nil {
		return nil
	}
	if !q.tl.Adopted {
		return argument("close", "%v is the device's own, and is closed with it", q)
	}
	q.tl.CloseAdopted()
	return nil
}

// notOnAdopted is the error of pool memory on a queue whose stream is not the runtime's. Other code puts work there that the pools do not
// hear of.
func (q *Queue) notOnAdopted(op work.Kind) error {
	return fmt.Errorf("gpu: %v on %v, whose stream is adopted: pools do not know what others give it: use a queue of the device's own, and order the two by a semaphore: %w",
		op, q, driver.ErrUnsupported)
}
