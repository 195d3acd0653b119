package hipdriver

import (
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/trial"
)

// fromStream is the first release that takes the device of all submitting calls from the stream,
// according to the sources of 5.6 and 6.2. No documentation says so.
const fromStream = 5_06_00000

// probe reports whether HIP takes the device of all submitting calls from the stream, whatever
// device is current on the thread. It returns false for releases before fromStream. Otherwise it
// calls most submitting methods and checks the results, on a thread where another device is current
// if there is one. probe launches no kernel, because no kernel runs on every device. An error means
// that the device is unusable.
func (d *device) probe(devices int) (anywhere bool, err error) {
	if d.lib.Version() < fromStream {
		return false, nil
	}
	// The device is current on this thread. The device may be current on the other thread too, so
	// the function elsewhere makes a different device current there.
	elsewhere := func(f func() error) error {
		return trial.OnAnother(func() error { return d.withoutDevice(devices, f) })
	}
	return trial.Run(d, nil, elsewhere, func(s driver.Stream) error {
		if err := d.lib.StreamSynchronize(hip.Stream(s)); err != nil {
			return d.fail("open", err, "wait for the first work")
		}
		return nil
	})
}

// withoutDevice runs f while another device is current, if there is one. The calling thread must be
// locked.
func (d *device) withoutDevice(devices int, f func() error) error {
	before, err := d.lib.GetDevice()
	if err != nil {
		return d.fail("open", err, "the thread's current device")
	}
	if before != d.id || devices == 1 {
		return f()
	}
	return d.during("open", (d.id+1)%int32(devices), "another device", f)
}
