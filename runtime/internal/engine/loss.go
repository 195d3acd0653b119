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

// Loss returns the error with which the device was lost, or nil if it is not lost.
func (d *Device) Loss() error {
	if f := d.lost.Load(); f != nil {
		return f.Err
	}
	return nil
}

// Failed returns nil if the device accepts new work. Otherwise it returns why not: the device is
// lost or closed.
func (d *Device) Failed() error {
	if f := d.lost.Load(); f != nil {
		return f.Err
	}
	if d.phase.Load() >= isClosing {
		return d.ClosedError()
	}
	return nil
}

// ClosedError returns the error for work that fails because the device is closed.
func (d *Device) ClosedError() error {
	return fmt.Errorf("gpu: device %s: %w", d.Info.Name, sema.ErrClosed)
}

// halted returns nil if the device still issues submissions that it has accepted. Otherwise halted
// returns the reason why not.
func (d *Device) halted() error {
	if d.lost.Load() == nil && d.phase.Load() < isStopped {
		return nil
	}
	return d.Failed()
}

// lostBy returns the Failure of a device that is lost because of err.
func (d *Device) lostBy(err error) *Failure {
	if !errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	return &Failure{fmt.Errorf("gpu: device %s: %w", d.Info.Name, err)}
}

// markLost marks the device as lost, so that the device accepts no more work. It returns true if no
// earlier call has marked the device. Callers of markLost may hold locks, so markLost does not fail
// the work. If markLost returns true, the caller must call Check or failAll when it holds no locks.
func (d *Device) markLost(err error) (first bool) {
	if first = d.lost.CompareAndSwap(nil, d.lostBy(err)); first {
		d.Owner.IsLost(d.Failed())
	}
	return first
}

// Lose marks the device as lost. All its unfinished work fails, and so does all work submitted
// later. The caller holds no locks.
func (d *Device) Lose(err error) {
	if d.markLost(err) {
		d.failAll()
	}
}

// failAll fails all unfinished work of a lost device. Then failAll loses the devices whose streams
// wait for that work.
func (d *Device) failAll() {
	d.failInFlight()
	d.failLanes(d.Failed())
	d.loseFollowers()
}

// Check handles an error of the driver. If the error says that the device is lost, Check marks the
// device as lost. If the device is lost now, by this error or an earlier one, Check fails all work
// of the device. The caller holds no locks.
func (d *Device) Check(err error) {
	var e *driver.Error
	if d.lost.Load() == nil && errors.As(err, &e) && e.Lost {
		d.markLost(err)
	}
	// The device may have been marked as lost by a goroutine that held locks and so could not fail
	// the work.
	if d.lost.Load() != nil {
		d.failAll()
	}
}

// failInFlight fails all submissions of a lost device, issued or parked, including published
// barriers. Issued submissions keep everything that they hold until the device is closed.
func (d *Device) failInFlight() {
	err := d.lost.Load().Err
	for _, tl := range d.All() {
		sema.Release(tl.FailInFlight(err))
	}
	d.cancelParked(err, true)
}

// Abandon releases everything that the submissions in the ring hold, and recycles the submissions.
// Nobody retires submissions any more, because Timeline.End was called. Abandon runs on the
// pending-queue thread, at the end of closing.
func (tl *Timeline) Abandon() {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	last := tl.issued.Load()
	tl.neverBegins.Store(deadSearch{}.first(tl, last))
	for tl.ring.head <= last {
		tl.ring.mu.Lock()
		s := tl.ring.at(tl.ring.head)
		tl.ring.head++
		tl.ring.mu.Unlock()
		tl.Device.Recycle(s)
	}
}

// If a stream of device A waits for unfinished work of a lost device B, A is lost too. Two
// goroutines may act at the same time. Each of them first makes its own step visible and then
// checks for the step of the other goroutine, so that the loss of A cannot be missed:
//
//   - The goroutine that issues a submission of A adds the submission's mark to B.lent, makes the
//     native wait and puts the submission into the ring. Then it checks whether B is lost.
//   - The goroutine that loses B first marks B as lost. Then it searches the rings of the timelines
//     in B.lent.

// loseFollowers loses all devices whose streams wait for unfinished work of d, which is lost.
func (d *Device) loseFollowers() {
	for _, tl := range d.lent.timelines() {
		tl.loseBehind(1, math.MaxUint64)
	}
}

