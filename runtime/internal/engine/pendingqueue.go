package engine

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A PendingQueue is what waits to be issued, of which the device's thread takes care. What is not atomic is under the device's mu.
type PendingQueue struct {
	wake    chan struct{} // of the thread
	runnow  *Submission   // ready to be issued, in order
	runend  **Submission
	running atomic.Int32 // goroutines that issue what was ready
	parked  Submission   // head of a list, linked both ways
	nparked int
	// Barriers that wait for work in flight are in the list, but not parked: they will be done by themselves.
	npassing wake.Count
	called   Submission // head of a list of host calls that are running, linked both ways
}

func (p *PendingQueue) init() {
	p.wake, p.runend = make(chan struct{}, 1), &p.runnow
	p.parked.before, p.parked.after = &p.parked, &p.parked
	p.called.before, p.called.after = &p.called, &p.called
}

// run is the device's thread.
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
		d.Native.Bind() // it may be this that failed
		started <- errors.Join(append([]error{err}, d.Owner.Destroy()...)...)
		return
	}
	started <- nil
	for {
		worked, ended := d.work()
		if ended {
			d.making.Wait()
			if d.ending.left = d.Owner.Destroy(); len(d.ending.left) == 0 && d.lost.Load() == nil {
				runtime.UnlockOSThread() // the driver has left it unbound; else it ends with the goroutine, and nobody finds it
			}
			return
		}
		if !worked {
			<-d.pending.wake
		}
	}
}

// work issues what is ready. It reports whether there was something, and whether the thread is to end.
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

// MayBlock reports whether the goroutine that issues the submission may block. The caller may. The
// pending-queue thread may not: it issues submissions that were parked.
func (s *Submission) MayBlock() bool { return len(s.tps) == 0 && !s.again }

// lacksEvent reports whether a submission that is ready needs an event, and there is none.
func (s *Submission) lacksEvent() bool {
	if kind := s.Op.Kind; s.event != nil || kind.OnHost() || s.ByLane() || kind == work.Barrier {
		return false
	}
	s.event = s.Timeline.Device.Events.take()
	return s.event == nil
}

// awaitEvent has an event made for a ready submission on a goroutine of its own, and then makes the
// submission ready again.
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

// mayWait reports whether issuing a submission that was parked may block, so that a goroutine other than the
// device's thread must issue it: a graph or a block is made, a portable pool grows, or a function of the
// program is called. Parked work has no order but that of semaphores.
func (s *Submission) mayWait() bool {
	return !s.MayBlock() && s.Action != nil && s.Action.Blocks(s)
}

// issueAside issues a submission that is ready on a goroutine of its own.
func (d *Device) issueAside(s *Submission) {
	if !d.enter() { // it fails
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

// callsAtOnce is how many calls of programs may be in the driver to make something at a time: each has a thread there, and a process
// may not have any number of them.
const callsAtOnce = 16

// Do runs a function that makes something, which may wait for the driver's allocator or compiler, for a call that waits for it: on a
// thread of its own to which the device is bound, so that what is current on the caller's stays as it is. The device gives nothing
// back while it runs.
func (d *Device) Do(fn func() error) error {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return d.OnThread(fn)
}

// enter keeps the device's thread from giving anything back until making is told that the caller is done. It reports false if that
// has begun.
func (d *Device) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase.Load() == isEnded {
		return false
	}
	d.making.Add(1)
	return true
}

// WhileThere calls a function, and keeps the device from giving anything back meanwhile.
func (d *Device) WhileThere(fn func() error) error {
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return fn()
}

// ready hands over a submission to the device's thread, to be issued.
func (d *Device) ready(s *Submission) { d.readyAll(s, s) }

// readyAll hands over a chain of submissions.
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
	for s := first; s != nil; { // nobody is left to issue them
		next := s.next
		s.next = nil
		s.Err.CompareAndSwap(nil, &Failure{d.ClosedError()})
		s.Timeline.run(s)
		s = next
	}
}
