package cudadriver

import (
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Values = (*device)(nil)

// valueOps is the first release with the functions in the form that needs no option of the kernel
// module.
const valueOps = 11070

// noValues makes the error of a call that Caps exclude.
func (d *device) noValues(op string) error {
	return d.fail(op, driver.ErrUnsupported, "values in memory")
}

// WriteValue comes after a memory barrier, which cuStreamWriteValue64 makes by itself.
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
