package engine

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A pendingQueue holds the submissions that are not issued yet, for the device's pending-queue
// thread. The device's mu protects runnow, runend, parked, nparked and called, and the links of the
// lists.
type pendingQueue struct {
	wake    chan struct{} // wakes the thread
	runnow  *Submission   // the ready submissions, in order
	runend  **Submission
	running atomic.Int32 // goroutines that are issuing submissions that were ready
	parked  Submission   // head of a doubly linked list
	nparked int
	// npublished counts barriers that wait for work in flight. They are in the list parked, but do
	// not count in nparked: they complete by themselves.
	npublished wake.Count
	called     Submission // head of a doubly linked list of the host calls that run
}

func (p *pendingQueue) init() {
	p.wake, p.runend = make(chan struct{}, 1), &p.runnow
	p.parked.before, p.parked.after = &p.parked, &p.parked
	p.called.before, p.called.after = &p.called, &p.called
}

// run is the pending-queue thread, the device's own OS thread. It prepares the device, issues ready
// submissions, and at the end destroys all native objects.
func (d *Device) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(d.ending.over)
	err := d.Native.Bind()
	if err == nil {
		err = d.Owner.Start()
	}
	if err == nil {
		err = d.Events.begin()
	}
	if err != nil {
		d.Native.Bind() // once more, for Destroy: Bind may be the call that failed
		started <- errors.Join(append([]error{err}, d.Owner.Destroy()...)...)
		return
	}
	started <- nil
	for {
		worked, ended := d.work()
		if ended {
			d.making.Wait()
			if d.ending.left = d.Owner.Destroy(); len(d.ending.left) == 0 && d.lost.Load() == nil {
				// The driver has unbound the device from the thread. Otherwise the thread stays
				// locked, and so ends with the goroutine.
				runtime.UnlockOSThread()
			}
			return
		}
		if !worked {
			<-d.pending.wake
		}
	}
}

// work issues the ready submissions. It reports whether there were any, and whether the thread must
// end.
func (d *Device) work() (worked, ended bool) {
	d.mu.Lock()
	list := d.pending.runnow
	d.pending.runnow, d.pending.runend = nil, &d.pending.runnow
	if list != nil {
		d.pending.running.Add(1)
	}
	ended = d.phase.Load() == isEnded
	d.mu.Unlock()
	if list != nil {
		worked = true
		for s := list; s != nil; {
			next := s.next
			s.next = nil
			switch {
			case s.Err.Load() != nil:
				s.Timeline.run(s)
			case s.lacksEvent():
				d.awaitEvent(s)
			case s.mayWait():
				d.issueAside(s)
			default:
				s.Timeline.run(s)
			}
			s = next
		}
		d.pending.running.Add(-1)
	}
	return worked, ended && !worked
}

// MayBlock reports whether the goroutine that issues the submission may block. The goroutine that
// submits it may. The pending-queue thread, which issues submissions that were parked, may not.
func (s *Submission) MayBlock() bool { return len(s.tps) == 0 && !s.reparked }

// lacksEvent reports whether a ready submission needs an event, and the pool has none.
func (s *Submission) lacksEvent() bool {
	if kind := s.Op.Kind; s.event != nil || kind.OnHost() || s.ByLane() || kind == work.Barrier {
		return false
	}
	s.event = s.Timeline.Device.Events.take()
	return s.event == nil
}

// awaitEvent waits, on a goroutine of its own, for an event for a ready submission. Then it makes
// the submission ready again.
func (d *Device) awaitEvent(s *Submission) {
	d.pending.running.Add(1)
	go func() {
		defer d.pending.running.Add(-1)
		var err error
		if s.event, err = d.Events.await(); err != nil {
			s.Timeline.dismiss(s, Refused, err)
			return
		}
		d.ready(s)
	}()
}

// mayWait reports whether issuing a parked submission may block, so that a goroutine other than the
// pending-queue thread must issue it. Issuing may block if it makes a graph or a recording's block,
// grows a portable pool, or calls a function of the program. Meanwhile other submissions may
// overtake this one, because only semaphores order parked work.
func (s *Submission) mayWait() bool {
	return !s.MayBlock() && s.Action != nil && s.Action.Blocks(s)
}

// issueAside issues a ready submission on a goroutine of its own, with the device bound.
func (d *Device) issueAside(s *Submission) {
	if !d.enter() { // the device is closed, so issuing fails
		s.Timeline.IssueReady(s)
		return
	}
	d.pending.running.Add(1)
	go func() {
		defer d.making.Done()
		defer d.pending.running.Add(-1)
		isBound := false
		err := d.Bound(func() error {
			isBound = true
			s.Timeline.IssueReady(s)
			return nil
		})
		if !isBound {
			s.Timeline.dismiss(s, Refused, err)
		}
	}()
}

func (d *Device) signalThread() { wake.Nudge(d.pending.wake) }

// callsAtOnce limits how many calls of programs make native objects at a time. Each takes an OS
// thread, and a process has a limited number of threads.
const callsAtOnce = 16

// Do calls fn, which makes native objects, and waits for it. fn runs on a bound thread of its own,
// so that the caller's thread keeps its current device. fn may block in the driver's allocator or
// compiler. Do also blocks while callsAtOnce other calls run. Close destroys no native objects
// while fn runs.
func (d *Device) Do(fn func() error) error {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return d.OnThread(fn)
}

// enter keeps the device's thread from destroying native objects until the caller calls
// making.Done. It returns false if the thread may have begun to destroy them.
func (d *Device) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase.Load() == isEnded {
		return false
	}
	d.making.Add(1)
	return true
}

// WhileThere calls fn, and keeps the device's thread from destroying native objects meanwhile.
func (d *Device) WhileThere(fn func() error) error {
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return fn()
}

// ready gives a ready submission to the device's thread, which issues it.
func (d *Device) ready(s *Submission) { d.readyAll(s, s) }

// readyAll is ready for a chain of submissions, linked by next from first to last. If the thread
// has ended, readyAll makes them fail.
func (d *Device) readyAll(first, last *Submission) {
	d.mu.Lock()
	last.next = nil
	for s := first; s != nil; s = s.next {
		if s.after != nil {
			d.unlink(s)
		}
	}
	if d.phase.Load() < isEnded {
		*d.pending.runend, d.pending.runend = first, &last.next
		d.mu.Unlock()
		d.signalThread()
		return
	}
	d.mu.Unlock()
	for s := first; s != nil; { // the thread has ended
		next := s.next
		s.next = nil
		s.Err.CompareAndSwap(nil, &Failure{d.ClosedError()})
		s.Timeline.run(s)
		s = next
	}
}
