package gpu

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// Close releases the stream of a queue that AdoptStream of package interop made. When Close returns
// nil, the runtime no longer uses the stream, and the caller may destroy the stream. Close does not
// wait for work in the stream: the work goes on, and its signals are given. Operations that have
// not been issued fail with [ErrClosed], and so do later submissions. Closing again changes
// nothing.
//
// The device's own queues close with the device: for such a queue, Close returns [ErrArgument].
// [Device.Close] also ends the use of adopted queues that are still open, and waits for their work.
func (q *Queue) Close() error {
	if q == nil || q.dev == nil {
		return nil
	}
	if !q.tl.Adopted {
		return errs.Argument("close", "%v is the device's own, and is closed with it", q)
	}
	q.tl.CloseAdopted()
	return q.scratch.close()
}

// notOnAdopted returns the error of an Alloc or a Free on a queue with an adopted stream. Pools
// cannot track the work that other code gives to the stream.
func (q *Queue) notOnAdopted(op work.Kind) error {
	return fmt.Errorf("gpu: %v on %v, whose stream is adopted: pools do not know what others give it: use a queue of the device's own, and order the two by a semaphore: %w",
		op, q, driver.ErrUnsupported)
}
