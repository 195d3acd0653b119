package cudadriver

import (
	"math"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Timers = (*device)(nil)

func (d *device) NewTimer() (driver.Event, error) {
	e, err := d.lib.EventCreate(cuda.EventDefault)
	if err != nil {
		return 0, d.fail("new timer", err, "create an event with times")
	}
	return driver.Event(e), nil
}

// Elapsed has CUDA's accuracy: half a microsecond and seven significant digits.
func (d *device) Elapsed(from, to driver.Event) (time.Duration, error) {
	var ms float32
	err := d.submit(func() (err error) {
		if d.hasElapsed {
			ms, err = d.lib.EventElapsedTime(cuda.Event(from), cuda.Event(to))
		} else {
			ms, err = d.lib.EventElapsedTimeV1(cuda.Event(from), cuda.Event(to))
		}
		return err
	})
	if err != nil {
		return 0, d.fail("elapsed", err, "from event %#x to event %#x", uintptr(from), uintptr(to))
	}
	return time.Duration(math.Round(float64(ms) * float64(time.Millisecond))), nil
}
