package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A Lane is a queue that issues groups of operations in the order in which they were submitted, on
// a thread of its own. That thread may stay in a native call, with the timeline's mu held, until
// other programs act. So only the lane's own work and Close may wait for the mu of a timeline with
// a lane.
//
// A group goes through a lane as follows. The submitter calls Take, registers the waits, and calls
// Ready if all are resolved. Otherwise the goroutine that resolves the last wait calls Ready. The
// lane's thread then calls Timeline.IssueReady or Device.FailSubmission. If IssueReady finds that
// the group waits for a device of another driver (Foreign), the group is parked once more until its
// waits are reached. Then Ready is called again, without Take. Until then the lane issues nothing
// else.
//
// Any goroutine may call the methods. Only CloseWithDevice waits for the lane's thread.
type Lane interface {
	// Take appends a submission to the lane's queue. The submitter calls it, without locks and
	// before any goroutine can call Ready. The lane may give the submission's Observer more
	// information. If the lane takes no more work, Take returns the reason, and the caller fails
	// the submission.
	Take(s *Submission) error

	// Ready tells the lane that it can issue s, a submission taken earlier, because all waits of s
	// are resolved. If s.Err is set, s must fail instead. If the lane issues nothing any more,
	// Ready returns the reason, and the caller fails s.
	//
	// The caller may hold the retireMu of a timeline. Ready must not fail a submission itself: that
	// would release other submissions, and calls of Ready would nest without limit.
	Ready(s *Submission) error

	// Halted returns why the lane takes no more work, and why the work that it has issued fails, or
	// nil for either. A lane that is being closed takes no work, but its work in flight goes on.
	// The caller may hold the device's mu or a retireMu, so Halted takes no lock.
	Halted() (takes, issued error)

	// Ask has the lane's thread poll until seq is done. It returns false if the thread is doing
	// something else; then the caller must poll. The caller holds no locks.
	PollFor(seq uint64) bool

	// ThreadState returns the state of the lane's thread. The caller may hold an queryMu, so
	// ThreadState takes no lock.
	ThreadState() LaneThread

	// Describe returns how errors mention the lane. The caller may hold any lock, so Describe takes
	// none.
	Describe() string

	// EachReady calls fn for the submissions that are ready but queued behind others of the lane.
	// Device.EachOpen calls it, without locks. fn must call no method of the lane, because the lane
	// may hold a lock.
	EachReady(fn func(*Submission))

	// Fail fails all submissions of the lane, because the device is lost. It may wait for other
	// calls of the lane, so it runs on a goroutine of its own, without locks.
	Fail(err error)

	// CloseWithDevice closes the lane, and waits until its thread no longer needs the driver. If
	// the context ends first, it aborts the work in flight. Device.Stop calls it, without locks.
	CloseWithDevice(ctx context.Context) error
}

// A LaneThread is the state of a lane's thread.
type LaneThread int

const (
	LaneAwake  LaneThread = iota
	LaneAsleep            // a caller that has given it work should yield the processor
	LaneLost              // in a native call that does not return; it may hold the timeline's mu
)

// ByLane reports whether the lane of the submission's queue issues the submission. A program may
// find a lane's queue in a trace and submit other operations to it. These are issued as on any
// queue.
func (s *Submission) ByLane() bool { return s.Op.Kind.ByLane() }

// AddLane registers a lane and its timeline with the device. From then on the device polls the
// timeline, and Close closes the lane. AddLane fails if the device takes no more work.
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

// RemoveLane undoes AddLane.
func (d *Device) RemoveLane(l Lane, tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes = slices.DeleteFunc(d.lanes, func(x Lane) bool { return x == l })
	all := slices.DeleteFunc(slices.Clone(d.All()), func(x *Timeline) bool { return x == tl })
	d.every.Store(&all)
}

// ListLanes returns the lanes that are registered with the device.
func (d *Device) ListLanes() []Lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lanes)
}

// HasLanes reports whether the device has lanes.
func (d *Device) HasLanes() bool { return len(d.ListLanes()) > 0 }

// failLanes fails the lanes, because the device is lost. It does not wait for them.
func (d *Device) failLanes(err error) {
	for _, l := range d.ListLanes() {
		if _, issued := l.Halted(); issued == nil {
			go l.Fail(err)
		}
	}
}

// closeLanes closes the lanes that are left, all at the same time, and waits for them.
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
