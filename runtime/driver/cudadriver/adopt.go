package cudadriver

import (
	"fmt"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Adopter = (*device)(nil)

// Event returns the CUDA handle of an event of this package.
func Event(e driver.Event) cuda.Event { return cuda.Event(e) }

// noAdopt makes the error of a call on a device without Caps.Adopt.
func (d *device) noAdopt(op string) error {
	return d.fail(op, driver.ErrUnsupported, "streams of other code")
}

// AdoptStream does not add the stream to d.streams. The method settle queries the streams there,
// and a query could invalidate a capture that the stream's owner has begun.
func (d *device) AdoptStream(s driver.Stream) (int, error) {
	const op = "adopt stream"
	if !d.caps.Adopt {
		return 0, d.noAdopt(op)
	}
	if s <= defaultStreams {
		return 0, d.fail(op, fmt.Errorf("a default stream is another one with each context, or each thread (a stream of cuStreamCreate without CU_STREAM_NON_BLOCKING is in order with the legacy one): %w",
			cuda.ErrorInvalidHandle), "stream %#x", uintptr(s))
	}
	ctx, err := d.lib.StreamGetCtx(cuda.Stream(s))
	if err != nil {
		return 0, d.fail(op, err, "context of stream %#x", uintptr(s))
	}
	if ctx != d.ctx {
		return 0, d.fail(op, fmt.Errorf("it is of context %#x, not of the device's primary context %#x: %w", uintptr(ctx), uintptr(d.ctx), cuda.ErrorInvalidContext),
			"stream %#x", uintptr(s))
	}
	priority, err := d.lib.StreamGetPriority(cuda.Stream(s))
	if err != nil {
		return 0, d.fail(op, err, "priority of stream %#x", uintptr(s))
	}
	return int(priority), nil
}

// Capturing reports true for an invalidated capture too, until the capture is ended.
func (d *device) Capturing(s driver.Stream) (captures bool, err error) {
	const op = "capturing"
	if !d.caps.Adopt {
		return false, d.noAdopt(op)
	}
	var status cuda.StreamCaptureStatus
	err = d.submit(func() (err error) {
		status, err = d.lib.StreamIsCapturing(cuda.Stream(s))
		return err
	})
	if err != nil {
		return false, d.fail(op, err, "stream %#x", uintptr(s))
	}
	return status != cuda.StreamCaptureStatusNone, nil
}
