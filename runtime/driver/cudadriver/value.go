package cudadriver

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Values = (*device)(nil)

// valueOps is the first release whose functions for values need no option of the kernel module.
const valueOps = 11070

// noValues makes the error of a call on a device without Caps.Values.
func (d *device) noValues(op string) error {
	return d.fail(op, driver.ErrUnsupported, "values in memory")
}

// WriteValue needs no memory barrier: cuStreamWriteValue64 makes one before it writes.
func (d *device) WriteValue(s driver.Stream, p driver.Ptr, value uint64) error {
	const op = "write value"
	switch {
	case !d.caps.Values:
		return d.noValues(op)
	case s <= defaultStreams:
		return d.noStream(op, s)
	}
	if err := d.submit(func() error {
		return d.lib.StreamWriteValue64(cuda.Stream(s), cuda.DevicePtr(p), value, cuda.StreamWriteValueDefault)
	}); err != nil {
		return d.fail(op, err, "%#x at %#x in stream %#x", value, uint64(p), uintptr(s))
	}
	return nil
}

func (d *device) WaitValue(s driver.Stream, p driver.Ptr, value uint64) error {
	const op = "wait value"
	switch {
	case !d.caps.Values:
		return d.noValues(op)
	case s <= defaultStreams:
		return d.noStream(op, s)
	}
	if err := d.submit(func() error {
		return d.lib.StreamWaitValue64(cuda.Stream(s), cuda.DevicePtr(p), value, cuda.StreamWaitValueGeq)
	}); err != nil {
		return d.fail(op, err, "%#x at %#x in stream %#x", value, uint64(p), uintptr(s))
	}
	return nil
}
