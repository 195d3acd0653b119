package gpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu/internal/work"
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

// lacks reports whether a submission needs an event, or staging memory.
func (s *submission) lacks() bool { return s.event == nil || s.lacksStaging() }

func (s *submission) lacksStaging() bool {
	return s.cold && s.op.Kind == work.Download && s.stage == nil
}

// supply gives a submission what it lacks, and reports whether that was there. What is not there is being made from then on.
func (s *submission) supply() bool {
	d := s.q.dev
	if s.event == nil {
		s.event = d.events.take()
	}
	if s.event != nil && s.lacksStaging() {
		s.stage = d.stage.take(int(s.op.Count))
	}
	return !s.lacks()
}

// starve puts a submission into the backlog. All its waits have been issued.
func (tl *timeline) starve(s *submission, onThread bool) {
	s.letGoAll() // they are found again when it is issued
	s.since = time.Now()
	tl.dev.starved.Add(1)
	tl.backlog.push(s)
	if onThread || tl.dev.caps.SubmitAnywhere {
		tl.feed(onThread) // the pool may have been refilled since it was found empty
	} else {
		tl.dev.signalThread()
	}
}

// feed issues the backlog, as far as there is what the submissions lack. Those for which it could not be made fail.
func (tl *timeline) feed(onThread bool) {
	b := &tl.backlog
	b.turn.Lock()
	defer b.turn.Unlock()
	for s := b.pop(); s != nil; s = b.pop() {
		if f := s.err.Load(); f != nil {
			tl.dismiss(s, refused, f.err, onThread)
			tl.fed()
			continue
		}
		if tl.dev.halted() == nil && !s.supply() { // else it fails, whatever it lacks
			b.unpop(s)
			return
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
	for _, q := range d.all() {
		if q.tl.backlog.n.Load() > 0 {
			q.tl.feed(true)
		}
	}
}

// fail has those in the backlog fail that lack something.
func (b *backlog) fail(lacks func(*submission) bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := b.first; s != nil; s = s.next {
		if lacks(s) {
			s.err.CompareAndSwap(nil, &failure{err})
		}
	}
}

// refill has a goroutine fill a pool, and empty called when it is through, which reports whether there is nothing in the pool all the
// same. Then those fail that lack what it has.
func (d *Device) refill(fill func() error, empty func() bool, lacks func(*submission) bool) {
	if !d.enter() { // what is starved fails because of that
		empty()
		return
	}
	go func() {
		defer d.making.Done()
		err := d.bound(fill)
		if err != nil {
			d.check(err)
		}
		if empty() && err != nil {
			for _, q := range d.all() {
				q.tl.backlog.fail(lacks, err)
			}
		}
		if d.starved.Load() > 0 {
			d.signalThread()
		}
	}()
}
