package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// A Failure is an error that is stored atomically.
type Failure struct{ Err error }

// Loss returns why the device is lost, or nil.
func (d *Device) Loss() error {
	if f := d.lost.Load(); f != nil {
		return f.Err
	}
	return nil
}

// Failed returns why the device takes no more work, or nil.
func (d *Device) Failed() error {
	if f := d.lost.Load(); f != nil {
		return f.Err
	}
	if d.phase.Load() >= isClosing {
		return d.ClosedError()
	}
	return nil
}

func (d *Device) ClosedError() error {
	return fmt.Errorf("gpu: device %s: %w", d.Info.Name, sema.ErrClosed)
}

// halted returns why the device issues nothing any more, not even work that it has taken, or nil.
func (d *Device) halted() error {
	if d.lost.Load() == nil && d.phase.Load() < isStopped {
		return nil
	}
	return d.Failed()
}

// lostBy makes the failure of a device that is lost because of err.
func (d *Device) lostBy(err error) *Failure {
	if !errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	return &Failure{fmt.Errorf("gpu: device %s: %w", d.Info.Name, err)}
}

// markLost marks the device as lost, so that it takes no more work. It reports whether the caller
// was the first. That caller must call Check later, without locks, to fail the work.
func (d *Device) markLost(err error) (first bool) {
	if first = d.lost.CompareAndSwap(nil, d.lostBy(err)); first {
		d.Owner.IsLost(d.Failed())
	}
	return first
}

// Lose marks the device as lost. All work in flight fails, and all later work.
func (d *Device) Lose(err error) {
	if d.markLost(err) {
		d.failAll()
	}
}

// failAll fails all work of a lost device, and loses the devices whose streams wait for that work.
func (d *Device) failAll() {
	d.failInFlight()
	d.failLanes(d.Failed())
	d.loseFollowers()
}

// Check loses the device if err, an error of its own driver, says that the device is lost. If the
// device is lost already, Check fails its work. The caller holds no locks.
func (d *Device) Check(err error) {
	var e *driver.Error
	if d.lost.Load() == nil && errors.As(err, &e) && e.Lost {
		d.markLost(err)
	}
	// A goroutine that called markLost with locks held could not fail the work.
	if d.lost.Load() != nil {
		d.failAll()
	}
}

// failInFlight fails all work of a lost device, issued or parked, including barriers that wait for
// work in flight. Issued work keeps what it holds until the device is closed.
func (d *Device) failInFlight() {
	err := d.lost.Load().Err
	for _, tl := range d.All() {
		sema.Release(tl.FailInFlight(err))
	}
	d.cancelParked(err, true)
}

// Abandon recycles the submissions that the stream has not passed, and so releases what they hold.
// The stream has been destroyed. Abandon runs on the device's thread, at the end of closing.
func (tl *Timeline) Abandon() {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	for last := tl.issued.Load(); tl.ring.head <= last; {
		tl.ring.mu.Lock()
		s := tl.ring.at(tl.ring.head)
		tl.ring.head++
		tl.ring.mu.Unlock()
		tl.Device.Recycle(s)
	}
}

// If a stream of device A waits for unfinished work of a lost device B, A is lost too. Both sides
// check for this, so that neither misses the other:
//
//   - A submission of A adds its mark to B.lent. It makes the native wait, puts its record into the
//     ring, and then checks whether B is lost.
//   - A goroutine that finds B lost marks B as lost, and then searches the rings of the timelines
//     in B.lent.

// loseFollowers loses the devices whose streams wait for unfinished work of this lost device.
func (d *Device) loseFollowers() {
	for _, tl := range d.lent.timelines() {
		tl.loseBehind(1, math.MaxUint64)
	}
}

// loseBehind loses the timeline's device if a submission numbered between from and to waits for
// unfinished work of a lost device, and the stream has not passed that submission. It queries the
// driver once. The caller has locked no timeline of the device.
func (tl *Timeline) loseBehind(from, to uint64) {
	seq, err := tl.behindLost(from, to)
	if err != nil && tl.Device.lost.Load() == nil && !tl.hasPassed(seq) {
		tl.Device.Lose(fmt.Errorf("a stream waits for work of another device: %w", err))
	}
}

// behindLost returns the number of the last submission between from and to that waits for
// unfinished work of a lost device, and the error of that device. It returns 0 if there is no such
// submission.
func (tl *Timeline) behindLost(from, to uint64) (seq uint64, err error) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := min(to, tl.issued.Load()); seq >= max(from, tl.ring.head); seq-- {
		if err := tl.ring.at(seq).behindLost(); err != nil {
			return seq, err
		}
	}
	return 0, nil
}

// firstBehindLost returns the number of the first submission, up to to, that waits for unfinished
// work of a lost device, or 0 if there is none.
func (tl *Timeline) firstBehindLost(to uint64) uint64 {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := tl.ring.head; seq <= min(to, tl.issued.Load()); seq++ {
		if tl.ring.at(seq).behindLost() != nil {
			return seq
		}
	}
	return 0
}

// behindLost returns the error of another device that is lost and whose unfinished work the
// submission is ordered after, or nil.
func (s *Submission) behindLost() error {
	for _, m := range s.Follows {
		if err := m.Lost(); err != nil && m.Timeline.Device != s.Timeline.Device {
			return err
		}
	}
	return nil
}

// hasPassed queries the driver whether the stream has passed seq. An event is recorded behind seq.
func (tl *Timeline) hasPassed(seq uint64) bool {
	d := tl.Device
	if d.Stay() != nil {
		return true // Close has already waited for the work in flight
	}
	defer d.Leave()
	e, passed := tl.eventBehind(seq)
	if e == nil {
		return passed
	}
	defer e.Drop()
	passed, err := d.Native.Query(e.Handle)
	return err == nil && passed
}

// followedEvery is the number of fruitless polls after which wantFollowed also has those timelines
// polled that this timeline waits for.
const followedEvery = 16

// wantFollowed is called after a poll that found nothing done. Every followedEvery-th time it
// requests polling of the timelines that the oldest submission in flight waits for. Their device
// may be lost, and perhaps nobody else polls it and would notice.
func (tl *Timeline) wantFollowed() {
	if tl.emptyPolls.Add(1)%followedEvery != 0 {
		return
	}
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if tl.ring.head <= tl.issued.Load() {
		for _, m := range tl.ring.at(tl.ring.head).Follows {
			if m.Timeline.passed.Load() < m.Seq {
				m.Timeline.want(m.Seq)
			}
		}
	}
}
