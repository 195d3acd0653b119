package hipdriver

import (
	"math"
	"time"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.Timers = (*device)(nil)

func (d *device) NewTimer() (driver.Event, error) {
	e, err := d.lib.EventCreateWithFlags(hip.EventDefault)
	if err != nil {
		return 0, d.fail("new timer", err, "create an event with times")
	}
	return driver.Event(e), nil
}

// Elapsed needs both timers to be of this device. HIP's result has seven significant digits.
func (d *device) Elapsed(from, to driver.Event) (took time.Duration, err error) {
	err = d.submit("elapsed", func() error {
		ms, err := d.lib.EventElapsedTime(hip.Event(from), hip.Event(to))
		if err != nil {
			return d.fail("elapsed", err, "from event %#x to event %#x", uintptr(from), uintptr(to))
		}
		took = time.Duration(math.Round(float64(ms) * float64(time.Millisecond)))
		return nil
	})
	return took, err
}
