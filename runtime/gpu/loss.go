package gpu

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
)

// failed returns why the device takes no more work.
func (d *Device) failed() error {
	if d == nil || d.drv == nil {
		return errZero
	}
	if f := d.lost.Load(); f != nil {
		return f.err
	}
	if d.closing.Load() {
		return d.closedError()
	}
	return nil
}

func (d *Device) closedError() error { return fmt.Errorf("gpu: device %s: %w", d.info.Name, ErrClosed) }

// halted returns why the device issues nothing any more, not even what it has taken.
func (d *Device) halted() error {
	if d.lost.Load() == nil && !d.stopped.Load() {
		return nil
	}
	return d.failed()
}

// lostBy makes the failure of a device that is lost for a reason.
func (d *Device) lostBy(err error) *failure {
	if !errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	return &failure{fmt.Errorf("gpu: device %s: %w", d.info.Name, err)}
}

// lose marks the device as lost: everything that is in flight fails, and everything that comes.
func (d *Device) lose(err error) {
	if d.lost.CompareAndSwap(nil, d.lostBy(err)) {
		d.failInFlight()
		d.failChannels(d.failed())
	}
}

// check looks whether an error of the device's own driver says that the device is lost.
func (d *Device) check(err error) {
	var e *driver.Error
	if d.lost.Load() == nil && errors.As(err, &e) && e.Lost {
		d.lose(err)
	}
	if d.lost.Load() != nil {
		d.failInFlight()
	}
}

// failInFlight fails all that a lost device has been given, also what waits for something that may never come.
func (d *Device) failInFlight() {
	err := d.lost.Load().err
	for _, q := range d.all() {
		s, released := q.tl.drain(err)
		for s != nil {
			next := s.next
			s.next = nil
			clear(s.held) // they stay away: nobody knows whether the lost streams still wait for them
			s.held = s.held[:0]
			d.recycle(s)
			s = next
		}
		release(released)
	}
	d.cancelParked(err, true)
}
