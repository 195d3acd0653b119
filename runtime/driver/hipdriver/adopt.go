package hipdriver

import (
	"fmt"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Adopter = (*device)(nil)

// The device does not implement driver.Values, although HIP has the functions as a beta feature.
// Some devices can wait only for memory of hipMallocSignalMemory. Streams share few hardware
// queues, so a wait may block the write that it waits for. HIP compares values as unsigned numbers.

// Event returns the HIP handle of an event of this package.
func Event(e driver.Event) hip.Event { return hip.Event(e) }

// noAdopt makes the error of a call on a device without Caps.Adopt.
func (d *device) noAdopt(op string) error {
	return d.refuse(op, driver.ErrUnsupported, "streams of other code")
}

// AdoptStream does not add the stream to d.streams. The method busy queries the streams there, and
// a query could invalidate a capture that the stream's owner has begun.
func (d *device) AdoptStream(s driver.Stream) (int, error) {
	const op = "adopt stream"
	if !d.caps.Adopt {
		return 0, d.noAdopt(op)
	}
	if s <= defaultStreams {
		return 0, d.refuse(op, fmt.Errorf("a default stream is another one with each device, or each thread: %w", hip.ErrorInvalidHandle), "stream %#x", uintptr(s))
	}
	on, err := d.lib.StreamGetDevice(hip.Stream(s))
	if err != nil {
		return 0, d.fail(op, err, "device of stream %#x", uintptr(s))
	}
	if int32(on) != d.id {
		return 0, d.refuse(op, fmt.Errorf("it is of device %d: %w", on, hip.ErrorInvalidDevice), "stream %#x", uintptr(s))
	}
	priority, err := d.lib.StreamGetPriority(hip.Stream(s))
	if err != nil {
		return 0, d.fail(op, err, "priority of stream %#x", uintptr(s))
	}
	return int(priority), nil
}

// Capturing reports true for an invalidated capture too, until the capture is ended.
func (d *device) Capturing(s driver.Stream) (is bool, err error) {
	const op = "capturing"
	if !d.caps.Adopt {
		return false, d.noAdopt(op)
	}
	err = d.submit(op, func() error {
		status, err := d.lib.StreamIsCapturing(hip.Stream(s))
		if err != nil {
			return d.fail(op, err, "stream %#x", uintptr(s))
		}
		is = status != hip.StreamCaptureStatusNone
		return nil
	})
	return is, err
}
