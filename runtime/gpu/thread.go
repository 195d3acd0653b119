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

// work does what was posted and issues what is ready. It reports whether there was something, and whether the thread is
// to end.
func (d *Device) work() (worked, ended bool) {
	d.mu.Lock()
	todo, list := d.todo, d.runnow
	d.todo, d.spare = d.spare[:0], nil
	d.runnow, d.runend = nil, &d.runnow
	d.running = list != nil
	ended = d.ended
	d.mu.Unlock()
	for _, fn := range todo {
		fn()
	}
	if list != nil {
		d.issuing.Store(true)
		for s := list; s != nil; {
			next := s.next
			s.next = nil
			s.q.run(s, true)
			s = next
		}
		d.issuing.Store(false)
	}
	worked = len(todo) > 0 || list != nil
	clear(todo)
	d.mu.Lock()
	d.spare = todo[:0]
	d.running = false
	d.mu.Unlock()
	return worked, ended && !worked
}

func (d *Device) signalThread() { wake.Nudge(d.wake) }

// post has a function run on the device's thread, some time. It does nothing, and reports false, when the thread is ending:
// then it gives back all that there is.
func (d *Device) post(fn func()) bool {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return false
	}
	d.todo = append(d.todo, fn)
	d.mu.Unlock()
	d.signalThread()
	return true
}

// do runs a function on the device's thread and waits for it.
func (d *Device) do(fn func() error) error {
	done := make(chan error, 1)
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return d.closedError()
	}
	d.todo = append(d.todo, func() { done <- fn() })
	d.mu.Unlock()
	d.signalThread()
	return <-done
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
