package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A Lane is the queue of a communicator. It issues groups of collective operations on a thread of
// its own, in the order in which they were submitted. The communication library may keep that
// thread in a native call, with Timeline.mu held, until other programs act. So only operations of
// the lane's timeline and Close may wait for the mu of that timeline.
//
// A group goes through a lane as follows. The submitter calls Take and registers the waits. When
// the work for all waits has been issued, Ready is called, by the submitter, by the goroutine that
// released the last timepoint, or by the pending-queue thread. Then the lane's thread calls
// Timeline.IssueReady or Device.FailSubmission. If a wait is for work of another driver's device,
// the outcome of IssueReady is Foreign: the group is parked again until its waits are reached, and
// then Ready is called a second time. Until then the lane issues nothing else.
//
// Any goroutine may call the methods. Only CloseWithDevice waits for the lane's thread.
type Lane interface {
	// Take appends a submission to the lane's queue. The submitter calls it, without locks of the
	// engine, before any goroutine can call Ready for s. If the lane accepts no more work, Take
	// returns the reason, and the caller fails the submission.
	Take(s *Submission) error

	// Ready tells the lane that s, which it has taken earlier, has no open waits and can be issued.
	// If s.Err is set, the lane's thread must fail s instead. If the lane issues nothing any more,
	// Ready returns the reason, and the caller makes s fail.
	//
	// The caller may hold a Timeline.retireMu. Ready must not fail a submission itself. Failing it
	// would release timepoints. The owners of these timepoints may call Ready again, and the
	// recursion could become too deep.
	Ready(s *Submission) error

	// Halted returns two errors. The first is nil if the lane accepts work, otherwise the reason
	// why not. The second is the error with which the lane's issued work fails, or nil. While a
	// lane is being closed, it accepts no work but its work in flight goes on. The caller may hold
	// Device.mu or a Timeline.retireMu, so Halted takes no lock.
	Halted() (takes, issued error)

	// PollFor makes the lane's thread poll until the work with the number seq is done. If the
	// thread is not free to poll, PollFor returns false, and the caller must poll. The caller holds
	// no locks.
	PollFor(seq uint64) bool

	// ThreadState returns the state of the lane's thread. The caller may hold a Timeline.queryMu,
	// so ThreadState takes no lock.
	ThreadState() LaneThread

	// Describe returns the name of the lane for error messages. The caller may hold any lock, so
	// Describe takes none.
	Describe() string

	// EachReady calls fn for each submission that is ready and still in the lane's queue.
	// Device.EachOpen calls EachReady, without locks. fn must not call a method of the lane,
	// because EachReady may hold a lock.
	EachReady(fn func(*Submission))

	// Fail fails all submissions of the lane, because the device is lost. It may block until other
	// calls of the lane's methods return, so the engine calls it on a new goroutine, without locks.
	Fail(err error)

	// CloseWithDevice closes the lane. It blocks until the lane's thread no longer uses the driver
	// or is LaneLost. If the context ends first, CloseWithDevice aborts the work in flight.
	// Device.Stop calls CloseWithDevice, without locks.
	CloseWithDevice(ctx context.Context) error
}

// A LaneThread is the state of a lane's thread.
type LaneThread int

const (
	LaneAwake  LaneThread = iota
	LaneAsleep            // blocked without work; a goroutine that gives the thread work should yield, so that the thread can run
	LaneLost              // in a native call that does not return; the thread may hold Timeline.mu
)

// ByLane reports whether a lane issues the submission. A lane issues only collective operations.
// Other operations that a program submits to a lane's queue are issued as on any other queue.
func (s *Submission) ByLane() bool { return s.Op.Kind.ByLane() }

// AddLane adds a lane and its timeline to the device's lists, so that the device polls the timeline
// and Close closes the lane. It returns an error if the device is lost or closed.
func (d *Device) AddLane(l Lane, tl *Timeline) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.Failed(); err != nil {
		return err
	}
	d.lanes = append(d.lanes, l)
	all := append(slices.Clip(d.All()), tl)
	d.timelines.Store(&all)
	return nil
}

// RemoveLane undoes AddLane.
func (d *Device) RemoveLane(l Lane, tl *Timeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes = slices.DeleteFunc(d.lanes, func(x Lane) bool { return x == l })
	all := slices.DeleteFunc(slices.Clone(d.All()), func(x *Timeline) bool { return x == tl })
	d.timelines.Store(&all)
}

// ListLanes returns the lanes of the device.
func (d *Device) ListLanes() []Lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lanes)
}

// HasLanes reports whether the device has lanes.
func (d *Device) HasLanes() bool { return len(d.ListLanes()) > 0 }

// failLanes is called when the device is lost. It calls Fail of each lane whose issued work has not
// failed yet, and does not wait for the calls.
func (d *Device) failLanes(err error) {
	for _, l := range d.ListLanes() {
		if _, issued := l.Halted(); issued == nil {
			go l.Fail(err)
		}
	}
}

// closeLanes closes all lanes in parallel, waits for them, and returns their errors.
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
