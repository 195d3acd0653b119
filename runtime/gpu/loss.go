package gpu

import (
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A failure is an error that is stored atomically.
type failure struct{ err error }

// loss returns why the device is lost, or nil if it is not.
func (d *nativeDevice) loss() error {
	if f := d.lost.Load(); f != nil {
		return f.err
	}
	return nil
}

// failed returns why the device takes no more work.
func (d *nativeDevice) failed() error {
	if f := d.lost.Load(); f != nil {
		return f.err
	}
	if d.phase.Load() >= isClosing {
		return d.closedError()
	}
	return nil
}

func (d *nativeDevice) closedError() error {
	return fmt.Errorf("gpu: device %s: %w", d.info.Name, sema.ErrClosed)
}

// halted returns why the device issues nothing any more, not even what it has taken.
func (d *nativeDevice) halted() error {
	if d.lost.Load() == nil && d.phase.Load() < isStopped {
		return nil
	}
	return d.failed()
}

// lostBy makes the failure of a device that is lost for a reason.
func (d *nativeDevice) lostBy(err error) *failure {
	if !errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	return &failure{fmt.Errorf("gpu: device %s: %w", d.info.Name, err)}
}

// markLost has the device take no more work. It reports whether the caller is the first, who must then check, without locks.
func (d *nativeDevice) markLost(err error) (first bool) {
	if first = d.lost.CompareAndSwap(nil, d.lostBy(err)); first {
		d.owner.isLost(d.failed())
	}
	return first
}

// lose marks the device as lost: everything that is in flight fails, and everything that comes.
func (d *nativeDevice) lose(err error) {
	if d.markLost(err) {
		d.failAll()
	}
}

// failAll fails everything that a lost device has, and loses the devices that wait for it.
func (d *nativeDevice) failAll() {
	d.failInFlight()
	d.failLanes(d.failed())
	d.loseFollowers()
}

// check looks whether an error of the device's own driver says that the device is lost.
func (d *nativeDevice) check(err error) {
	var e *driver.Error
	if d.lost.Load() == nil && errors.As(err, &e) && e.Lost {
		d.markLost(err)
	}
	if d.lost.Load() != nil { // also who could not fail anything, for it held locks
		d.failAll()
	}
}

// failInFlight fails all that a lost device has been given, also what waits for something that may never come. What the work holds it
// holds until the device is closed.
func (d *nativeDevice) failInFlight() {
	err := d.lost.Load().err
	for _, tl := range d.all() {
		sema.Release(tl.failInFlight(err))
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

// A device is lost with another one if a stream of it waits for unfinished work of that one. Two
// sides check this, so that neither misses the other:
//
//   - A submission notes its mark in lent of the device that it is about to wait for. It makes the
//     native wait, puts its record into the ring, and then checks whether that device is lost.
//   - Whoever finds a device lost marks it as lost, and then looks into the rings of the timelines
//     in lent.

// loseFollowers loses the devices whose streams wait for unfinished work of this one, which is lost.
func (d *nativeDevice) loseFollowers() {
	for _, tl := range d.lent.timelines() {
		tl.loseBehind(1, math.MaxUint64)
	}
}

// loseBehind loses the timeline's device if the stream waits for unfinished work of a lost device
// with a number from one to another. It asks the driver once whether the stream has passed that
// number. The caller has locked no timeline of the device.
func (tl *timeline) loseBehind(from, to uint64) {
	seq, err := tl.behindLost(from, to)
	if err != nil && tl.dev.lost.Load() == nil && !tl.hasPassed(seq) {
		tl.dev.lose(fmt.Errorf("a stream waits for work of another device: %w", err))
	}
}

// behindLost returns the last number in a range with which the stream waits for unfinished work of a
// lost device, and the error of that device.
func (tl *timeline) behindLost(from, to uint64) (seq uint64, err error) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := min(to, tl.issued.Load()); seq >= max(from, tl.ring.head); seq-- {
		if err := tl.ring.at(seq).behindLost(); err != nil {
			return seq, err
		}
	}
	return 0, nil
}

// firstBehindLost returns the first number up to one with which the stream waits for unfinished work of a
// lost device, or 0.
func (tl *timeline) firstBehindLost(to uint64) uint64 {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= min(to, tl.issued.Load()); seq++ {
		if tl.ring.at(seq).behindLost() != nil {
			return seq
		}
	}
	return 0
}

// behindLost returns the error of a lost device, not its own, whose unfinished work the submission comes after.
func (s *submission) behindLost() error {
	for _, m := range s.follows {
		if err := m.lost(); err != nil && m.tl.dev != s.tl.dev {
			return err
		}
	}
	return nil
}

// hasPassed asks the driver whether the stream has passed a number that has an event behind it.
func (tl *timeline) hasPassed(seq uint64) bool {
	d := tl.dev
	if d.stay() != nil {
		return true // what it had in flight has been waited for
	}
	defer d.leave()
	e, passed := tl.eventBehind(seq)
	if e == nil {
		return passed
	}
	defer e.drop()
	passed, err := d.drv.Query(e.h)
	return err == nil && passed
}

// askLate is how often a timeline is asked in vain before the timelines that it waits for are asked.
const askLate = 16

// wantFollowed has the timelines asked that the oldest work in flight comes after. Their device may
// be lost, and nobody else may be asking it.
func (tl *timeline) wantFollowed() {
	if tl.vain.Add(1)%askLate != 0 {
		return
	}
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if tl.ring.head <= tl.issued.Load() {
		for _, m := range tl.ring.at(tl.ring.head).follows {
			if m.tl.passed.Load() < m.seq {
				m.tl.want(m.seq)
			}
		}
	}
}
