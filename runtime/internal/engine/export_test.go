package engine

import (
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/sema"
)

// The tests of package engine_test drive the scheduler through package gpu. They use the following
// declarations to read or change the scheduler's state, or to delay the scheduler.

const (
	PhaseStopped = isStopped
	PhaseLeft    = isLeft
	Watch        = watch
)

func (d *Device) Phase() *atomic.Int32    { return &d.phase }
func (d *Device) Issuing() *atomic.Int32  { return &d.pending.running }
func (d *Device) Calls() int              { return d.calls.Load() }
func (d *Device) Wake() chan *Device      { return d.pending.wake }
func (d *Device) Ready(s *Submission)     { d.ready(s) }
func (d *Device) MarkLost(err error) bool { return d.markLost(err) }
func (d *Device) FailInFlight()           { d.failInFlight() }
func (d *Device) LentMutex() sync.Locker  { return &d.lent.mu }

// EndLoan makes later work of other devices fail if that work uses memory or events of d. Close of
// d does the same. The caller holds LentMutex.
func (d *Device) EndLoan() { d.lent.ended = true }

// Waiting returns the number of ready submissions that wait for the pending-queue thread.
func (d *Device) Waiting() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := d.pending.runnow; s != nil; s = s.next {
		n++
	}
	return n
}

func (tl *Timeline) Last() sema.Point                      { return tl.last }
func (tl *Timeline) Crowded(again bool, rounds int32) bool { return tl.skipsPoll(again, rounds) }

// Run registers a submission's waits, and starts the submission if no wait is open.
func (tl *Timeline) Run(s *Submission) {
	if tl.registerWaits(s) {
		tl.run(s)
	}
}

// FailAll records that all work in flight has failed with err. It does not fail the signals.
func (tl *Timeline) FailAll(err error) {
	tl.retireMu.Lock()
	defer tl.retireMu.Unlock()
	tl.addFailed(tl.passed.Load()+1, tl.issued.Load(), err)
}

// InFlightAt calls fn for the submission with the number seq, if it is in flight.
func (tl *Timeline) InFlightAt(seq uint64, fn func(*Submission)) { tl.inFlightAt(seq, fn) }
