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

// Elapsed wants both timers of this device. Its answer has seven digits.
func (d *device) Elapsed(from, to driver.Event) (time.Duration, error) {
	ms, err := d.lib.EventElapsedTime(hip.Event(from), hip.Event(to))
	if err != nil {
		return 0, d.fail("elapsed", err, "from event %#x to event %#x", uintptr(from), uintptr(to))
	}
	return time.Duration(math.Round(float64(ms) * float64(time.Millisecond))), nil
}
