package gpu

import (
	"errors"
	"fmt"
	"time"

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
	if d.phase.Load() >= isClosing {
		return d.closedError()
	}
	return nil
}

func (d *Device) closedError() error { return fmt.Errorf("gpu: device %s: %w", d.info.Name, ErrClosed) }

// halted returns why the device issues nothing any more, not even what it has taken.
func (d *Device) halted() error {
	if d.lost.Load() == nil && d.phase.Load() < isStopped {
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

// markLost has the device take no more work. It reports whether the caller is the first, who must then check, without locks.
func (d *Device) markLost(err error) (first bool) {
	if first = d.lost.CompareAndSwap(nil, d.lostBy(err)); first {
		d.opt.Tracer.lost(d, d.failed())
	}
	return first
}

// lose marks the device as lost: everything that is in flight fails, and everything that comes.
func (d *Device) lose(err error) {
	if d.markLost(err) {
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
	if d.lost.Load() != nil { // also who could not fail anything, for it held locks
		d.failInFlight()
		d.failChannels(d.failed())
	}
}

// failInFlight fails all that a lost device has been given, also what waits for something that may never come. What the work holds it
// holds until the device is closed.
func (d *Device) failInFlight() {
	err := d.lost.Load().err
	for _, q := range d.all() {
		release(q.tl.failInFlight(err))
	}
	d.cancelParked(err, true)
}

// abandon lets go of what the stream, which has been destroyed, has never been seen to pass. It runs on the device's thread, in the end.
func (tl *timeline) abandon() {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	for last := tl.issued.Load(); tl.ring.head <= last; {
		tl.ring.mu.Lock()
		s := tl.ring.at(tl.ring.head)
		tl.ring.head++
		tl.ring.mu.Unlock()
		tl.dev.recycle(s)
	}
}

// lossPatience is how long a stream may take to pass work that waits for nothing but a lost device. What it waits for may have been done
// before the loss, and then the work is about to be done as well.
const lossPatience = 200 * time.Millisecond

// askLate is how often in vain somebody asks about work before those are asked on, too, whom it comes after: one of them may be stuck
// behind a lost device, and nobody else may be asking it.
const askLate = 16

// stuckBehind returns with what its device is to be lost if the stream waits for a lost device. The oldest work tells: it comes after
// work of that one, and after nothing else that has not been passed. Where it comes after something that is only late, those who can tell are asked.
func (tl *timeline) stuckBehind() (err error) {
	if tl.vain.Add(1)%askLate != 0 {
		return nil
	}
	late := false
	tl.ring.mu.Lock()
	if tl.ring.head <= tl.issued.Load() {
		s := tl.ring.at(tl.ring.head)
		for _, m := range s.follows {
			if e := m.lost(); e != nil {
				err = fmt.Errorf("a stream waits for work of another device: %w", e)
			} else if m.tl.passed.Load() < m.seq {
				late = true
				m.tl.want(m.seq)
			}
		}
		switch {
		case late:
			err = nil
		case err == nil:
		case tl.stuck != s.seq:
			tl.stuck, tl.since, err = s.seq, time.Now(), nil
		case time.Since(tl.since) < lossPatience:
			err = nil
		}
	}
	tl.ring.mu.Unlock()
	return err
}
