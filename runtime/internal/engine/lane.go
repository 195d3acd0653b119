package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A Lane is a queue that issues its groups in the order in which they were submitted, on a thread
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
type Lane interface {
	// Take puts a submission behind those taken before. The submitter calls it, without locks and
	// before anybody can call ready. A lane may add to the span's record. An error says why the
	// lane takes nothing: the caller fails the submission.
	Take(s *Submission) error

	// Ready tells the lane that a submission which it has taken waits for nothing any more, or that
	// it is to fail, by s.err. An error says that the lane issues nothing any more: the caller fails
	// the submission. The caller may hold the retireMu of a timeline. ready must not fail anything
	// itself: that releases other work, and the calls would nest without end.
	Ready(s *Submission) error

	// Halted returns why the lane takes no more work, and why the work fails that it has issued. A
	// lane that is being closed takes nothing, but its work in flight goes on. The caller may hold
	// the device's mu or a retireMu, so halted takes no lock.
	Halted() (takes, issued error)

	// Ask has the lane's thread ask the device until seq is done, and reports false if the thread
	// does something else: then the caller asks. The caller holds no locks.
	Ask(seq uint64) bool

	// ThreadState says what the lane's thread is doing. The caller may hold an askMu, so it takes no
	// lock.
	ThreadState() LaneThread

	// Describe returns how errors mention the lane. The caller may hold any lock, so it takes none.
	Describe() string

	// EachReady calls fn for the submissions that are ready and wait behind others of the lane.
	// Device.Parked calls it, without locks. fn must call nothing of the lane, which may hold a
	// lock.
	EachReady(fn func(*Submission))

	// Fail fails all that the lane has, because the device is lost. It may wait for other calls of
	// the lane, so it runs on a goroutine of its own, without locks.
	Fail(err error)

	// CloseWithDevice closes the lane, and waits until its thread needs the driver no more.
	// Device.Shutdown calls it, without locks. If the context ends before, work under way is
	// aborted.
	CloseWithDevice(ctx context.Context) error
}

// A LaneThread is what a lane's thread is doing.
type LaneThread int

const (
	LaneAwake  LaneThread = iota
	LaneAsleep            // who has given it work should let it run
	LaneLost              // it is in a native call that does not return, and may hold the timeline's mu for ever
)

// ByLane reports whether the lane of the submission's queue issues it. A program may find that queue
// in a trace and give it other work, which is issued as on other queues.
func (s *Submission) ByLane() bool { return s.Op.Kind.ByLane() }

// AddLane adds a lane and its timeline to those that the device closes and polls.
func (d *Device) AddLane(l Lane, tl *Timeline) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.Failed(); err != nil {
		return err
	}
	d.lanes = append(d.lanes, l)
	all := append(slices.Clip(d.All()), tl)
	d.every.Store(&all)
	return nil
}

func (d *Device) RemoveLane(l Lane, tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes = slices.DeleteFunc(d.lanes, func(x Lane) bool { return x == l })
	all := slices.DeleteFunc(slices.Clone(d.All()), func(x *Timeline) bool { return x == tl })
	d.every.Store(&all)
}

func (d *Device) ListLanes() []Lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lanes)
}

// HasLanes reports whether the device has lanes.
func (d *Device) HasLanes() bool { return len(d.ListLanes()) > 0 }

// failLanes fails the lanes of a device that is lost.
func (d *Device) failLanes(err error) {
	for _, l := range d.ListLanes() {
		if _, issued := l.Halted(); issued == nil {
			go l.Fail(err)
		}
	}
}

// closeLanes closes the lanes that are left, all at the same time.
func (d *Device) closeLanes(ctx context.Context) error {
	left := d.ListLanes()
	errs := make([]error, len(left))
	var closing sync.WaitGroup
	for i, l := range left {
		closing.Go(func() { errs[i] = l.CloseWithDevice(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