// loseBehind looks for a submission that waits for unfinished work of a lost device. It looks at
// the numbers between from and to. If the stream has not passed such a submission, loseBehind loses
// the timeline's device. loseBehind queries the driver at most once. The caller has locked no
// timeline of the device.
func (tl *Timeline) loseBehind(from, to uint64) {
	seq, err := tl.behindLost(from, to)
	if err != nil && tl.Device.lost.Load() == nil && !tl.hasPassed(seq) {
		tl.Device.Lose(&behindError{err})
	}
}

// behindLost returns the number of the last submission between from and to that waits for
// unfinished work of a lost device. It also returns the error with which that device was lost. If
// there is no such submission, the number is 0.
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

// A deadSearch finds work that never begins: work that waits for work of a device that the driver
// has lost, or work that waits for other work that never begins. A device that was lost for another
// reason may go on working, for example a device that Close gave up. The search remembers for each
// timeline how far it has looked, and what it has found.
type deadSearch map[*Timeline]struct{ upTo, first uint64 }

// first returns the number of the first submission of tl that never begins. It looks only at
// submissions with numbers up to the parameter last. If all of these begin, first returns 0.
func (d deadSearch) first(tl *Timeline, last uint64) uint64 {
	x := d[tl]
	if x.first == 0 {
		x.first = tl.neverBegins.Load()
	}
	if x.first == 0 && x.upTo < last {
		for _, f := range tl.followsLost(x.upTo+1, last) {
			// Work waits only for work that was issued before it, so the recursion ends.
			if f.mark.dead() || d.first(f.mark.Timeline, f.mark.Seq) > 0 {
				x.first = f.seq
				break
			}
		}
		x.upTo = last
		d[tl] = x
	}
	if x.first > last {
		return 0
	}
	return x.first
}

// A follower is a submission that waits for the work at a mark.
type follower struct {
	seq  uint64
	mark Mark
}

// followsLost looks at the submissions whose numbers are between from and last, in order. It
// returns a follower for each mark on another timeline that one of these submissions waits for, if
// the mark's device was lost before the work at the mark was known to be done.
func (tl *Timeline) followsLost(from, last uint64) (all []follower) {
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	for seq := max(from, tl.ring.head); seq <= min(last, tl.issued.Load()); seq++ {
		for _, m := range tl.ring.at(seq).Follows.marks {
			if m.Lost() != nil && m.Timeline != tl {
				all = append(all, follower{seq, m})
			}
		}
	}
	return all
}

// dead reports whether the driver lost the mark's device before the mark's timeline was known to
// have passed the mark.
func (m Mark) dead() bool {
	var e *driver.Error
	var behind *behindError
	err := m.Lost()
	return errors.As(err, &e) && e.Lost && !errors.As(err, &behind)
}

// A behindError is the error with which a device is lost because one of its streams waits for work
// of a lost device. err is the error with which that device was lost.
type behindError struct{ err error }

func (e *behindError) Error() string {
	return fmt.Sprintf("a stream waits for work of another device: %v", e.err)
}

func (e *behindError) Unwrap() error { return e.err }

// behindLost checks whether the submission is ordered after unfinished work of another device that
// is lost. If so, behindLost returns the error with which that device was lost, otherwise nil.
func (s *Submission) behindLost() error {
	for _, m := range s.Follows.marks {
		if err := m.Lost(); err != nil && m.Timeline.Device != s.Timeline.Device {
			return err
		}
	}
	return nil
}

// hasPassed reports whether the stream has passed seq. It queries the driver at most once, and
// returns false if the query fails. The caller knows that an event is recorded behind seq. If Close
// no longer waits for callers of Stay, hasPassed returns true: before that, Close has waited for
// the work in flight.
func (tl *Timeline) hasPassed(seq uint64) bool {
	d := tl.Device
	if d.Stay() != nil {
		return true
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

// wantFollowed acts once in followedEvery polls that find nothing done.
const followedEvery = 16

// wantFollowed is called after a poll that found nothing done. In every followedEvery-th call it
// requests polling of the timelines that the oldest submission in flight waits for. Perhaps nobody
// else polls these timelines, and only a poll finds out that their device is lost.
func (tl *Timeline) wantFollowed() {
	if tl.emptyPolls.Add(1)%followedEvery != 0 {
		return
	}
	tl.ring.mu.Lock()
	defer tl.ring.mu.Unlock()
	if tl.ring.head <= tl.issued.Load() {
		for _, m := range tl.ring.at(tl.ring.head).Follows.marks {
			if m.Timeline.passed.Load() < m.Seq {
				m.Timeline.want(m.Seq)
			}
		}
	}
}
