package gpu

import (
	"errors"
	"runtime"

	"github.com/puregpu/puregpu/runtime/gpu/internal/wake"
)

// run is the device's thread.
func (d *Device) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(d.closed)
	if err := d.start(); err != nil {
		d.drv.Bind() // it may be this that failed
		started <- errors.Join(append([]error{err}, d.destroy()...)...)
		return
	}
	started <- nil
	pauses := d.waits.Pauses(wake.Slice, wake.Slice)
	for {
		worked, ended := d.work()
		if ended {
			d.making.Wait()
			if d.left = d.destroy(); len(d.left) == 0 && d.lost.Load() == nil {
				runtime.UnlockOSThread() // the driver has left it unbound; else it ends with the goroutine, and nobody finds it
			}
			return
		}
		switch {
		case d.poller != nil || !d.wanted():
			pauses.Reset()
			if !worked {
				<-d.wake
			}
		default:
			if further, _ := d.askWanted(false); further || worked {
				pauses.Reset()
				runtime.Gosched() // whoever was woken sits in this thread's queue
			} else {
				pauses.Pause(d.wake)
			}
		}
	}
}

func (d *Device) start() error {
	if err := d.drv.Bind(); err != nil {
		return err
	}
	for i := range d.opt.Queues {
		h, err := d.drv.NewStream()
		if err != nil {
			return err
		}
		tl := newTimeline(d)
		tl.h = h
		d.queues = append(d.queues, &Queue{dev: d, tl: tl, index: i})
	}
	all := d.queues
	d.every.Store(&all)
	return d.events.grow()
}

// work issues what is ready, and the backlog. It reports whether there was something, and whether the thread is to end.
func (d *Device) work() (worked, ended bool) {
	d.mu.Lock()
	list := d.runnow
	d.runnow, d.runend = nil, &d.runnow
	d.running = list != nil
	ended = d.ended
	d.mu.Unlock()
	if list != nil {
		worked = true
		d.issuing.Store(true)
		for s := list; s != nil; {
			next := s.next
			s.next = nil
			s.q.run(s, true)
			s = next
		}
		d.issuing.Store(false)
	}
	if n := d.backlog.n.Load(); n > 0 {
		d.feed(true)
		worked = worked || d.backlog.n.Load() < n
	}
	d.mu.Lock()
	d.running = false
	d.mu.Unlock()
	return worked, ended && !worked
}

func (d *Device) signalThread() { wake.Nudge(d.wake) }

// callsAtOnce is how many calls of programs may be in the driver to make something at a time: each has a thread there, and a process
// may not have any number of them.
const callsAtOnce = 16

// do runs a function that makes something, which may wait for the driver's allocator or compiler, for a call that waits for it: on a
// thread of its own to which the device is bound, so that what is current on the caller's stays as it is. The device gives nothing
// back while it runs.
func (d *Device) do(fn func() error) error {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if !d.enter() {
		return d.closedError()
	}
	defer d.making.Done()
	return d.onThread(fn)
}

// enter keeps the device's thread from giving anything back until making is told that the caller is done. It reports false if that
// has begun.
func (d *Device) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.making.Add(1)
	return true
}

// ready hands over a submission to the device's thread, to be issued.
func (d *Device) ready(s *submission) { d.readyAll(s, s) }

// readyAll hands over a chain of submissions.
func (d *Device) readyAll(first, last *submission) {
	d.mu.Lock()
	last.next = nil
	for s := first; s != nil; s = s.next {
		if s.after != nil {
			d.unlink(s)
		}
	}
	if !d.ended {
		*d.runend, d.runend = first, &last.next
		d.mu.Unlock()
		d.signalThread()
		return
	}
	d.mu.Unlock()
	for s := first; s != nil; { // nobody is left to issue them
		next := s.next
		s.next = nil
		s.err.CompareAndSwap(nil, &failure{d.closedError()})
		s.q.run(s, false)
		s = next
	}
}
