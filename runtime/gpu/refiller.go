package gpu

import (
	"sync"
	"sync/atomic"
	"time"
)

// Events and staging memory are made by a refiller: a goroutine with a thread to which the device is bound, that comes when a pool runs
// low and goes when it has made some. Who submits takes what is there. A submission that finds a pool empty is starved: it waits in its
// timeline's backlog until the refiller has made more, and fails if that fails, by the refiller's error.
//
// Queues promise the order of their own calls to memory that is allocated and deallocated without lists of points. So while a
// timeline has a backlog all that it is given joins that at the end. It is issued from the front, by the device's thread, which the refiller
// wakes, or by whoever submits next: a program that submits without end is then as fast as its work is issued, and the backlog ends.

// A backlog holds the starved submissions of a timeline, in order.
type backlog struct {
	n     atomic.Int32 // those that are not issued yet, which includes one that is being issued
	turn  sync.Mutex   // held by who issues them
	mu    sync.Mutex   // a leaf; protects the list
	first *submission
	last  *submission
}

// push puts a submission at the end.
func (b *backlog) push(s *submission) {
	b.mu.Lock()
	s.next = nil
	if b.first == nil {
		b.first = s
	} else {
		b.last.next = s
	}
	b.last = s
	b.n.Add(1)
	b.mu.Unlock()
}

// pop takes the first submission off the list, or returns nil.
func (b *backlog) pop() *submission {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.first
	if s != nil {
		b.first, s.next = s.next, nil
	}
	return s
}

// unpop puts back what pop has returned.
func (b *backlog) unpop(s *submission) {
	b.mu.Lock()
	if s.next = b.first; b.first == nil {
		b.last = s
	}
	b.first = s
	b.mu.Unlock()
}

// shortages are the errors with which pools were not refilled, nil where they were.
type shortages struct{ events, staging error }

// lacks reports whether a submission needs an event, or staging memory.
func (s *submission) lacks() bool {
	return s.event == nil || s.cold && s.op == opDownload && s.stage == nil
}

// supply gives a submission what it lacks, and reports whether that was there. What is not there is being made from then on, unless that
// has just failed: then it returns why.
func (s *submission) supply(failed shortages) (bool, error) {
	d := s.q.dev
	if s.event == nil {
		if s.event = d.events.take(failed.events == nil); s.event == nil {
			return false, failed.events
		}
	}
	if s.op == opDownload && s.stage == nil {
		if s.stage = d.stage.take(int(s.n), failed.staging == nil); s.stage == nil {
			return false, failed.staging
		}
	}
	return true, nil
}

// starve puts a submission into the backlog. All its waits have been issued.
func (tl *timeline) starve(s *submission, onThread bool) {
	s.letGoAll() // they are found again when it is issued
	s.since = time.Now()
	tl.dev.starved.Add(1)
	tl.backlog.push(s)
	if onThread || tl.dev.caps.SubmitAnywhere {
		tl.feed(shortages{}, onThread) // the pool may have been refilled since it was found empty
	} else {
		tl.dev.signalThread()
	}
}

// feed issues the backlog, as far as there is what the submissions lack. Those for which it could not be made fail.
func (tl *timeline) feed(failed shortages, onThread bool) {
	b := &tl.backlog
	b.turn.Lock()
	defer b.turn.Unlock()
	for s := b.pop(); s != nil; s = b.pop() {
		halted := tl.dev.halted()
		if halted == nil {
			ok, err := s.supply(failed)
			if !ok && err == nil {
				b.unpop(s)
				return
			}
			if err != nil {
				tl.dismiss(s, refused, err, onThread)
				tl.fed()
				continue
			}
		}
		s.fed = true
		tl.issueReady(s, onThread)
		tl.fed()
	}
}

// fed notes that a submission of the backlog has been issued, or has failed.
func (tl *timeline) fed() {
	tl.backlog.n.Add(-1)
	tl.dev.starved.Add(-1)
}

// feedAll is feed for all timelines. It runs on the device's thread.
func (d *Device) feedAll() {
	failed := shortages{d.events.shortage(), d.stage.shortage()}
	for _, q := range d.all() {
		if q.tl.backlog.n.Load() > 0 {
			q.tl.feed(failed, true)
		}
	}
}

// refill has a goroutine call a function that makes something, and then another one with its error.
func (d *Device) refill(fill func() error, over func(error)) {
	if !d.enter() {
		over(d.closedError())
		return
	}
	go func() {
		defer d.making.Done()
		err := d.bound(fill)
		if err != nil {
			d.check(err)
		}
		over(err)
		if d.starved.Load() > 0 {
			d.signalThread()
		}
	}()
}
