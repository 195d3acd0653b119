package engine

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/wake"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A pendingQueue holds the submissions that are not issued yet: parked submissions, and submissions
// that are ready for the pending-queue thread. It also lists the running operations of the host.
// Device.mu protects runnow, runend, parked, nparked and called, and the links of the lists.
type pendingQueue struct {
	wake    chan *Device // wakes the pending-queue thread, which receives the device
	runnow  *Submission  // list of the ready submissions, oldest first
	runend  **Submission // where the next ready submission is linked
	running atomic.Int32 // number of goroutines that issue ready submissions, or wait for an event for a ready submission
	parked  submissionList
	nparked int
	// npublished counts published barriers. Published barriers are in the list pendingQueue.parked,
	// but do not count in nparked, because they complete without being issued.
	npublished wake.Count
	called     submissionList // running operations of the host, except notifications
}

func (p *pendingQueue) init() {
	p.wake, p.runend = make(chan *Device, 1), &p.runnow
}

// run is the pending-queue thread. It locks its goroutine to an OS thread, creates the queues,
// issues ready submissions, and in the end destroys all native objects. When the queues and the
// first events exist, run sends nil to started. If binding the device to the thread or making them
// fails, run sends the error and returns.
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
		d.Native.Bind() // try again, so that Destroy can run: the first Bind may have failed
		failed := d.Owner.Destroy()
		if errors.Is(err, driver.ErrLost) { // then every call fails with the loss, and err says so already
			failed = slices.DeleteFunc(failed, func(e error) bool { return errors.Is(e, driver.ErrLost) })
		}
		started <- errors.Join(append([]error{err}, failed...)...)
		return
	}
	started <- nil
	for {
		worked, ended := d.work()
		if ended {
			d.making.Wait()
			if d.ending.left = d.Owner.Destroy(); len(d.ending.left) == 0 && d.lost.Load() == nil {
				// Destroy has unbound the device from the thread. If Destroy failed or the device
				// is lost, the thread stays locked and so ends with this goroutine.
				runtime.UnlockOSThread()
			}
			return
		}
		if !worked {
			d = d.next()
		}
	}
}

// next blocks until signalThread wakes the pending-queue thread, and returns the device. If LetGo
// was called, the blocked thread keeps no reference to the device.
func (d *Device) next() *Device {
	var keep *Device
	if !d.letsGo {
		keep = d
	}
	woken := <-d.pending.wake
	runtime.KeepAlive(keep)
	return woken
}

// work issues the ready submissions. The result worked reports whether there were ready
// submissions. The result ended reports that the thread must stop issuing, because the device is
// closed.
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

// MayBlock reports whether the goroutine that issues the submission may block. The caller of Submit
// may block. The goroutine that issues a parked submission must not block, because it may be the
// pending-queue thread.
func (s *Submission) MayBlock() bool { return len(s.parking.tps) == 0 && !s.parking.reparked }

// lacksEvent takes an event from the pool for a ready submission that needs one and has none. It
// returns true if the pool is empty.
func (s *Submission) lacksEvent() bool {
	if kind := s.Op.Kind; s.event != nil || kind.OnHost() || s.ByLane() || kind == work.Barrier {
		return false
	}
	s.event = s.Timeline.Device.Events.take()
	return s.event == nil
}

// awaitEvent starts a goroutine that waits for an event for a ready submission, and then gives the
// submission back to the pending-queue thread. If no event can be made, the submission fails.
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

// mayWait reports whether issuing a ready submission may block. If so, the pending-queue thread
// must not issue the submission. Issuing may block if it makes a graph or an instance of a
// recording, grows a portable pool, or calls a function of the program. While a new goroutine
// issues the submission, later submissions may overtake it. That is allowed, because only
// semaphores order parked submissions.
func (s *Submission) mayWait() bool {
	return !s.MayBlock() && s.Action != nil && s.Action.Blocks(s)
}

// issueAside issues a ready submission on a new goroutine, on a thread bound to the device.
func (d *Device) issueAside(s *Submission) {
	if !d.enter() { // the device is closed, so IssueReady fails the submission
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

// signalThread wakes the pending-queue thread. The channel keeps the device reachable until the
// thread has received the device: the blocked thread itself may have no reference to the device
// (see Device.next).
func (d *Device) signalThread() {
	select {
	case d.pending.wake <- d:
	default: // the thread has been woken already
	}
}

// callsAtOnce is the largest number of calls of Do that run at the same time. Each call takes an OS
// thread, and the number of threads of a process is limited.
const callsAtOnce = 16

// Do calls fn on a thread of its own that is bound to the device, and waits until fn returns. fn
// may create and destroy native objects, and may block in the driver. The current device of the
// caller's thread does not change. Do also blocks while callsAtOnce other calls run. Close destroys
// no native objects before fn returns. If Close is already destroying them, Do returns an error.
func (d *Device) Do(fn func() error) error {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return d.OnThread(fn)
}

// enter makes the pending-queue thread wait, before it destroys native objects, until the caller
// calls d.making.Done. In the phase isEnded the thread may already be destroying native objects,
// and enter returns false.
func (d *Device) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase.Load() == isEnded {
		return false
	}
	d.making.Add(1)
	return true
}

// WhileThere calls fn on the calling goroutine. The pending-queue thread destroys no native objects
// before fn returns. If the thread may already be destroying native objects, WhileThere returns an
// error and does not call fn.
func (d *Device) WhileThere(fn func() error) error {
	if !d.enter() {
		return d.ClosedError()
	}
	defer d.making.Done()
	return fn()
}

// ready gives a ready submission to the pending-queue thread, which issues it.
func (d *Device) ready(s *Submission) { d.readyAll(s, s) }

// readyAll gives the pending-queue thread the ready submissions from first to last, which are
// linked by Submission.next. If the device is in phase isEnded, readyAll fails the submissions.
func (d *Device) readyAll(first, last *Submission) {
	d.mu.Lock()
	last.next = nil
	for s := first; s != nil; s = s.next {
		if s.parking.in != nil {
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
	for s := first; s != nil; { // the pending-queue thread issues nothing any more, so fail the submissions here
		next := s.next
		s.next = nil
		s.Err.CompareAndSwap(nil, &Failure{d.ClosedError()})
		s.Timeline.run(s)
		s = next
	}
}
