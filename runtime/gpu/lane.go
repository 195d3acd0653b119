package gpu

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A lane is a queue that issues its groups in the order in which they were submitted, on a thread
// of its own. That thread may stay in a native call, with the timeline's mu held, until other
// programs act. So nobody waits for the mu of a timeline with a lane, except work of that queue and
// Close.
//
// A group goes through a lane like this. The submitter calls take, registers the waits, and calls
// ready if none is open. Otherwise the goroutine that resolves the last wait calls ready. The
// lane's thread then calls timeline.issueReady, or Device.failSubmission. If the group turns out
// to wait for a device of another driver (foreign), it waits again, and ready is called again
// without take. Until then the lane issues nothing else.
//
// All methods may be called on any goroutine and do not wait for the lane's thread, except
// closeWithDevice.
type lane interface {
	// take puts a submission behind those taken before. The submitter calls it, without locks and
	// before anybody can call ready. A lane may add to the span's record. An error says why the
	// lane takes nothing: the caller fails the submission.
	take(s *submission) error

	// ready tells the lane that a submission which it has taken waits for nothing any more, or that
	// it is to fail, by s.err. An error says that the lane issues nothing any more: the caller fails
	// the submission. The caller may hold the retireMu of a timeline. ready must not fail anything
	// itself: that releases other work, and the calls would nest without end.
	ready(s *submission) error

	// halted returns why the lane takes no more work, and why the work fails that it has issued. A
	// lane that is being closed takes nothing, but its work in flight goes on. The caller may hold
	// the device's mu or a retireMu, so halted takes no lock.
	halted() (takes, issued error)

	// ask has the lane's thread ask the device until seq is done, and reports false if the thread
	// does something else: then the caller asks. The caller holds no locks.
	ask(seq uint64) bool

	// threadState says what the lane's thread is doing. The caller may hold an askMu, so it takes no
	// lock.
	threadState() laneThread

	// describe returns how errors mention the lane. The caller may hold any lock, so it takes none.
	describe() string

	// eachReady calls fn for the submissions that are ready and wait behind others of the lane.
	// Device.Parked calls it, without locks. fn must call nothing of the lane, which may hold a
	// lock.
	eachReady(fn func(*submission))

	// fail fails all that the lane has, because the device is lost. It may wait for other calls of
	// the lane, so it runs on a goroutine of its own, without locks.
	fail(err error)

	// closeWithDevice closes the lane, and waits until its thread needs the driver no more.
	// Device.Shutdown calls it, without locks. If the context ends before, work under way is
	// aborted.
	closeWithDevice(ctx context.Context) error
}

// A laneThread is what a lane's thread is doing.
type laneThread int

const (
	laneAwake  laneThread = iota
	laneAsleep            // who has given it work should let it run
	laneLost              // it is in a native call that does not return, and may hold the timeline's mu for ever
)

// byLane reports whether the lane of the submission's queue issues it. A program may find that queue
// in a trace and give it other work, which is issued as on other queues.
func (s *submission) byLane() bool { return s.op.Kind == work.Collect }

// addLane adds a lane and its timeline to those that the device closes and polls.
func (d *nativeDevice) addLane(l lane, tl *timeline) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failed(); err != nil {
		return err
	}
	d.lanes = append(d.lanes, l)
	all := append(slices.Clip(d.all()), tl)
	d.every.Store(&all)
	return nil
}

func (d *nativeDevice) removeLane(l lane, tl *timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes = slices.DeleteFunc(d.lanes, func(x lane) bool { return x == l })
	all := slices.DeleteFunc(slices.Clone(d.all()), func(x *timeline) bool { return x == tl })
	d.every.Store(&all)
}

func (d *nativeDevice) listLanes() []lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lanes)
}

// hasLanes reports whether the device has lanes.
func (d *nativeDevice) hasLanes() bool { return len(d.listLanes()) > 0 }

// failLanes fails the lanes of a device that is lost.
func (d *nativeDevice) failLanes(err error) {
	for _, l := range d.listLanes() {
		if _, issued := l.halted(); issued == nil {
			go l.fail(err)
		}
	}
}

// closeLanes closes the lanes that are left, all at the same time.
func (d *nativeDevice) closeLanes(ctx context.Context) error {
	left := d.listLanes()
	errs := make([]error, len(left))
	var closing sync.WaitGroup
	for i, l := range left {
		closing.Go(func() { errs[i] = l.closeWithDevice(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
